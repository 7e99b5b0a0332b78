/* The header of a PCD file (version 0.7, and what PCL still reads of older ones). Private to ndt_io. */
#ifndef NDT_IO_PCD_HEADER_H
#define NDT_IO_PCD_HEADER_H

#include "cloud_body.h"
#include "ndt_io/cloud_file.h"

enum { PCD_MAX_FIELDS = 256 };

struct pcd_field {
    char name[64];        /* "_" is padding */
    char kind;            /* TYPE: I, U or F */
    uint64_t size, count; /* each 1 .. NDT_POINT_SIZE_MAX */
};

struct pcd_header {
    size_t field_count;
    struct pcd_field fields[PCD_MAX_FIELDS];
    uint64_t width, height, points;
    int has_width, has_points, has_data;
    enum ndt_pcd_data data;
    uint64_t offset;   /* of the data in the file */
    size_t line_count; /* of the header */
};

/* Reads up to the DATA line and checks that all lines agree with each other. */
NDT_MUST_CHECK enum ndt_status pcd_header_read(struct pcd_header *out, const struct ndt_input *input,
                                               struct ndt_error *err);

#endif
