/** @file
 * @brief confidence: alignments from right and wrong starts, with and without a prior, as rows of features and
 * truth for fitting and checking the confidence of poses (tools/dev/fits/fit.py confidence). */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "ndt/random.h"
#include "ndt_io/output_file.h"
#include "ndt_track/confidence.h"
#include "ndt_track/track.h"

/* Vehicles start level: roll and pitch are off by at most this, the height by this part of the offset. */
static const double LEVEL_DEG = 2, HEIGHT_PART = 0.1;

/* The common part of all rows of one offset and prior. */
struct kind {
    const struct bench_offset *offset;
    double prior; /* deviation of the prior, as a part of the offset; 0: none */
    size_t rows, right, converged, believed_wrong;
};

/* One alignment. */
struct attempt {
    struct ndt_pose guess;
    struct ndt_align_result result;
    struct ndt_pose found; /* found pose; with a prior: the estimate */
    struct ndt_confidence_features features;
    double weakest;
    double off_m, off_deg;
    int is_right;
};

struct run {
    const struct bench_options *options;
    struct bench_candidate *candidate;
    struct ndt_output out;
    uint64_t starts;
};

static struct ndt_pose start_near(uint64_t seed, uint64_t number, const struct ndt_pose *truth,
                                  const struct bench_offset *offset)
{
    struct ndt_random random = ndt_random_stream(seed, number, 1);
    const double level_deg = fmin(LEVEL_DEG, offset->turn_deg);
    const double along_rad = ndt_random_between(&random, -180, 180) * BENCH_DEG;
    const double shift_m = ndt_random_between(&random, 0, offset->shift_m);
    const double rise_m = ndt_random_between(&random, -1, 1) * HEIGHT_PART * offset->shift_m;
    double rpy_rad[3];
    for (int i = 0; i < 3; i++)
        rpy_rad[i] = ndt_random_between(&random, -1, 1) * (i < 2 ? level_deg : offset->turn_deg) * BENCH_DEG;
    const struct ndt_pose turn = ndt_pose_from_rpy((double[3]){0, 0, 0}, rpy_rad);
    struct ndt_pose pose = ndt_pose_compose(truth, &turn);
    pose.t_m[0] += shift_m * cos(along_rad);
    pose.t_m[1] += shift_m * sin(along_rad);
    pose.t_m[2] += rise_m;
    return pose;
}

/* The estimator at the start, with the true twist, as if tracking had led there. */
static void predict(const struct run *run, const struct kind *kind, const struct ndt_pose *start,
                    const struct ndt_twist *twist, struct ndt_track *track, struct ndt_track_state *predicted)
{
    double covariance[36] = {0};
    for (int i = 0; i < 6; i++) {
        const double deviation = kind->prior * (i < 3 ? kind->offset->shift_m : kind->offset->turn_deg * BENCH_DEG);
        covariance[7 * i] = deviation * deviation;
    }
    ndt_track_init(track, &run->options->settings.track);
    ndt_track_reset(track, 0, start, twist, covariance);
    (void)ndt_track_predict(track, 0, predicted);
}

/* The estimate after the alignment. */
static struct ndt_twist update(const struct ndt_track *track, const struct ndt_track_state *predicted,
                               struct attempt *attempt)
{
    const struct ndt_align_result *result = &attempt->result;
    const struct ndt_track_measurement measurement = {.T_map_base = result->T_map_sensor,
                                                      .observation = &result->observation,
                                                      .twist = predicted->twist,
                                                      .is_converged = result->outcome == NDT_CONVERGED};
    struct ndt_track_state updated;
    ndt_track_update(track, predicted, &measurement, &updated, &attempt->features.innovation, &attempt->weakest);
    attempt->found = updated.T_map_base;
    const struct ndt_pose moved = ndt_pose_between(&result->T_map_sensor, &attempt->found);
    return ndt_pose_log(&moved, 1);
}

static void set_features(const struct run *run, const struct ndt_track *track,
                         const struct ndt_track_state *predicted, const double prior[36], struct attempt *attempt)
{
    const struct ndt_align_result *result = &attempt->result;
    struct ndt_confidence_features *features = &attempt->features;
    struct ndt_weighed_observation weighed;
    struct ndt_twist moved = {0};
    ndt_confidence_set_scores(features, &result->scores, &run->candidate->setup.align);
    if (!result->has_observation)
        return;
    ndt_observation_weigh(&result->observation, &track->params.noise, &weighed);
    attempt->weakest = weighed.weakest;
    if (prior)
        moved = update(track, predicted, attempt);
    ndt_confidence_set_hold(features, &result->observation, prior, &moved);
}

static void assess(const struct bench_options *options, const struct ndt_pose *truth, struct attempt *attempt)
{
    attempt->off_m = ndt_pose_distance_m(truth, &attempt->found);
    attempt->off_deg = ndt_pose_angle_rad(truth, &attempt->found) / BENCH_DEG;
    attempt->is_right = !options->is_elsewhere && attempt->off_m <= NDT_CONFIDENCE_RIGHT_M &&
                        attempt->off_deg <= NDT_CONFIDENCE_RIGHT_DEG;
}

static enum ndt_status try_start(struct run *run, const struct kind *kind, const struct bench_scan *scan,
                                 const struct ndt_twist *twist, struct attempt *attempt, struct ndt_error *err)
{
    struct ndt_align_params params = run->candidate->setup.align;
    struct ndt_align_result *result = &attempt->result;
    static struct ndt_track track;
    const struct ndt_pose identity = ndt_pose_identity();
    struct ndt_track_state predicted;
    struct ndt_prior prior;
    *attempt =
        (struct attempt){.guess = start_near(run->options->seed, run->starts++, &scan->T_map_sensor, kind->offset)};
    predict(run, kind, &attempt->guess, twist, &track, &predicted);
    prior.T_map_sensor = predicted.T_map_base;
    ndt_track_pose_covariance(&predicted, &identity, prior.covariance);
    params.wants_observation = 1;
    params.prior = kind->prior > 0 ? &prior : NULL;
    const enum ndt_status status =
        ndt_align(run->candidate->aligner, &params, &scan->cloud, &attempt->guess, result, err);
    attempt->found = result->T_map_sensor;
    set_features(run, &track, &predicted, kind->prior > 0 ? prior.covariance : NULL, attempt);
    assess(run->options, &scan->T_map_sensor, attempt);
    return status;
}

static void number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, ",%.5g", value);
    else
        fputs(isinf(value) ? ",inf" : ",", file);
}

static const char *const heading = "scan,shift_m,turn_deg,prior,start_m,start_deg,points,leaf_m,nvtl_normalized,"
                                   "match_ratio,coverage,weakest,slack_m,moved_m,"
                                   "innovation,outcome,error_m,error_deg,right,confidence\n";

static void put_line(const struct run *run, const struct kind *kind, size_t number_of_scan,
                     const struct bench_scan *scan, const struct attempt *attempt)
{
    FILE *file = run->out.file;
    const struct ndt_confidence_features *features = &attempt->features;
    const double values[] = {kind->offset->shift_m,
                             kind->offset->turn_deg,
                             kind->prior,
                             ndt_pose_distance_m(&scan->T_map_sensor, &attempt->guess),
                             ndt_pose_angle_rad(&scan->T_map_sensor, &attempt->guess) / BENCH_DEG,
                             (double)scan->cloud.count,
                             features->leaf_m,
                             features->nvtl_normalized,
                             features->match_ratio,
                             features->coverage,
                             attempt->weakest,
                             features->slack_m,
                             features->moved_m,
                             features->innovation};
    fprintf(file, "%zu", number_of_scan);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        number(file, values[i]);
    fprintf(file, ",%s", ndt_outcome_name(attempt->result.outcome));
    number(file, attempt->off_m);
    number(file, attempt->off_deg);
    fprintf(file, ",%d,%.5f\n", attempt->is_right, ndt_confidence(features));
}

static enum ndt_status measure(struct run *run, const struct bench_source *source, struct kind *kind,
                               struct ndt_error *err)
{
    const struct bench_scans *scans = &source->scans[0];
    const struct ndt_twist still = {0};
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; status == NDT_OK && i < scans->count; i++)
        for (uint64_t round = 0; status == NDT_OK && round < run->options->rounds; round++) {
            const struct ndt_twist *twist = source->recording ? &source->recording->scans[i].twist : &still;
            struct attempt attempt;
            status = try_start(run, kind, &scans->items[i], twist, &attempt, err);
            if (status != NDT_OK)
                break;
            const int is_converged = attempt.result.outcome == NDT_CONVERGED;
            kind->rows++;
            kind->right += attempt.is_right != 0;
            kind->converged += is_converged != 0;
            kind->believed_wrong += is_converged && !attempt.is_right;
            if (run->out.file)
                put_line(run, kind, i, &scans->items[i], &attempt);
        }
    return status;
}

static void put_row(const struct kind *kind, struct bench_report *report, struct bench_table *table)
{
    const double rows = (double)kind->rows;
    bench_row(report, table);
    bench_text(table, "off_by_up_to", "%g m %g deg", kind->offset->shift_m, kind->offset->turn_deg);
    bench_number(table, "prior", 3, kind->prior);
    bench_number(table, "starts", 0, rows);
    bench_number(table, "right_percent", 1, 100 * (double)kind->right / rows);
    bench_number(table, "converged_percent", 1, 100 * (double)kind->converged / rows);
    bench_number(table, "believed_wrong_percent", 2, 100 * (double)kind->believed_wrong / rows);
}

static enum ndt_status measure_all(struct run *run, struct bench_source *source, struct bench_report *report,
                                   struct ndt_error *err)
{
    const struct bench_options *options = run->options;
    struct bench_table *table =
        bench_report_table(report, "confidence",
                           "Confidence: alignments from starts within off_by_up_to of the truth; prior: its "
                           "deviation as a part of that, 0: none; right: within 0.5 m and 3 deg; believed_wrong: "
                           "converged, but not right");
    enum ndt_status status = NDT_OK;
    for (size_t k = 0; k < options->offsets.count; k++)
        for (size_t p = 0; status == NDT_OK && p < options->priors.count; p++) {
            struct kind kind = {.offset = &options->offsets.items[k], .prior = options->priors.values[p]};
            status = measure(run, source, &kind, err);
            if (status == NDT_OK)
                put_row(&kind, report, table);
        }
    return status;
}

enum ndt_status bench_confidence(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    struct run run = {.options = source->options};
    enum ndt_status status = bench_source_prepare(source, report, err);
    if (status != NDT_OK)
        return status;
    run.candidate = &source->candidates.items[0];
    if (!bench_candidate_works(run.candidate))
        return ndt_fail(err, NDT_ERR_DEVICE, "%s", run.candidate->why.text);
    if (source->options->csv) {
        status = ndt_output_open(&run.out, source->options->csv, err);
        if (status != NDT_OK)
            return status;
        fputs(heading, run.out.file);
    }
    status = measure_all(&run, source, report, err);
    if (status == NDT_OK && run.out.file)
        return ndt_output_commit(&run.out, err);
    ndt_output_discard(&run.out);
    return status;
}
