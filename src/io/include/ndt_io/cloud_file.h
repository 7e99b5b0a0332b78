/* Point cloud files. Picked by extension and checked by content: .pcd (0.7: ascii, binary,
 * binary_compressed), .ply (ascii, binary little endian), .bin (KITTI: float x y z intensity).
 *
 * Every reader takes hostile bytes: counts and sizes are checked against the file's real length before
 * anything is allocated, and the error line names the file, the place and the limit. Doubles, and numbers
 * in text whatever their declared size, are kept relative to an origin: the first finite point rounded to
 * a multiple of 1024 m, or zero when all coordinates are below 2048 m, where float is right to 0.1 mm.
 * float32 in binary is taken as it is, origin zero. Points that are NaN are kept (the preprocessor drops them).
 * Which names of fields mean what is one table (point_layout.c). */
#ifndef NDT_IO_CLOUD_FILE_H
#define NDT_IO_CLOUD_FILE_H

#include "ndt/cloud.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads x, y, z and, where present, intensity and time (field names t, time, time_s, time_stamp, timestamp,
 * offset_time; seconds as float, or integer nanoseconds). Times of 10 s and more are those of a clock and become
 * relative to the first point's; smaller ones are kept as they are.
 * `out` is initialised and reused: its memory only grows, and optional fields that this file lacks are zero.
 * After a failure it holds no points. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_read(struct ndt_cloud *out, const char *path, struct ndt_error *err);

enum ndt_pcd_data { NDT_PCD_ASCII, NDT_PCD_BINARY, NDT_PCD_COMPRESSED };
/* Written beside the target and renamed. Doubles when the cloud's origin is not zero. */
NDT_MUST_CHECK enum ndt_status ndt_pcd_write(const struct ndt_cloud *cloud, const char *path,
                                             enum ndt_pcd_data data, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
