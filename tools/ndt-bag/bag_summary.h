/* What is in a bag, gathered in one pass; of use to info and check. */
#ifndef BAG_SUMMARY_H
#define BAG_SUMMARY_H

#include "bag_cursor.h"

enum { BAG_MESSAGE_TYPES = NDT_MESSAGE_LAST + 1 };

struct bag_summary {
    uint64_t records, bytes; /* bytes: of whole records and the head */
    uint64_t by_type[BAG_MESSAGE_TYPES];
    uint64_t min_points, max_points, points; /* of scans */
    unsigned fields;                         /* in any scan: NDT_CLOUD_* */
    char frame_id[NDT_PROTO_MAX_NAME + 1];   /* of the first scan */
    int64_t first_ns, last_ns;               /* receive times */
    int64_t first_scan_ns, last_scan_ns;     /* stamps */
    uint64_t scans_back;                     /* scans whose stamp is not after the one before */
    uint64_t unreadable;                     /* whole records whose message cannot be decoded */
    struct ndt_error first_unreadable;
    struct ndt_error damage; /* where the file stops making sense; empty when it is whole */
};

/* Fails only when the file cannot be read at all; damage is part of the answer. */
NDT_MUST_CHECK enum ndt_status bag_summary_read(struct bag_summary *summary, const char *path,
                                                struct ndt_error *err);

#endif
