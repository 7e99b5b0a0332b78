/* Private to the schema: the keys `count`, `point_step`, `fields` and `data`, which scan and points share. */
#ifndef NDT_POINT_BLOB_H
#define NDT_POINT_BLOB_H

#include "wire.h"

NDT_MUST_CHECK enum ndt_status ndt_points_read_fields(struct ndt_wire_reader *reader,
                                                      struct ndt_point_layout *layout);
NDT_MUST_CHECK enum ndt_status ndt_points_read_data(struct ndt_wire_reader *reader,
                                                    struct ndt_point_layout *layout);
/* Checks that fields, count, step and size agree; the error names the field that does not. */
NDT_MUST_CHECK enum ndt_status ndt_points_check_layout(const struct ndt_point_layout *layout,
                                                       struct ndt_error *err);
/* Copies the points of a message; see ndt_scan_points. */
NDT_MUST_CHECK enum ndt_status ndt_points_to_cloud(const uint8_t *data, size_t size,
                                                   const struct ndt_point_layout *layout, int64_t stamp_ns,
                                                   double deadline_us, struct ndt_cloud *cloud,
                                                   struct ndt_error *err);

/* The layout of a cloud in a message: x y z as float32 (float64 when it has an origin), intensity, time. */
void ndt_points_choose_layout(struct ndt_point_layout *layout, const struct ndt_cloud *cloud);
void ndt_points_put_fields(struct ndt_wire_writer *writer, const struct ndt_point_layout *layout);
void ndt_points_put_data(struct ndt_wire_writer *writer, const struct ndt_point_layout *layout,
                         const struct ndt_cloud *cloud);

#endif
