/** @file
 * @brief Names of the matcher's enums, as used in options, reports and files.
 *
 * Each list ends with a NULL name. The functions return "unknown" for a value that is not in the list. */
#ifndef NDT_NAMES_H
#define NDT_NAMES_H

#include "ndt/map.h"
#include "ndt/newton.h"
#include "ndt/pose.h"
#include "ndt/preprocess.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A value and its name. */
struct ndt_label {
    const char *name;
    int value;
};

extern const struct ndt_label ndt_variant_labels[];
extern const struct ndt_label ndt_neighbours_labels[];
extern const struct ndt_label ndt_covariance_labels[];
extern const struct ndt_label ndt_deskew_labels[];
extern const struct ndt_label ndt_sweep_stamp_labels[];
extern const struct ndt_label ndt_pose_kind_labels[];

/** The name of `value` in a list. */
const char *ndt_label_name(const struct ndt_label *labels, int value);
/** The name of a variant. */
const char *ndt_variant_name(enum ndt_variant variant);
/** The name of a neighbourhood. */
const char *ndt_neighbours_name(enum ndt_neighbours neighbours);
/** `smoothed`, `filtered`, `predicted`. */
const char *ndt_pose_kind_name(enum ndt_pose_kind kind);
/** The name of a kind of covariance. */
const char *ndt_covariance_name(enum ndt_covariance_kind kind);

#ifdef __cplusplus
}
#endif
#endif
