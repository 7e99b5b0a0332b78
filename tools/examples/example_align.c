/** @file
 * @brief One scan, one map, one guess: the aligned pose and its covariance.
 *   example_align MAP SCAN X,Y,Z,YAW_DEG     MAP and SCAN: PCD, PLY or KITTI .bin
 * Needs the libraries core and io of ndtd. Exit codes: 0 converged, 1 not converged, 2 usage, 3 failed. */
#include <stdio.h>
#include <string.h>

#include <ndt/align.h>
#include <ndt/backend.h>
#include <ndt/map.h>
#include <ndt/preprocess.h>
#include <ndt_io/cloud_file.h>
#include <ndt_io/map_file.h>

/* Objects that the program opens, so that one place closes them. */
struct matcher {
    struct ndt_map *map;
    struct ndt_cloud scan;
    struct ndt_preprocessor *preprocessor;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
};

static void close_all(struct matcher *m)
{
    ndt_aligner_destroy(m->aligner);
    ndt_cpu_backend.close(m->backend);
    ndt_preprocessor_destroy(m->preprocessor);
    ndt_cloud_free(&m->scan);
    ndt_map_release(m->map);
}

static enum ndt_status open_all(struct matcher *m, const char *map, const char *scan, struct ndt_error *err)
{
    struct ndt_map_config map_config;
    struct ndt_backend_config config;
    enum ndt_status status;
    ndt_map_config_default(&map_config); /* levels of 4, 2 and 1 m */
    ndt_backend_config_default(&config);
    if ((status = ndt_map_load(&m->map, map, &map_config, err)) != NDT_OK ||
        (status = ndt_cloud_read(&m->scan, scan, err)) != NDT_OK ||
        (status = ndt_preprocessor_create(&m->preprocessor, err)) != NDT_OK ||
        (status = ndt_cpu_backend.open(&m->backend, &config, err)) != NDT_OK ||
        (status = ndt_aligner_create(&m->aligner, m->backend, err)) != NDT_OK)
        return status;
    return ndt_aligner_set_map(m->aligner, m->map, err);
}

/* Thins the scan to the points that are matched, then aligns them. */
static enum ndt_status align(struct matcher *m, const struct ndt_pose *T_map_guess, struct ndt_align_result *result,
                             struct ndt_error *err)
{
    struct ndt_preprocess_params thinning;
    struct ndt_align_params params;
    struct ndt_sweep sweep;
    const struct ndt_cloud *points;
    enum ndt_status status;
    ndt_preprocess_params_default(&thinning);
    ndt_align_params_default(&params);
    if ((status = ndt_preprocess_sweep(&thinning, &m->scan, &sweep, err)) != NDT_OK ||
        (status = ndt_preprocess(m->preprocessor, &thinning, &m->scan, &sweep, 0, NULL, &points, err)) != NDT_OK)
        return status;
    return ndt_align(m->aligner, &params, points, T_map_guess, result, err);
}

static void print_result(const struct ndt_align_result *result)
{
    const struct ndt_pose *T = &result->T_map_sensor;
    int i;
    printf("outcome %s, %d iterations\n", ndt_outcome_name(result->outcome), result->iterations);
    printf("pose %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", T->t_m[0], T->t_m[1], T->t_m[2], T->q_xyzw[0],
           T->q_xyzw[1], T->q_xyzw[2], T->q_xyzw[3]);
    for (i = 0; result->has_covariance && i < 6; i++) {
        const double *row = result->covariance + 6 * i;
        printf("covariance %.6e %.6e %.6e %.6e %.6e %.6e\n", row[0], row[1], row[2], row[3], row[4], row[5]);
    }
}

int main(int argc, char **argv)
{
    struct matcher matcher;
    struct ndt_align_result result;
    struct ndt_pose T_map_guess;
    struct ndt_error err;
    double t_m[3], rpy_rad[3] = {0, 0, 0};
    char more;
    if (argc != 4 || sscanf(argv[3], "%lf,%lf,%lf,%lf%c", &t_m[0], &t_m[1], &t_m[2], &rpy_rad[2], &more) != 4) {
        fprintf(stderr, "usage: example_align MAP SCAN X,Y,Z,YAW_DEG\n");
        return 2;
    }
    rpy_rad[2] *= 3.14159265358979323846 / 180;
    T_map_guess = ndt_pose_from_rpy(t_m, rpy_rad);
    memset(&matcher, 0, sizeof(matcher));
    ndt_cloud_init(&matcher.scan);
    enum ndt_status status = open_all(&matcher, argv[1], argv[2], &err);
    if (status == NDT_OK)
        status = align(&matcher, &T_map_guess, &result, &err);
    if (status == NDT_OK)
        print_result(&result);
    else
        fprintf(stderr, "example_align: %s\n", err.text);
    close_all(&matcher);
    return status != NDT_OK ? 3 : result.outcome != NDT_CONVERGED;
}
