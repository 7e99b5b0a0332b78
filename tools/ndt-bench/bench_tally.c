#include "bench_tally.h"

static const double DEG_PER_RAD = 180.0 / 3.14159265358979323846;

static enum ndt_status add_error(struct bench_tally *tally, double off_m, double off_deg, struct ndt_error *err)
{
    enum ndt_status status = ndtd_samples_add(&tally->error_m, off_m, err);
    return status == NDT_OK ? ndtd_samples_add(&tally->error_deg, off_deg, err) : status;
}

enum ndt_status bench_tally_add(struct bench_tally *tally, const struct bench_found *found,
                                const struct ndt_pose *truth, struct ndt_error *err)
{
    const double off_m = ndt_pose_distance_m(truth, &found->T_map_sensor);
    const double off_deg = ndt_pose_angle_rad(truth, &found->T_map_sensor) * DEG_PER_RAD;
    const int good = off_m <= BENCH_SUCCESS_M && off_deg <= BENCH_SUCCESS_DEG;
    tally->starts++;
    tally->recovered += good ? 1 : 0;
    tally->believed_wrong += !good && found->converged ? 1 : 0;
    enum ndt_status status = ndtd_samples_add(&tally->align_ms, found->took_us * 1e-3, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&tally->evaluations, found->evaluations, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&tally->iterations, found->iterations, err);
    return status == NDT_OK && good ? add_error(tally, off_m, off_deg, err) : status;
}

void bench_tally_free(struct bench_tally *tally)
{
    ndtd_samples_free(&tally->align_ms);
    ndtd_samples_free(&tally->evaluations);
    ndtd_samples_free(&tally->iterations);
    ndtd_samples_free(&tally->error_m);
    ndtd_samples_free(&tally->error_deg);
}

double bench_tally_success(const struct bench_tally *tally)
{
    return tally->starts ? (double)tally->recovered / (double)tally->starts : 0;
}
