/** @file
 * @brief The last scans, thinned and packed for the page (GET /api/scan). Any thread.
 *
 * Packed: "NDTS", u32 version 1, u64 seq, i64 stamp_ns, u32 count, f32 scale_m, then per point i16 x y z (times
 * scale_m: metres in the base frame) and u16 intensity, 65535 for the largest of the scan; little endian. */
#ifndef WEB_SCANS_H
#define WEB_SCANS_H

#include "ndt/cloud.h"
#include "web_blob.h"

enum { WEB_SCANS_KEPT = 32, WEB_SCAN_HEAD = 32 };

/** Packs at most `most` points, spread evenly over the scan; points that are not finite are left out. NULL: no
 * memory. */
struct web_blob *web_scan_pack(uint64_t seq, int64_t stamp_ns, const struct ndt_cloud *cloud, size_t most);
/** Points of a packed scan. */
uint32_t web_scan_count(const struct web_blob *packed);

struct web_scans;
struct web_scans *web_scans_open(void); /**< NULL: no memory */
void web_scans_close(struct web_scans *scans);
/** Takes a packed scan over, in place of the oldest. */
void web_scans_put(struct web_scans *scans, uint64_t seq, struct web_blob *packed);
/** Number of kept scans. */
size_t web_scans_count(struct web_scans *scans);
/** A reference for the caller; NULL: not kept. */
struct web_blob *web_scans_get(struct web_scans *scans, uint64_t seq);

#endif
