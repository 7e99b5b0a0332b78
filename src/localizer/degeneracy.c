/* Degenerate directions: decides whether the scan itself determines the pose along a direction in which it could
 * slide.
 *
 * Along a corridor the curvature of the score comes from the lattice of voxels as much as from the doors: it tells
 * how sharp an optimum is, and not whether it is the right one. The scan is therefore scored along each direction
 * that it hardly observes, as far as the prediction leaves open. Its observation along the direction counts only
 * where every other pose fits significantly worse; otherwise the prediction alone holds the pose there. Where
 * odometry makes that prediction, a pose that fits significantly better is also sought along directions that the
 * scan observes somewhat better: odometry may be wrong. */
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"
#include "ndt_track/confidence.h"
#include "relocalizer_state.h"

/* Ratio below which a direction is weak: the scan holds the pose to no better than 0.017 m / sqrt(ratio) (see
 * ndt_track/confidence.h). */
static const double WEAK_RATIO = 0.0125;
/* Ratio up to which odometry may hold the pose instead of the scan: along a street of equal houses the scan fits as
 * usual metres away, and better at the right place. */
static const double HELD_RATIO = 0.06;
/* Distance below which poses are not told apart, and the step along a line, which hits every peak: a peak is as
 * wide as half a voxel of 1 m. */
static const double NEAREST_M = 1, STEP_M = 0.4;
/* Reach of the search for other poses: deviations of the prediction, and the limits of the reach. Beyond the upper
 * limit, the prediction leaves more open than can be tried. */
static const double SIGMAS = 5, LEAST_REACH_M = 3, MOST_REACH_M = 10;
enum { LINES_MOST = 2, POSES_MOST = 64, ALIGNED_MOST = 3 };
/* Poses beside the result, to both sides: nearer than STEP_M the lattice of voxels makes a better fit by chance. */
enum { BESIDE_MOST = 10 };
/* Lead of a pose beside the result that one scan may have by chance, and the most that one scan adds. */
static const double BY_CHANCE = 1, MOST_OF_A_SCAN = 3;

/* A weak direction of the scan, and poses along it. */
struct line {
    double axis[6], step[6]; /* see ndt_observation_directions, ndt_observation_step */
    int is_weak; /* the scan hardly observes it; 0: examined while no pose was verified yet, or is_held */
    int is_held; /* odometry may hold the pose here: another pose counts only if it fits better */
    double reach_m;
    size_t count; /* poses along the line; the last one, behind them, is the result */
    struct ndt_pose T_map_sensor[POSES_MOST + 1];
    struct ndt_pose_score score[POSES_MOST + 1];
};

/* Deviation of the position alone along an axis: an unknown turn moves nothing along the direction. */
static double deviation_along(const double axis[6], const double covariance[36])
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += axis[i] * covariance[6 * i + j] * axis[j];
    return sqrt(fmax(sum, 0));
}

static double distance_along(const double axis[6], const struct ndt_pose *from, const struct ndt_pose *to)
{
    const struct ndt_pose off = ndt_pose_between(to, from);
    return fabs(axis[0] * off.t_m[0] + axis[1] * off.t_m[1] + axis[2] * off.t_m[2]);
}

static struct ndt_pose moved(const struct ndt_pose *T, const double step[6], double by_m)
{
    const struct ndt_twist along = {.v_mps = {step[0], step[1], step[2]}, .w_radps = {step[3], step[4], step[5]}};
    const struct ndt_pose D = ndt_pose_exp(&along, by_m);
    return ndt_pose_compose(T, &D);
}

/* ---- poses along a line ---- */

/* Sets the poses along the line, nearest first: even numbers lie ahead, odd ones behind. */
static void set_poses(const struct ndtd_relocalization *now, struct line *line)
{
    const struct ndt_pose *T_map_sensor = &now->alignment->result.T_map_sensor;
    line->count = 0;
    for (double by_m = NEAREST_M; by_m <= line->reach_m && line->count + 2 <= POSES_MOST; by_m += STEP_M) {
        line->T_map_sensor[line->count++] = moved(T_map_sensor, line->step, by_m);
        line->T_map_sensor[line->count++] = moved(T_map_sensor, line->step, -by_m);
    }
    line->T_map_sensor[line->count] = *T_map_sensor;
}

static enum ndt_status score_poses(const struct ndtd_relocalization *now, const struct ndt_align_level *level,
                                   const struct ndt_pose *T_map_sensor, size_t count, struct ndt_pose_score *score,
                                   struct ndt_error *err)
{
    const struct ndt_score_job scoring = {.leaf_m = level->leaf_m,
                                          .neighbours = level->neighbours,
                                          .scan = now->matcher->points,
                                          .count = count,
                                          .T_map_sensor = T_map_sensor};
    size_t done;
    return ndt_aligner_score(now->matcher->aligner, &scoring, score, &done, err);
}

static int is_peak(const struct line *line, size_t i)
{
    const double score = line->score[i].score;
    return (i < 2 || score >= line->score[i - 2].score) &&
           (i + 2 >= line->count || score >= line->score[i + 2].score);
}

/* The highest peak that was not taken before; line->count: none is left. */
static size_t next_peak(const struct line *line, int is_taken[POSES_MOST])
{
    size_t best = line->count;
    for (size_t i = 0; i < line->count; i++)
        if (!is_taken[i] && is_peak(line, i) &&
            (best == line->count || line->score[i].score > line->score[best].score))
            best = i;
    if (best < line->count)
        is_taken[best] = 1;
    return best;
}

/* Adds the highest peaks of a level as priors of the batch, if they may fit as well as the result once they are
 * aligned; where odometry may hold the pose, only those that fit better already. */
static enum ndt_status choose_peaks(const struct ndtd_relocalization *now, const struct ndt_align_level *level,
                                    struct line *line, size_t *count, struct ndt_error *err)
{
    const struct ndt_pose *result = &now->alignment->result.T_map_sensor;
    int is_taken[POSES_MOST] = {0};
    const enum ndt_status status = score_poses(now, level, line->T_map_sensor, line->count + 1, line->score, err);
    for (size_t tried = 0; status == NDT_OK && tried < ALIGNED_MOST; tried++) {
        const size_t i = next_peak(line, is_taken);
        if (i == line->count)
            break;
        if (line->is_held
                ? line->score[i].score > line->score[line->count].score
                : line->reach_m > LEAST_REACH_M ||
                      ndtd_matcher_significance(now->matcher, result, &line->T_map_sensor[i]) < NDTD_SIGNIFICANT)
            now->matcher->batch.priors[(*count)++].T_map_sensor = line->T_map_sensor[i];
    }
    return status;
}

/* Adds the peaks of the line. Near the result the finest level shows all of them. Farther away the line may miss
 * peaks that are narrow across it: the next coarser level shows these, and all are aligned. */
static enum ndt_status choose_all_peaks(const struct ndtd_relocalization *now, struct line *line, size_t *count,
                                        struct ndt_error *err)
{
    const struct ndt_align_params *align = &now->relocalizer->settings->align;
    const struct ndt_align_level *finest = &align->levels[align->level_count - 1];
    *count = 0;
    set_poses(now, line);
    enum ndt_status status = choose_peaks(now, finest, line, count, err);
    if (status == NDT_OK && line->reach_m > LEAST_REACH_M && align->level_count > 1)
        status = choose_peaks(now, finest - 1, line, count, err);
    return status;
}

/* ---- the alignment ---- */

static void update(const struct ndtd_relocalization *now)
{
    const struct ndtd_matcher *matcher = now->matcher;
    ndtd_alignment_update(now->alignment, now->scan, matcher->track, &matcher->motion[matcher->pass].twist);
}

static void forget_direction(const struct ndtd_relocalization *now, const struct line *line)
{
    struct ndtd_alignment *alignment = now->alignment;
    struct ndtd_direction *direction = &alignment->degenerate[alignment->degenerate_count++];
    memcpy(direction->axis, line->axis, sizeof(direction->axis));
    memcpy(direction->step, line->step, sizeof(direction->step));
    if (alignment->is_updated)
        update(now);
}

/* Aligns from the priors of the batch, which have the covariance of a guess. */
static enum ndt_status align_peaks(const struct ndtd_relocalization *now, const struct ndt_align_params *params,
                                   size_t count, struct ndt_error *err)
{
    for (size_t i = 0; i < count; i++)
        ndtd_matcher_wide_covariance(now->matcher, now->matcher->batch.priors[i].covariance);
    return ndtd_matcher_align_batch(now->matcher, params, count, err);
}

/* Lead that tells two places apart, see ndtd_matcher_log_odds. */
static double significant_lead(const struct ndtd_relocalization *now)
{
    return now->scan->distorted_s > 0 ? 2 * NDTD_SIGNIFICANT : NDTD_SIGNIFICANT;
}

/* Whether a pose of the sensor is another place than the predicted one. */
static int is_elsewhere(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor)
{
    struct ndt_prior prior;
    ndtd_scan_prior(now->scan, &now->alignment->predicted, &prior);
    return ndtd_are_distinct(&prior.T_map_sensor, T_map_sensor);
}

/* Whether the scan fits significantly better at a pose than at all distinct results of the batch. *best: the number
 * of the result that fits best, and significantly better than the pose; count: there is none. */
static int is_alone(const struct ndtd_relocalization *now, const struct ndt_pose *T_map_sensor, size_t count,
                    size_t *best)
{
    const struct ndt_align_result *found = now->matcher->batch.results;
    const double least = is_elsewhere(now, T_map_sensor) ? significant_lead(now) : NDTD_SIGNIFICANT;
    double most = significant_lead(now);
    int alone = 1;
    *best = count;
    for (size_t i = 0; i < count; i++) {
        if (!ndtd_outcome_is_usable(found[i].outcome) || !ndtd_are_distinct(&found[i].T_map_sensor, T_map_sensor))
            continue;
        const double better = ndtd_matcher_significance(now->matcher, T_map_sensor, &found[i].T_map_sensor);
        alone = alone && better >= least;
        if (-better < most)
            continue;
        most = -better;
        *best = i;
    }
    return alone;
}

/* Aligns from the peaks. *alone: the scan fits significantly better at the alignment than at all of them. A result
 * that fits significantly better becomes the alignment, and *is_moved is set. */
static enum ndt_status try_peaks(struct ndtd_relocalization *now, size_t count, int *alone, int *is_moved,
                                 struct ndt_error *err)
{
    struct ndt_align_params params = ndtd_matcher_params(now->matcher, &now->alignment->prior);
    const struct ndt_pose before = now->alignment->result.T_map_sensor;
    size_t best, ignored;
    *alone = count == 0;
    *is_moved = 0;
    if (count == 0)
        return NDT_OK;
    if (!ndtd_matcher_has_time(now->matcher, &params)) {
        now->decision->is_cut_short = 1;
        return NDT_OK;
    }
    const enum ndt_status status = align_peaks(now, &params, count, err);
    if (status != NDT_OK)
        return status;
    *alone = is_alone(now, &before, count, &best);
    if (best == count)
        return NDT_OK;
    *is_moved = 1;
    *alone = is_alone(now, &now->matcher->batch.results[best].T_map_sensor, count, &ignored);
    ndtd_take_from_batch(now, best);
    return NDT_OK;
}

/* Distance along the direction that the vehicle may be from the result, by the covariance of a state. */
static double reach_from(const struct ndtd_relocalization *now, const struct ndt_track_state *state,
                         const double axis[6])
{
    struct ndt_prior prior;
    ndtd_scan_prior(now->scan, state, &prior);
    return fmax(LEAST_REACH_M, NEAREST_M + SIGMAS * deviation_along(axis, prior.covariance) +
                                   distance_along(axis, &prior.T_map_sensor, &now->alignment->result.T_map_sensor));
}

/* Predicts the pose from the last verified one, or from the given one: unconfirmed scans since then, which the
 * estimator or a hypothesis followed, do not count. 0: neither is known. */
static int predict_from_known(const struct ndtd_relocalization *now, struct ndt_track_state *expected)
{
    const struct ndt_track_state *known = ndtd_relocalizer_reference(now->relocalizer);
    if (known)
        ndt_track_predict_from(now->matcher->track, known, now->alignment->predicted.stamp_ns, expected);
    return known != NULL;
}

/* Whether the expected state holds the pose along a direction. */
static int is_held(const struct ndtd_relocalization *now, const struct ndt_track_state *expected,
                   const double axis[6])
{
    double covariance[36];
    ndt_track_pose_covariance(expected, &now->scan->T_base_sensor, covariance);
    return erf(NDT_CONFIDENCE_RIGHT_M / (sqrt(2) * fmax(deviation_along(axis, covariance), 1e-6))) >=
           now->relocalizer->settings->min_confidence;
}

/* Decides whether the scan determines its pose along a direction; *is_moved: the alignment is at another pose now.
 */
static enum ndt_status examine(struct ndtd_relocalization *now, struct line *line, int *is_moved,
                               struct ndt_error *err)
{
    struct ndt_track_state expected;
    const int is_known = predict_from_known(now, &expected);
    const double open_m = is_known ? reach_from(now, &expected, line->axis) : INFINITY;
    int alone = 0;
    *is_moved = 0;
    line->reach_m = reach_from(now, &now->alignment->predicted, line->axis);
    if (open_m <= MOST_REACH_M)
        line->reach_m = fmax(line->reach_m, open_m);
    else if (line->is_weak)
        now->decision->is_ambiguous = 1;
    if (!line->is_weak)
        line->reach_m = fmin(line->reach_m, MOST_REACH_M);
    const int was_cut_short = now->decision->is_cut_short;
    if (line->reach_m <= MOST_REACH_M) {
        size_t count;
        enum ndt_status status = choose_all_peaks(now, line, &count, err);
        if (status == NDT_OK)
            status = try_peaks(now, count, &alone, is_moved, err);
        if (status != NDT_OK)
            return status;
    }
    if (line->is_held) /* too little time is no reason to doubt what odometry and the scan say */
        now->decision->is_cut_short = was_cut_short;
    if (alone || line->is_held)
        return NDT_OK;
    forget_direction(now, line);
    if (ndtd_relocalizer_is_active(now->relocalizer) && !(is_known && is_held(now, &expected, line->axis)))
        now->decision->is_ambiguous = 1;
    return NDT_OK;
}

/* ---- odometry ---- */

/* Raises *most to the lead over the result of the best pose beside it, along a direction that odometry may hold.
 * Where nothing undoes the motion within the sweep, points of several blocks move together: half of it counts. */
static enum ndt_status lead_beside(const struct ndtd_relocalization *now, const struct line *line, double *most,
                                   struct ndt_error *err)
{
    const struct ndt_align_params *align = &now->relocalizer->settings->align;
    const struct ndt_pose *result = &now->alignment->result.T_map_sensor;
    struct ndt_pose T_map_sensor[BESIDE_MOST];
    struct ndt_pose_score score[BESIDE_MOST];
    size_t best = 0;
    for (int i = 0; i < BESIDE_MOST; i++)
        T_map_sensor[i] = moved(result, line->step, (i % 2 ? -STEP_M : STEP_M) * (1 + i / 2));
    const enum ndt_status status =
        score_poses(now, &align->levels[align->level_count - 1], T_map_sensor, BESIDE_MOST, score, err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 1; i < BESIDE_MOST; i++)
        if (score[i].score > score[best].score)
            best = i;
    const double lead = -ndtd_matcher_significance(now->matcher, result, &T_map_sensor[best]);
    *most = fmax(*most, now->scan->distorted_s > 0 ? lead / 2 : lead);
    return NDT_OK;
}

/* Adds up what the scans say against odometry (a one-sided cumulative sum): each fits only a little better beside
 * the pose, but wheels that stand still make all of them do so. lead: -INFINITY where odometry holds nothing. */
static void weigh_odometry(const struct ndtd_relocalization *now, double lead)
{
    struct ndtd_relocalizer *relocalizer = now->relocalizer;
    const int is_active = relocalizer->recovery.is_active, is_against = lead > BY_CHANCE;
    double *sum = &relocalizer->odometry_lead_sum;
    if (is_against || !is_active) /* a pose that was found tells nothing for odometry */
        *sum = fmin(fmax(0, *sum + fmin(fmax(lead, 0) - BY_CHANCE, MOST_OF_A_SCAN)), 2 * NDTD_CONTRADICTION);
    if (*sum >= NDTD_CONTRADICTION && (is_against || (lead > -INFINITY && !is_active)))
        now->decision->is_ambiguous = 1;
}

/* Whether an axis is a translation: a weak rotation has no poses along it. */
static int is_translation(const double axis[6])
{
    return axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2] > 0.5;
}

int ndtd_observes_all(const struct ndtd_relocalization *now)
{
    const struct ndt_align_result *result = &now->alignment->result;
    double ratio[6], axes[36];
    if (!result->has_observation)
        return 0;
    ndt_observation_directions(&result->observation, ratio, axes);
    for (int k = 0; k < 6; k++)
        if (is_translation(axes + 6 * k) && ratio[k] < HELD_RATIO)
            return 0;
    return 1;
}

/* Whether odometry, which may be wrong, predicts the pose, and the scan observes the direction little. */
static int may_be_held(const struct ndtd_relocalization *now, double ratio)
{
    return ratio < HELD_RATIO && now->relocalizer->is_verified && ndtd_has_odometry(&now->alignment->predicted);
}

enum ndt_status ndtd_resolve_degeneracy(struct ndtd_relocalization *now, struct ndt_error *err)
{
    const struct ndtd_relocalizer *relocalizer = now->relocalizer;
    struct ndtd_decision *decision = now->decision;
    const struct ndt_align_result *result = &now->alignment->result;
    struct ndt_align_params params = ndtd_matcher_params(now->matcher, &now->alignment->prior);
    int is_led =
        ndtd_has_odometry(&now->alignment->predicted); /* and every direction that it may hold is compared */
    double ratio[6], axes[36], most = -INFINITY;
    int rounds = 2;
    if (!ndtd_has_prior(relocalizer->settings) || !result->has_observation || !now->alignment->is_updated)
        return NDT_OK;
    ndt_observation_directions(&result->observation, ratio, axes);
    enum ndt_status status = NDT_OK;
    for (int k = 0, examined = 0; k < 6 && status == NDT_OK; k++) {
        struct line line = {.is_weak = ratio[k] < WEAK_RATIO};
        int is_moved = 0;
        memcpy(line.axis, axes + 6 * k, sizeof(line.axis));
        line.is_held = !line.is_weak && may_be_held(now, ratio[k]);
        if (!is_translation(line.axis) ||
            (!line.is_weak && ((relocalizer->is_verified && !line.is_held) || examined >= LINES_MOST)))
            continue;
        const int has_time = !decision->is_cut_short && ndtd_matcher_has_time(now->matcher, &params);
        is_led = is_led && has_time;
        if (line.is_held && !has_time)
            continue;
        ndt_observation_step(axes, k, line.step);
        examined++;
        decision->is_cut_short = !has_time;
        if (examined > LINES_MOST || decision->is_cut_short) {
            forget_direction(now, &line);
            continue;
        }
        status = ndtd_matcher_need_points(now->matcher, err);
        if (status == NDT_OK)
            status = examine(now, &line, &is_moved, err);
        is_led = is_led && !is_moved;
        if (status == NDT_OK && is_led && (line.is_weak || line.is_held))
            status = lead_beside(now, &line, &most, err);
        if (is_moved && --rounds > 0 && status == NDT_OK) { /* the directions are examined anew at the new pose */
            ndt_observation_directions(&result->observation, ratio, axes);
            k = -1;
            examined = 0;
        }
    }
    if (is_led && status == NDT_OK)
        weigh_odometry(now, most);
    return status;
}
