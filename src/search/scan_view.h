/* Private to the search: the view of a scan that is searched for. */
#ifndef NDT_SCAN_VIEW_H
#define NDT_SCAN_VIEW_H

#include "ndt/preprocess.h"
#include "ndt_search/search.h"

/* A scan whose z axis is upward, see ndt_search_run. */
struct ndt_upright {
    struct ndt_pose T_upright_sensor;
    int is_turned;           /* 0: the frame of the sensor is upright, but for its heading */
    struct ndt_cloud points; /* points in the upright frame, if is_turned */
};

/* Sets the scan in the upright frame (scan_upright.c); *out is the scan itself where the sensor is upright. */
NDT_MUST_CHECK enum ndt_status ndt_upright_set(struct ndt_upright *upright, const struct ndt_cloud *scan,
                                               const struct ndt_pose *T_upright_sensor,
                                               const struct ndt_cloud **out, struct ndt_error *err);
/* Turns a region of the upright frame into one of the frame of the search. */
void ndt_upright_region(const struct ndt_upright *upright, struct ndt_search_region *region);
/* Turns the poses and directions of a result into those of the sensor. */
void ndt_upright_result(const struct ndt_upright *upright, struct ndt_search_result *result);

/* Points above the ground, levelled, one per column and band. */
struct ndt_banded_points {
    uint32_t count;
    float x_m[NDT_SEARCH_POINTS], y_m[NDT_SEARCH_POINTS];
    uint8_t mask[NDT_SEARCH_POINTS];
};

/* The scan seen by a sensor at one height above the ground. */
struct ndt_height_view {
    double height_m;
    struct ndt_banded_points dense, refine;
    struct ndt_cloud align; /* points of the alignment; those above the ground first */
    size_t align_above;     /* number of points above the ground among them */
    uint32_t above;         /* points above the ground in all */
};

struct ndt_scan_view {
    struct ndt_preprocessor *filter;
    const struct ndt_cloud *points; /* filtered; borrowed from filter */
    int has_ground;
    double up[3];      /* normal of the ground, or z */
    double R_level[9]; /* row-major: the frame of the scan to one with `up` as z */
    double ground_ratio;
    float *level_m[3]; /* levelled points; in one allocation */
    uint64_t *keys;    /* scratch, one per point */
    uint8_t *seen;     /* scratch: bands of each column of which a point was taken */
    size_t capacity;
    uint32_t sight_count; /* 1 with ground */
    struct ndt_height_view height_views[NDT_SEARCH_HEIGHTS];
    struct ndt_cloud final; /* points of the final alignment */
    double reach_m;         /* reach of the points */
    double sectors;
};

NDT_MUST_CHECK enum ndt_status ndt_scan_view_open(struct ndt_scan_view *view, struct ndt_error *err);
void ndt_scan_view_close(struct ndt_scan_view *view);
/* Prepares an upright scan. above_ground_m: see struct ndt_search_region. */
NDT_MUST_CHECK enum ndt_status ndt_scan_view_set(struct ndt_scan_view *view, const struct ndt_search_params *params,
                                                 double above_ground_m, const struct ndt_cloud *scan,
                                                 struct ndt_error *err);

/* The plane normal . p + height = 0 below the origin (scan_ground.c); ndt_scan_ground returns 0 where there is
 * none. */
struct ndt_ground_plane {
    double normal[3], height_m;
    double ratio; /* inliers over points near the sensor */
};
int ndt_scan_ground(const struct ndt_cloud *points, const struct ndt_search_params *params,
                    struct ndt_ground_plane *out);

#endif
