/* Private to ndt_io: the bytes of a bag, for its reader and its writer. */
#ifndef NDT_IO_BAG_FORMAT_H
#define NDT_IO_BAG_FORMAT_H

#include <stdint.h>
#include <string.h>

#define BAG_MAGIC   "NDTBAG\r\n"
#define BAG_VERSION 1u

enum { BAG_HEAD_SIZE = 16, BAG_CRC_SIZE = 4 };

struct bag_file_head {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
};
struct bag_record_head {
    uint32_t type;
    uint32_t length;
    int64_t receive_time_ns;
};
_Static_assert(sizeof(struct bag_file_head) == BAG_HEAD_SIZE, "no padding");
_Static_assert(sizeof(struct bag_record_head) == BAG_HEAD_SIZE, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structs are written as they are");

static inline struct bag_file_head bag_file_head(void)
{
    struct bag_file_head head = {.version = BAG_VERSION};
    memcpy(head.magic, BAG_MAGIC, sizeof(head.magic));
    return head;
}

#endif
