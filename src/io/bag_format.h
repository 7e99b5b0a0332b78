/* The bytes of a bag as bag.h describes them, for reader and writer. Private to ndt_io. */
#ifndef NDT_IO_BAG_FORMAT_H
#define NDT_IO_BAG_FORMAT_H

#include <stdint.h>

#define NDT_BAG_MAGIC   "NDTBAG\r\n"
#define NDT_BAG_VERSION 1u

enum { NDT_BAG_HEAD_SIZE = 16, NDT_BAG_CRC_SIZE = 4 };

struct ndt_bag_file_head {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
};
struct ndt_bag_record_head {
    uint32_t type;
    uint32_t length;
    int64_t receive_time_ns;
};
_Static_assert(sizeof(struct ndt_bag_file_head) == NDT_BAG_HEAD_SIZE, "no padding");
_Static_assert(sizeof(struct ndt_bag_record_head) == NDT_BAG_HEAD_SIZE, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are written as they are");

#endif
