#include "scan.h"

#include <math.h>
#include <string.h>

/* The reference moment of the sweep, to which its points are moved. */
static int64_t reference_moment_ns(const struct ndtd_scan *scan)
{
    return scan->stamp_ns + llround(scan->sweep.reference_s * 1e9);
}

int ndtd_scan_predict(struct ndtd_scan *scan, struct ndt_track *track, int uses_gnss)
{
    const int64_t reference_ns = reference_moment_ns(scan);
    const struct ndt_pose origin = ndt_pose_identity();
    scan->has_prediction = ndt_track_predict(track, reference_ns, &scan->predicted);
    if (!scan->has_prediction)
        ndt_track_start_state(track, reference_ns, &origin, NULL, NULL, &scan->predicted);
    else if (uses_gnss)
        scan->uses_gnss = ndt_track_use_gnss(track, &scan->predicted) == 1;
    return scan->has_prediction;
}

void ndtd_scan_prior(const struct ndtd_scan *scan, const struct ndt_track_state *state, struct ndt_prior *prior)
{
    prior->T_map_sensor = ndt_pose_compose(&state->T_map_base, &scan->T_base_sensor);
    ndt_track_pose_covariance(state, &scan->T_base_sensor, prior->covariance);
}

void ndtd_scan_motion(const struct ndtd_scan *scan, const struct ndt_track *track,
                      const struct ndt_track_state *state, struct ndtd_sweep_motion *motion)
{
    motion->twist = state->twist;
    ndt_track_sweep_motion(track, state, &scan->sweep, &scan->T_base_sensor, &motion->sensor);
}

double ndtd_scan_motion_difference_m(const struct ndt_sweep *sweep, const struct ndt_twist *a,
                                     const struct ndt_twist *b)
{
    double v2 = 0, w2 = 0;
    for (int i = 0; i < 3; i++) {
        v2 += pow(a->v_mps[i] - b->v_mps[i], 2);
        w2 += pow(a->w_radps[i] - b->w_radps[i], 2);
    }
    return fmax(sweep->end_s, -sweep->begin_s) * (sqrt(v2) + NDTD_TYPICAL_RANGE_M * sqrt(w2));
}

int ndtd_gnss_reaches(const struct ndtd_gnss_fix *gnss, int64_t stamp_ns)
{
    return gnss->is_known && fabs(ndt_track_seconds(gnss->message.stamp_ns, stamp_ns)) <= NDT_TRACK_GNSS_REACH_S;
}
