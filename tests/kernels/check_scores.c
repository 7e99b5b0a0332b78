/** @file
 * @brief Scores of one scan at many poses, on every backend that has them: the bits of the plain C for thousands of
 * poses, scans of several parts, one of several scans; where it stops, and what it refuses.
 *
 * Small scans at a few poses, on every map and with every kind of neighbours: see kernel_scores.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "check_harness.h"
#include "ndt/random.h"
#include "street_world.h"

enum { MOST_POSES = 10000, SCANS = 3 };

/* Set by main. */
static struct {
    struct ndt_map *map;
    struct ndt_cloud scans[SCANS], empty;
    struct ndt_score_pose poses[MOST_POSES];
} in;
static const struct ndt_backend_ops *ops;
static struct ndt_backend *backend;

/* ---- inputs ---- */

static int make_inputs(struct ndt_error *err)
{
    static const size_t points[SCANS] = {60, 2500, 1025};
    const struct world world = {WORLD_STREET, 3, 40.0, 0.02};
    const struct ndt_pose truth = world_pose(&world, 0.5, 0.3);
    struct ndt_random random = {5};
    ndt_cloud_init(&in.empty);
    int good = world_build_map(&in.map, &world, 20000, err) == NDT_OK;
    for (size_t i = 0; good && i < SCANS; i++) {
        ndt_cloud_init(&in.scans[i]);
        good = world_scan(&in.scans[i], &world, i + 1, points[i], &truth, 20.0, err) == NDT_OK;
    }
    for (size_t i = 0; good && i < MOST_POSES; i++) {
        const struct ndt_pose pose = world_perturb(&random, &truth, 2, 0.2);
        ndt_pose_rotation(&pose, in.poses[i].R);
        for (int k = 0; k < 3; k++)
            in.poses[i].t_m[k] = pose.t_m[k] - in.map->origin_m[k];
    }
    for (size_t i = 0; good && i < in.scans[1].count; i += 97)
        in.scans[1].y_m[i] = i % 2 ? NAN : INFINITY;
    return good;
}

static struct ndt_score_request request_of(size_t count)
{
    return (struct ndt_score_request){.level = 1, .neighbours = NDT_RADIUS, .count = count, .poses = in.poses};
}

/* ---- bits ---- */

static void compare(const char *name, const struct ndt_cloud *scan, const struct ndt_score_request *request)
{
    struct ndt_pose_score *out = calloc(request->count, sizeof(*out));
    struct ndt_pose_score *expected = calloc(request->count, sizeof(*out));
    struct ndt_error err = {""};
    char text[300] = "", what[100];
    size_t done = 0, plain = 0, different = 0, first = 0;
    if (!out || !expected)
        abort();
    const enum ndt_status status = ops->score_poses(backend, request, out, &done, &err);
    int good = status == NDT_OK && done == request->count &&
               ndt_score_poses_plain(in.map, scan, request, expected, &plain, &err) == NDT_OK;
    for (size_t i = request->count; i-- > 0;)
        if (memcmp(&out[i], &expected[i], sizeof(*out)) != 0) {
            first = i;
            different++;
        }
    if (different > 0)
        snprintf(text, sizeof(text), "%zu differ; pose %zu: %.17g %.17g %u %u, plain C %.17g %.17g %u %u",
                 different, first, out[first].score, out[first].nearest_score, out[first].matched, out[first].pairs,
                 expected[first].score, expected[first].nearest_score, expected[first].matched,
                 expected[first].pairs);
    good &= different == 0 && (scan->count == 0 || expected[0].matched > 0);
    snprintf(what, sizeof(what), "%s %s: %zu poses of %zu points", ops->name, name, request->count, scan->count);
    check_expect(good, what, text[0] ? text : err.text);
    free(out);
    free(expected);
}

static int set_up(const char *name, const struct ndt_cloud *scan)
{
    struct ndt_error err = {""};
    if (ops->set_map(backend, in.map, &err) == NDT_OK && ops->set_scan(backend, scan, &err) == NDT_OK)
        return 1;
    check_expect(0, name, err.text);
    return 0;
}

/* More than a launch takes. */
static void many(const char *name, int unused)
{
    const struct ndt_score_request request = request_of(MOST_POSES);
    (void)unused;
    if (set_up(name, &in.scans[0]))
        compare(name, &in.scans[0], &request);
}

/* A scan of more than one part, with points that are not finite, with every kind of neighbours. */
static void parts(const char *name, int neighbours)
{
    struct ndt_score_request request = request_of(7);
    request.neighbours = (enum ndt_neighbours)neighbours;
    for (request.level = 0; request.level < (int)in.map->level_count && set_up(name, &in.scans[1]); request.level++)
        compare(name, &in.scans[1], &request);
}

static void empty(const char *name, int unused)
{
    const struct ndt_score_request request = request_of(3), none = request_of(0);
    (void)unused;
    if (!set_up(name, &in.empty))
        return;
    compare(name, &in.empty, &request);
    compare(name, &in.empty, &none);
}

/* Checks one of several scans; a backend without set_scans has one. */
static void several(const char *name, int unused)
{
    const struct ndt_cloud *const scans[SCANS] = {&in.scans[0], &in.scans[1], &in.scans[2]};
    struct ndt_score_request request = request_of(20);
    struct ndt_pose_score out[20];
    struct ndt_error err = {""};
    size_t done;
    (void)unused;
    if (!set_up(name, &in.scans[0]))
        return;
    request.scan = 1;
    check_expect(ops->score_poses(backend, &request, out, &done, &err) == NDT_ERR_ARGUMENT && done == 0,
                 "a scan that is not set is refused", err.text);
    if (!ops->solve_limit || ops->solve_limit(backend) == 0)
        return;
    check_expect(ops->set_scans(backend, scans, SCANS, &err) == NDT_OK, name, err.text);
    for (request.scan = 0; request.scan < SCANS; request.scan++)
        compare(name, scans[request.scan], &request);
}

/* ---- stops and refusals ---- */

static int stop_at;

static int goes_on(void *context, size_t done)
{
    size_t *last = context;
    *last = done;
    return done < (size_t)stop_at;
}

/* Stops at the first question after so many poses; the others are zero. */
static void stops(const char *name, int after)
{
    static struct ndt_pose_score out[MOST_POSES], nothing;
    struct ndt_score_request request = request_of(MOST_POSES);
    struct ndt_error err = {""};
    size_t done = 1, last = MOST_POSES;
    char text[100];
    memset(out, 0xa5, sizeof(out));
    stop_at = after;
    request.goes_on = goes_on;
    request.context = &last;
    if (!set_up(name, &in.scans[0]))
        return;
    const enum ndt_status status = ops->score_poses(backend, &request, out, &done, &err);
    int good = status == NDT_OK && done == last && done >= (size_t)after && done < MOST_POSES;
    for (size_t i = 0; i < MOST_POSES; i++)
        good &= (out[i].matched > 0) == (i < done) && (i < done || memcmp(&out[i], &nothing, sizeof(nothing)) == 0);
    snprintf(text, sizeof(text), "%zu of %d poses", done, MOST_POSES);
    check_expect(good, name, status == NDT_OK ? text : err.text);
}

static void expect_refusal(const char *what, const struct ndt_score_request *request)
{
    struct ndt_pose_score out[4];
    struct ndt_error err = {""};
    size_t done = 1;
    check_expect(ops->score_poses(backend, request, out, &done, &err) == NDT_ERR_ARGUMENT && done == 0 &&
                     err.text[0],
                 what, err.text);
}

static void refuses(const char *name, int unused)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct ndt_score_pose poses[4];
    struct ndt_score_request request = request_of(4);
    (void)unused;
    if (!set_up(name, &in.scans[0]))
        return;
    request.level = -1;
    expect_refusal("level -1", &request);
    request.level = (int)in.map->level_count;
    expect_refusal("a level that the map has not", &request);
    request.level = 0;
    request.neighbours = (enum ndt_neighbours)4;
    expect_refusal("neighbours that there are not", &request);
    request.neighbours = NDT_DIRECT1;
    request.poses = poses;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(poses, in.poses, sizeof(poses));
        poses[3].R[i] = bad[i];
        expect_refusal("a rotation that is not finite", &request);
        memcpy(poses, in.poses, sizeof(poses));
        poses[i].t_m[i] = bad[i];
        expect_refusal("a translation that is not finite", &request);
    }
    memcpy(poses, in.poses, sizeof(poses));
    compare("after refusals", &in.scans[0], &request);
    (void)ops->set_map(backend, NULL, NULL);
    expect_refusal("no map", &request);
}

/* ---- the program ---- */

static const struct check_case cases[] = {
    {.name = "many", .run_with = many, .text = "many"},
    {.name = "parts/radius", .run_with = parts, .text = "parts/radius", .value = NDT_RADIUS},
    {.name = "parts/direct1", .run_with = parts, .text = "parts/direct1", .value = NDT_DIRECT1},
    {.name = "parts/direct7", .run_with = parts, .text = "parts/direct7", .value = NDT_DIRECT7},
    {.name = "parts/direct27", .run_with = parts, .text = "parts/direct27", .value = NDT_DIRECT27},
    {.name = "empty", .run_with = empty, .text = "empty"},
    {.name = "several", .run_with = several, .text = "several"},
    {.name = "stops/at_once", .run_with = stops, .text = "stops/at_once", .value = 0},
    {.name = "stops/later", .run_with = stops, .text = "stops/later", .value = 1},
    {.name = "refuses", .run_with = refuses, .text = "refuses"},
    {.name = NULL},
};

/* All cases on one backend, if it runs here. */
static void run_backend(const char *pipeline, int *ran)
{
    struct ndt_backend_config config;
    struct ndt_error err = {""};
    ndt_backend_config_default(&config);
    config.pipeline = pipeline;
    config.max_points = 8192;
    config.threads = 2;
    if (check.is_list || ops->probe(0, &err) != NDT_OK || ops->open(&backend, &config, &err) != NDT_OK) {
        printf("skipped: %s %s: %s\n", ops->name, pipeline ? pipeline : "", err.text);
        return;
    }
    ops = backend->ops;
    for (size_t i = 0; ops->score_poses && cases[i].name; i++)
        if (check_begin(cases[i].name)) {
            cases[i].run_with(cases[i].text, cases[i].value);
            *ran = 1;
        }
    ops->close(backend);
}

int main(int argc, char **argv)
{
    const char *name = NULL, *pipeline = NULL;
    const struct check_option options[] = {
        {.name = "--backend", .text = &name}, {.name = "--pipeline", .text = &pipeline}, {.name = NULL}};
    struct ndt_error err = {""};
    int ran = 0;
    check_start(argc, argv, options);
    for (size_t i = 0; check.is_list && cases[i].name; i++)
        (void)check_begin(cases[i].name);
    if (!check.is_list && !make_inputs(&err))
        check_fail("the inputs: %s", err.text);
    for (size_t i = 0; !check.is_list && in.map && (ops = ndt_backend_at(i)) != NULL; i++)
        if (!name || strcmp(name, ops->name) == 0)
            run_backend(pipeline, &ran);
    ndt_map_release(in.map);
    for (size_t i = 0; i < SCANS; i++)
        ndt_cloud_free(&in.scans[i]);
    return check_finish(ran);
}
