/** @file
 * @brief Point cloud files: .pcd (0.7: ascii, binary, binary_compressed), .ply (ascii, binary little endian) and
 * .bin (KITTI: float x y z intensity).
 *
 * The format is chosen by extension and checked by content. Readers are safe for untrusted input: counts and sizes
 * are checked against the length of the file before anything is allocated, and error messages name the file, the
 * place and the limit.
 *
 * Origin: doubles, and numbers in text whatever their declared size, are kept relative to the first finite point
 * rounded to multiples of 1024 m, or to zero when all coordinates are below 2048 m, where a float is exact to 0.1
 * mm. Binary float32 is kept unchanged with origin zero. NaN points are kept; the preprocessor drops them. */
#ifndef NDT_IO_CLOUD_FILE_H
#define NDT_IO_CLOUD_FILE_H

#include "ndt/cloud.h"
#include "ndt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Reads x, y, z and, where present, intensity (intensity, scalar_Intensity) and time (t, time, time_s, time_stamp,
 * timestamp, offset_time: seconds as float, or integer nanoseconds). Times of 10 s and more are those of a clock
 * and become relative to the first point; smaller ones are kept.
 *
 * `out` is initialised; its memory is reused and only grows. Optional arrays that the file lacks are zero. After a
 * failure it holds no points. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_read(struct ndt_cloud *out, const char *path, struct ndt_error *err);

/** ndt_cloud_read with progress: `progress` (may be NULL) counts bytes, points and the file. NDT_ERR_CANCELLED. */
NDT_MUST_CHECK enum ndt_status ndt_cloud_read_with(struct ndt_cloud *out, const char *path,
                                                   struct ndt_progress *progress, struct ndt_error *err);

/** The kinds of PCD data. */
enum ndt_pcd_data { NDT_PCD_ASCII, NDT_PCD_BINARY, NDT_PCD_COMPRESSED };
/** Writes a PCD file atomically (ndt_io/output_file.h). Coordinates are doubles if the origin of the cloud is not
 * zero. */
NDT_MUST_CHECK enum ndt_status ndt_pcd_write(const struct ndt_cloud *cloud, const char *path,
                                             enum ndt_pcd_data data, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
