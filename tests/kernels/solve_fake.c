#include "solver_device.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "solve_cases.h"

enum { LIMIT = 256, SCANS = 256, BLOCK = 128 };

enum fault {
    NOTHING,
    ROW_BIT,
    STEP_BIT,
    POSE_BIT,
    SWAPPED_ITEMS,
    COVERAGE,
    NOT_DONE,
    ROW_MISSING,
    ROW_BEYOND,
    LAST_ITEM_LEFT,
    NOT_TURNED,
    WRONG_SCAN,
    NO_GNSS,
    WEAK_LEAKS,
    SECOND_RUN,
    BATCH_ORDER,
    ONE_MORE_ITERATION,
    DEADLINE_POSE,
    DEADLINE_STOP,
    DEADLINE_IGNORED,
    DEADLINE_TOUCHES,
    TOO_MANY_ITEMS,
    TOO_MANY_POINTS,
    WRONG_LEVEL,
    WRONG_SCAN_TAKEN,
    BROKEN_AFTER_ERROR,
    NAN_COVERED,
    NO_PRIOR,
    PRIOR_SIGN,
    FIRST_PRIOR,
    FIRST_LEVEL,
    NO_INFORMATION,
    INFORMATION_BIT,
    INFORMATION_LEVEL,
    INFORMATION_POSE,
    WRONG_FIRST_LEVEL,
    WRONG_SLOPE,
    FAULTS
};
/* Every fault and the case that detects it. */
static const struct {
    const char *name, *detected_by;
} faults[FAULTS + 1] = {
    [NOTHING] = {"nothing", ""},
    [ROW_BIT] = {"a bit of a gradient in one row", "rows/1/421/radius/robust/alone"},
    [STEP_BIT] = {"a bit of a step in one row", "rows/1/421/radius/robust/alone"},
    [POSE_BIT] = {"a bit of the pose of one item of a batch", "batch/2"},
    [SWAPPED_ITEMS] = {"two items swapped", "batch/2"},
    [COVERAGE] = {"coverage by one sector", "rows/1/421/radius/robust/alone"},
    [NOT_DONE] = {"one item not finished", "batch/2"},
    [ROW_MISSING] = {"a row missing", "rows/1/421/radius/robust/alone"},
    [ROW_BEYOND] = {"a row beyond those there is room for", "batch/capacities"},
    [LAST_ITEM_LEFT] = {"the last item of a large batch left out", "batch/200"},
    [NOT_TURNED] = {"scan not turned", "rows/1/421/radius/robust/alone"},
    [WRONG_SCAN] = {"another item's scan", "batch/1"},
    [NO_GNSS] = {"GNSS left out", "rows/1/421/radius/robust/gnss"},
    [WEAK_LEAKS] = {"weak directions of the item before", "batch/2"},
    [SECOND_RUN] = {"other bits in every other run", "rows/1/421/radius/robust"},
    [BATCH_ORDER] = {"other bits in a batch", "batch/3"},
    [ONE_MORE_ITERATION] = {"one iteration more than allowed", "rows/1/421/radius/robust/alone"},
    [DEADLINE_POSE] = {"after a deadline not the best pose", "deadline/past"},
    [DEADLINE_STOP] = {"after a deadline another reason", "deadline/past"},
    [DEADLINE_IGNORED] = {"no deadline kept", "deadline/past"},
    [DEADLINE_TOUCHES] = {"a deadline that is not reached changes bits", "deadline/generous"},
    [TOO_MANY_ITEMS] = {"more items than the limit taken", "limits/items"},
    [TOO_MANY_POINTS] = {"more points than the limit taken", "limits/points"},
    [WRONG_LEVEL] = {"a level that does not exist taken", "limits/level"},
    [WRONG_SCAN_TAKEN] = {"a scan that does not exist taken", "limits/scan"},
    [BROKEN_AFTER_ERROR] = {"unusable after an error", "limits/points"},
    [NAN_COVERED] = {"a scan without points covers something", "batch/1"},
    [NO_PRIOR] = {"the prior left out", "prior/robust"},
    [PRIOR_SIGN] = {"the prior with the wrong sign", "prior/autoware"},
    [FIRST_PRIOR] = {"the prior of a batch's first item for all", "prior/gnss"},
    [FIRST_LEVEL] = {"from the first level always", "prior/robust"},
    [NO_INFORMATION] = {"no information", "prior/autoware"},
    [INFORMATION_BIT] = {"a bit of the information", "prior/robust"},
    [INFORMATION_LEVEL] = {"the information of the first level", "prior/robust"},
    [INFORMATION_POSE] = {"the information at the guess", "prior/gnss"},
    [WRONG_FIRST_LEVEL] = {"a first level that does not exist taken", "limits/first-level"},
    [WRONG_SLOPE] = {"slopes that lead 10 mm aside", "rows/1500/2/direct1/robust/gnss"},
};
static enum fault fault;
static unsigned runs;

struct fake {
    struct ndt_backend base;
    struct solve_host host;
    struct ndt_cloud scans[SCANS];
    size_t scan_count, max_points;
    int broken;
};

const char *solve_fault_name(int i)
{
    return faults[i].name;
}

const char *solve_fault_case(int i)
{
    return faults[i].detected_by;
}

void solve_fault_plant(int i)
{
    fault = (enum fault)i;
    runs = 0;
}

static enum ndt_status fake_open(struct ndt_backend **out, const struct ndt_backend_config *config,
                                 struct ndt_error *err)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    if (!fake)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    fake->base.ops = &solve_fake_backend;
    fake->max_points = config->max_points;
    *out = &fake->base;
    return ndt_cpu_backend.open(&fake->host.backend, config, err);
}

static void fake_close(struct ndt_backend *backend)
{
    struct fake *fake = (struct fake *)backend;
    fake->host.backend->ops->close(fake->host.backend);
    solve_host_free(&fake->host);
    for (int i = 0; i < SCANS; i++)
        ndt_cloud_free(&fake->scans[i]);
    free(fake);
}

static enum ndt_status fake_set_map(struct ndt_backend *backend, struct ndt_map *map, struct ndt_error *err)
{
    struct fake *fake = (struct fake *)backend;
    fake->host.map = map;
    return fake->host.backend->ops->set_map(fake->host.backend, map, err);
}

static enum ndt_status fake_set_scan(struct ndt_backend *backend, const struct ndt_cloud *scan,
                                     struct ndt_error *err)
{
    struct fake *fake = (struct fake *)backend;
    return fake->host.backend->ops->set_scan(fake->host.backend, scan, err);
}

static enum ndt_status fake_eval(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                 struct ndt_eval *out, struct ndt_error *err)
{
    struct fake *fake = (struct fake *)backend;
    const enum ndt_status status = fake->host.backend->ops->eval(fake->host.backend, request, out, err);
    if (status == NDT_OK && fault == WRONG_SLOPE)
        out->gradient[0] += 0.01 * fabs(out->hessian[0]);
    return status;
}

static enum ndt_status fake_inform(struct ndt_backend *backend, const struct ndt_eval_request *request,
                                   struct ndt_information *out, struct ndt_error *err)
{
    struct fake *fake = (struct fake *)backend;
    return fake->host.backend->ops->inform(fake->host.backend, request, out, err);
}

static size_t fake_limit(const struct ndt_backend *backend)
{
    (void)backend;
    return LIMIT;
}

static enum ndt_status fake_set_scans(struct ndt_backend *backend, const struct ndt_cloud *const *scans,
                                      size_t count, struct ndt_error *err)
{
    struct fake *fake = (struct fake *)backend;
    size_t points = 0;
    for (size_t i = 0; i < count; i++)
        points += (scans[i]->count + BLOCK - 1) / BLOCK * BLOCK;
    if (points > fake->max_points && fault != TOO_MANY_POINTS) {
        fake->broken = fault == BROKEN_AFTER_ERROR;
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu points; the limit is %zu", points, fake->max_points);
    }
    enum ndt_status status = NDT_OK;
    for (size_t i = 0; i < count && status == NDT_OK; i++)
        status = ndt_cloud_copy(&fake->scans[i], scans[i], err);
    fake->scan_count = count;
    return status;
}

static void flip(double *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof(bits));
    bits ^= 1;
    memcpy(number, &bits, sizeof(bits));
}

/* Applies the planted fault to one item of `count`. */
static void spoil_result(struct solve_result *result, size_t i, size_t count, int has_deadline)
{
    struct ndt_newton *n = &result->newton;
    if (fault == ROW_BIT && n->row_count > 2)
        flip(&result->rows[2].eval.gradient[3]);
    if (fault == STEP_BIT && n->row_count > 1)
        flip(&result->rows[0].step[5]);
    if (fault == POSE_BIT && count > 1 && i == count / 2)
        flip(&n->p[4]);
    if (fault == COVERAGE && n->stop != NDT_STOP_OFF_MAP)
        result->coverage += result->coverage < 0.5 ? 1.0 / 32 : -1.0 / 32;
    if (fault == NOT_DONE && i == 1)
        n->wants_eval = 1;
    if (fault == ROW_MISSING && n->row_count > 1 && count < 3) {
        memmove(&result->rows[0], &result->rows[1], (SOLVE_ROWS - 1) * sizeof(result->rows[0]));
        n->row_count = --n->rows_closed;
    }
    if (fault == WEAK_LEAKS && i > 0)
        n->weak.count = 1;
    if ((fault == SECOND_RUN && runs % 2) || (fault == BATCH_ORDER && count > 2))
        flip(&n->eval.hessian[7]);
    if (fault == DEADLINE_POSE && n->stop == NDT_STOP_DEADLINE)
        n->p[0] += 1e-3;
    if (fault == DEADLINE_STOP && n->stop == NDT_STOP_DEADLINE)
        n->stop = NDT_STOP_ITERATIONS;
    if (fault == DEADLINE_TOUCHES && has_deadline)
        flip(&n->p[2]);
    if (fault == NAN_COVERED && n->stop == NDT_STOP_OFF_MAP)
        result->coverage = 1.0 / 32;
    if (fault == NO_INFORMATION)
        memset(&result->information, 0, sizeof(result->information));
    if (fault == INFORMATION_BIT)
        flip(&result->information.information[2][20]);
}

/* Applies the planted fault to the input of item i. */
static void spoil_start(struct ndt_newton *start, const struct ndt_newton *first)
{
    for (int k = 0; k < 21; k++) {
        if (fault == NO_PRIOR)
            start->prior[k] = 0;
        if (fault == PRIOR_SIGN)
            start->prior[k] = -start->prior[k];
        if (fault == FIRST_PRIOR)
            start->prior[k] = first->prior[k];
    }
    if (fault == FIRST_LEVEL || fault == WRONG_FIRST_LEVEL)
        start->first_level = 0;
    if (fault == NOT_TURNED)
        for (int k = 0; k < 9; k++)
            start->R0[k] = k % 4 == 0;
}

/* Applies the planted fault to the place of the information. */
static enum ndt_status inform_elsewhere(struct fake *fake, const struct ndt_newton_rules *rules,
                                        struct solve_result *result, struct ndt_error *err)
{
    const struct ndt_newton *n = &result->newton;
    struct ndt_eval_request request = {.level = n->level, .neighbours = (enum ndt_neighbours)n->neighbours};
    if ((fault != INFORMATION_LEVEL && fault != INFORMATION_POSE) || !rules->wants_information)
        return NDT_OK;
    request.level = fault == INFORMATION_LEVEL ? rules->level[0] : request.level;
    memcpy(request.p, fault == INFORMATION_POSE ? n->guess : n->p, sizeof(request.p));
    return fake->host.backend->ops->inform(fake->host.backend, &request, &result->information, err);
}

static void hand_out(struct ndt_solve_item *item, int wants_information, const struct solve_result *result)
{
    const int32_t made = result->newton.row_count, room = item->row_capacity;
    const int32_t written = fault == ROW_BEYOND && made > room ? room + 1 : room;
    item->newton = result->newton;
    item->coverage = result->coverage;
    if (wants_information)
        item->information = result->information;
    item->row_count = made < room ? made : room;
    for (int32_t k = 0; item->rows && k < written && k < made; k++)
        item->rows[k] = result->rows[k];
}

static enum ndt_status check_items(const struct fake *fake, const struct ndt_newton_rules *rules,
                                   const struct ndt_solve_item *items, size_t count, struct ndt_error *err)
{
    if (!fake->host.map)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "there is no map");
    if (count > LIMIT && fault != TOO_MANY_ITEMS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu alignments; the limit is %d", count, LIMIT);
    for (int i = 0; i < rules->level_count; i++)
        if ((rules->level[i] < 0 || (size_t)rules->level[i] >= fake->host.map->level_count) && fault != WRONG_LEVEL)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "level %d of a map that has %zu", rules->level[i],
                            fake->host.map->level_count);
    for (size_t i = 0; i < count; i++)
        if (items[i].scan >= fake->scan_count && fault != WRONG_SCAN_TAKEN)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "scan %u of %zu", items[i].scan, fake->scan_count);
    for (size_t i = 0; i < count; i++)
        if (rules->variant == NDT_ROBUST && items[i].newton.first_level >= rules->level_count &&
            fault != WRONG_FIRST_LEVEL)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "first level %d of a chain of %d", items[i].newton.first_level,
                            rules->level_count);
    return fake->broken && fault == BROKEN_AFTER_ERROR ? ndt_fail(err, NDT_ERR_DEVICE, "broken") : NDT_OK;
}

static enum ndt_status one_solve(struct fake *fake, const struct ndt_newton_rules *rules,
                                 struct ndt_solve_item *item, size_t i, size_t count,
                                 const struct ndt_newton *first, double until_us, struct ndt_error *err)
{
    static struct solve_result result;
    struct ndt_newton_rules own = *rules;
    struct ndt_newton start = item->newton;
    const uint32_t scan = fault == WRONG_SCAN ? 0 : item->scan < SCANS ? item->scan : 0;
    if (fault == NO_GNSS)
        own.has_gnss = 0;
    if (fault == ONE_MORE_ITERATION)
        own.max_iterations++;
    spoil_start(&start, first);
    for (int k = 0; k < own.level_count; k++)
        own.level[k] = own.level[k] < 0 || own.level[k] > 2 ? 0 : own.level[k];
    enum ndt_status status = solve_on_host(&fake->host, &own, &fake->scans[scan], &start, SOLVE_NO_LIMIT,
                                           fault == DEADLINE_IGNORED ? 0 : until_us, &result, err);
    if (status == NDT_OK)
        status = inform_elsewhere(fake, rules, &result, err);
    memcpy(&result.newton, &item->newton, offsetof(struct ndt_newton, wants_eval)); /* the input, as it was */
    spoil_result(&result, i, count, until_us > 0);
    item->points = (uint32_t)fake->scans[scan].count;
    if (!(fault == LAST_ITEM_LEFT && i == 199))
        hand_out(item, rules->wants_information, &result);
    return status;
}

static enum ndt_status fake_solve(struct ndt_backend *backend, const struct ndt_newton_rules *rules,
                                  struct ndt_solve_item *items, size_t count, double until_us,
                                  struct ndt_error *err)
{
    struct fake *fake = (struct fake *)backend;
    enum ndt_status status = check_items(fake, rules, items, count, err);
    const struct ndt_newton start = items[0].newton;
    runs++;
    for (size_t i = 0; i < count && status == NDT_OK; i++)
        status = one_solve(fake, rules, &items[i], i, count, &start, until_us, err);
    if (status == NDT_OK && fault == SWAPPED_ITEMS && count > 1) {
        const struct ndt_newton first = items[0].newton;
        items[0].newton = items[1].newton;
        items[1].newton = first;
    }
    return status;
}

static enum ndt_status fake_probe(int device, struct ndt_error *why)
{
    (void)device;
    (void)why;
    return NDT_OK;
}

static const char *const pipelines[] = {"one", "other", NULL};

const struct ndt_backend_ops solve_fake_backend = {
    .name = "simulated",
    .about = "alignments driven by the host",
    .probe = fake_probe,
    .open = fake_open,
    .close = fake_close,
    .set_map = fake_set_map,
    .set_scan = fake_set_scan,
    .eval = fake_eval,
    .inform = fake_inform,
    .pipelines = pipelines,
    .solve_limit = fake_limit,
    .set_scans = fake_set_scans,
    .solve = fake_solve,
};
