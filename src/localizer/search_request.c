#include "search_request.h"

#include <math.h>
#include <string.h>

/* Angle above which a base counts as tilted. The search corrects a lean of 12 deg by the ground, and an
 * acceleration mistaken for gravity feigns a lean of 14 deg at most. */
static const double LEANS_RAD = 20 * 0.017453292519943295;

void ndtd_scan_viewpoint(const struct ndtd_scan *scan, const struct ndtd_extrinsics *frames, double viewpoint_m[3])
{
    memcpy(viewpoint_m, scan->T_base_sensor.t_m, 3 * sizeof(*viewpoint_m));
    for (size_t i = 0; frames->merge_sensors && i < frames->sensor_count; i++)
        for (int k = 0; k < 3; k++)
            viewpoint_m[k] += frames->sensors[i].T_base_sensor.t_m[k] / (double)frames->sensor_count;
}

/* Pose of the base in the upright frame at its place. */
static struct ndt_pose level_base(const struct ndt_track *track, int64_t stamp_ns)
{
    struct ndt_pose T_upright_base = ndt_pose_identity();
    double up[3];
    if (ndt_track_gravity(track, stamp_ns, up) && acos(fmax(-1, fmin(1, up[2]))) > LEANS_RAD)
        (void)ndt_search_upright(up, &T_upright_base);
    return T_upright_base;
}

struct ndtd_search_request ndtd_search_request_of(const struct ndtd_matcher *matcher,
                                                  const struct ndtd_settings *settings,
                                                  enum ndtd_search_owner owner)
{
    const struct ndtd_scan *scan = &matcher->scan;
    struct ndtd_search_request request = {.owner = owner,
                                          .scan = &matcher->raw,
                                          .seq = scan->seq,
                                          .stamp_ns = scan->predicted.stamp_ns,
                                          .T_base_sensor = scan->T_base_sensor};
    const struct ndt_pose T_upright_base = level_base(matcher->track, scan->predicted.stamp_ns);
    struct ndt_pose T_view_sensor = scan->T_base_sensor;
    double viewpoint_m[3];
    ndtd_scan_viewpoint(scan, &settings->frames, viewpoint_m);
    for (int k = 0; k < 3; k++)
        T_view_sensor.t_m[k] -= viewpoint_m[k];
    request.T_upright_sensor = ndt_pose_compose(&T_upright_base, &T_view_sensor);
    return request;
}
