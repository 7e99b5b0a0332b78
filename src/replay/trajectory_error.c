#include "ndtd/trajectory_error.h"

#include <stdlib.h>

static const double DEG_PER_RAD = 180.0 / 3.14159265358979323846;

static enum ndt_status append(struct ndtd_timed_poses *list, int64_t stamp_ns, const struct ndt_pose *pose,
                              struct ndt_error *err)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 1024;
        struct ndtd_timed_pose *items = realloc(list->items, capacity * sizeof(*items));
        if (!items)
            return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for %zu poses", capacity);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (struct ndtd_timed_pose){
        .stamp_ns = stamp_ns, .has_pose = pose != NULL, .T_map_sensor = pose ? *pose : ndt_pose_identity()};
    return NDT_OK;
}

void ndtd_trajectory_error_free(struct ndtd_trajectory_error *error)
{
    free(error->truth.items);
    free(error->results.items);
    *error = (struct ndtd_trajectory_error){0};
}

enum ndt_status ndtd_trajectory_error_add_truth(struct ndtd_trajectory_error *error, int64_t stamp_ns,
                                                const struct ndt_pose *T_map_sensor, struct ndt_error *err)
{
    error->truth_is_sorted = 0;
    return append(&error->truth, stamp_ns, T_map_sensor, err);
}

enum ndt_status ndtd_trajectory_error_add_result(struct ndtd_trajectory_error *error, int64_t stamp_ns,
                                                 const struct ndt_pose *T_map_sensor, struct ndt_error *err)
{
    return append(&error->results, stamp_ns, T_map_sensor, err);
}

static int by_stamp(const void *a, const void *b)
{
    int64_t x = ((const struct ndtd_timed_pose *)a)->stamp_ns, y = ((const struct ndtd_timed_pose *)b)->stamp_ns;
    return (x > y) - (x < y);
}

static void sort_truth(struct ndtd_trajectory_error *error)
{
    struct ndtd_timed_poses *truth = &error->truth;
    if (!error->truth_is_sorted && truth->count)
        qsort(truth->items, truth->count, sizeof(*truth->items), by_stamp);
    error->truth_is_sorted = 1;
}

/* Seconds between stamps, which are untrusted: their difference may overflow int64. */
static double seconds_between(int64_t from_ns, int64_t to_ns)
{
    return ((double)to_ns - (double)from_ns) * 1e-9;
}

static double gap_s(const struct ndtd_timed_pose *a, const struct ndtd_timed_pose *b)
{
    int64_t difference;
    if (__builtin_sub_overflow(b->stamp_ns, a->stamp_ns, &difference))
        return seconds_between(a->stamp_ns, b->stamp_ns);
    return (double)difference * 1e-9;
}

/* First ground truth at or after the stamp. */
static size_t lower_bound(const struct ndtd_timed_poses *truth, int64_t stamp_ns)
{
    size_t low = 0, high = truth->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (truth->items[middle].stamp_ns < stamp_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Motion at ground truth `i`: to the next pose if it is near enough, otherwise from the previous one. */
static struct ndt_twist twist_at(const struct ndtd_timed_poses *truth, size_t i)
{
    size_t a = i + 1 < truth->count ? i : i - 1;
    struct ndt_twist none = {{0, 0, 0}, {0, 0, 0}};
    if (truth->count < 2)
        return none;
    const struct ndtd_timed_pose *from = &truth->items[a], *to = &truth->items[a + 1];
    double dt_s = gap_s(from, to);
    if (!(dt_s > 0 && dt_s <= NDTD_TRUTH_GAP_S))
        return none;
    struct ndt_pose moved = ndt_pose_between(&from->T_map_sensor, &to->T_map_sensor);
    return ndt_pose_log(&moved, dt_s);
}

int ndtd_trajectory_error_truth_at(struct ndtd_trajectory_error *error, int64_t stamp_ns,
                                   struct ndt_pose *T_map_sensor, struct ndt_twist *twist)
{
    struct ndtd_timed_poses *truth = &error->truth;
    sort_truth(error);
    size_t at = lower_bound(truth, stamp_ns);
    if (at == truth->count)
        return 0;
    const struct ndtd_timed_pose *after = &truth->items[at];
    if (after->stamp_ns == stamp_ns) {
        *T_map_sensor = after->T_map_sensor;
    } else {
        if (at == 0 || gap_s(after - 1, after) > NDTD_TRUTH_GAP_S)
            return 0;
        struct ndtd_timed_pose here = {.stamp_ns = stamp_ns};
        double part = gap_s(after - 1, &here) / gap_s(after - 1, after);
        *T_map_sensor = ndt_pose_interpolate(&after[-1].T_map_sensor, &after->T_map_sensor, part);
        at--;
    }
    if (twist)
        *twist = twist_at(truth, at);
    return 1;
}

void ndtd_trajectory_error_anchor(struct ndtd_trajectory_error *error)
{
    struct ndt_pose truth;
    for (size_t i = 0; i < error->results.count; i++) {
        const struct ndtd_timed_pose *result = &error->results.items[i];
        if (!result->has_pose || !ndtd_trajectory_error_truth_at(error, result->stamp_ns, &truth, NULL))
            continue;
        const struct ndt_pose T_base_map = ndt_pose_inverse(&truth),
                              T_odom_map = ndt_pose_compose(&result->T_map_sensor, &T_base_map);
        for (size_t k = 0; k < error->truth.count; k++)
            error->truth.items[k].T_map_sensor = ndt_pose_compose(&T_odom_map, &error->truth.items[k].T_map_sensor);
        return;
    }
}

static enum ndt_status compare_one(const struct ndtd_timed_pose *result, const struct ndt_pose *truth,
                                   struct ndtd_errors *out, struct ndt_error *err)
{
    out->compared++;
    if (!result->has_pose) {
        out->off++;
        return NDT_OK;
    }
    double translation_m = ndt_pose_distance_m(truth, &result->T_map_sensor);
    double rotation_deg = ndt_pose_angle_rad(truth, &result->T_map_sensor) * DEG_PER_RAD;
    out->off += !(translation_m <= NDTD_OFF_M && rotation_deg <= NDTD_OFF_DEG);
    enum ndt_status status = ndtd_samples_add(&out->translation_m, translation_m, err);
    return status == NDT_OK ? ndtd_samples_add(&out->rotation_deg, rotation_deg, err) : status;
}

enum ndt_status ndtd_trajectory_error_compute(struct ndtd_trajectory_error *error, struct ndtd_errors *out,
                                              struct ndt_error *err)
{
    for (size_t i = 0; i < error->results.count; i++) {
        const struct ndtd_timed_pose *result = &error->results.items[i];
        struct ndt_pose truth;
        if (!ndtd_trajectory_error_truth_at(error, result->stamp_ns, &truth, NULL))
            continue;
        enum ndt_status status = compare_one(result, &truth, out, err);
        if (status != NDT_OK)
            return status;
    }
    return NDT_OK;
}

void ndtd_errors_free(struct ndtd_errors *errors)
{
    ndtd_samples_free(&errors->translation_m);
    ndtd_samples_free(&errors->rotation_deg);
    *errors = (struct ndtd_errors){0};
}
