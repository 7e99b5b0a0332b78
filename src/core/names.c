#include "ndt/names.h"

#include <stddef.h>

const struct ndt_label ndt_variant_labels[] = {{"robust", NDT_ROBUST}, {"autoware", NDT_AUTOWARE}, {NULL, 0}};
const struct ndt_label ndt_neighbours_labels[] = {{"radius", NDT_RADIUS},
                                                  {"direct1", NDT_DIRECT1},
                                                  {"direct7", NDT_DIRECT7},
                                                  {"direct27", NDT_DIRECT27},
                                                  {NULL, 0}};
const struct ndt_label ndt_covariance_labels[] = {
    {"unbiased", NDT_COVARIANCE_UNBIASED}, {"autoware", NDT_COVARIANCE_AUTOWARE}, {NULL, 0}};
const struct ndt_label ndt_deskew_labels[] = {{"auto", NDT_DESKEW_AUTO},
                                              {"off", NDT_DESKEW_OFF},
                                              {"time", NDT_DESKEW_TIME},
                                              {"azimuth_cw", NDT_DESKEW_AZIMUTH_CW},
                                              {"azimuth_ccw", NDT_DESKEW_AZIMUTH_CCW},
                                              {NULL, 0}};
const struct ndt_label ndt_sweep_stamp_labels[] = {
    {"begin", NDT_STAMP_BEGIN}, {"middle", NDT_STAMP_MIDDLE}, {"end", NDT_STAMP_END}, {NULL, 0}};
const struct ndt_label ndt_pose_kind_labels[] = {
    {"smoothed", NDT_POSE_SMOOTHED}, {"filtered", NDT_POSE_FILTERED}, {"predicted", NDT_POSE_PREDICTED}, {NULL, 0}};

const char *ndt_label_name(const struct ndt_label *labels, int value)
{
    for (; labels->name; labels++)
        if (labels->value == value)
            return labels->name;
    return "unknown";
}

const char *ndt_variant_name(enum ndt_variant variant)
{
    return ndt_label_name(ndt_variant_labels, (int)variant);
}

const char *ndt_neighbours_name(enum ndt_neighbours neighbours)
{
    return ndt_label_name(ndt_neighbours_labels, (int)neighbours);
}

const char *ndt_pose_kind_name(enum ndt_pose_kind kind)
{
    return ndt_label_name(ndt_pose_kind_labels, (int)kind);
}

const char *ndt_covariance_name(enum ndt_covariance_kind kind)
{
    return ndt_label_name(ndt_covariance_labels, (int)kind);
}
