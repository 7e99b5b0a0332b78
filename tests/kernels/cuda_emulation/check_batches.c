/** @file
 * @brief The autotuner on the emulated device: how many scans go together is measured, kept for the next start, and
 * followed by the matching thread. */
#include <stdlib.h>
#include <string.h>

#include "ndtd/autotune.h"
#include "ndtd/pipeline.h"
#include "worker_drive.h"

enum { SCANS = 6 };

static struct ndtd_autotune_result tuned;

static void setup(void)
{
    street_drive_make();
    street_drive_set("backend.name", "cuda-emulated");
    street_drive_set("cuda.pipeline", "resident");
    street_drive_set("autotune.limit_ms", "600000"); /* enough for every size on a busy machine */
    street_drive_set("preprocess.sample_count", "100");
    street_drive_set("ndt.levels", "2");
    street_drive_set("batch.together", "true");
    street_drive_set("live.budget_ms", "60000");
}

static void teardown(void)
{
    street_drive_free();
}

static void measure(void)
{
    const struct ndtd_autotune_request request = {.settings = &drive.settings, .map = drive.map, .time_us = 600e6};
    must(ndtd_autotune_measure(&request, &tuned, &err));
    ck_assert_int_ge(tuned.choice.row, 0);
}

FIXTURE(setup, teardown)

TEST(the_number_of_scans_is_measured)
{
    street_drive_set("ndt.max_iterations", "2");
    measure();
    for (size_t k = 0; k < NDTD_AUTOTUNE_BATCHES; k++)
        ck_assert_int_eq(tuned.batch_us[k] > 0, k < 3); /* batch.max */
    ck_assert_int_eq(tuned.together, ndtd_autotune_together(tuned.batch_us, 3, 0));
    street_drive_set("batch.max", "2");
    measure();
    ck_assert(tuned.batch_us[1] > 0 && !(tuned.batch_us[2] > 0));
    street_drive_set("cuda.preprocess", "on"); /* such a device takes one scan at a time */
    measure();
    ck_assert_int_eq(tuned.together, 0);
    street_drive_set("cuda.preprocess", "off");
    street_drive_set("cuda.pipeline", "fused"); /* a pipeline without alignments turns it off, too */
    measure();
    ck_assert_int_eq(tuned.together, 0);
}

/* Every scan is answered, whatever number was measured. */
TEST(the_matching_thread_follows_it)
{
    worker_drive_open();
    give(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    for (size_t i = 0; i < SCANS; i++)
        give(NDT_MESSAGE_SCAN, &drive.scans[i]);
    worker_drive_start();
    ndtd_worker_autotune_result(worker, &tuned);
    ck_assert_int_ge(tuned.together, 1);
    ndtd_worker_stop(worker);
    worker = NULL;
    ck_assert_uint_eq(answer_count, SCANS);
    for (size_t i = 0; i < SCANS; i++) {
        ck_assert_uint_eq(answers[i].seq, i);
        ck_assert_int_eq(answers[i].result.outcome, NDT_CONVERGED);
    }
    worker_drive_close();
}

/* A device that is named is not measured against the CPU, but its pipelines are against one another. */
TEST(a_named_device_takes_its_best_pipeline)
{
    struct ndtd_pipeline *pipeline;
    char text[200];
    street_drive_set("cuda.pipeline", "auto");
    tuned.row_count = ndtd_autotune_candidates(&drive.settings, tuned.rows);
    ck_assert_uint_eq(tuned.row_count, 2);
    must(ndtd_pipeline_create(&pipeline, street_drive_snapshot(), drive.map, 0, &err));
    for (int i = 0; i < 2; i++) {
        tuned.choice.row = i;
        must(ndtd_pipeline_set_autotune_result(pipeline, &tuned, &err));
        const struct ndt_backend *backend = ndtd_pipeline_backend(pipeline);
        backend->ops->describe(backend, text, sizeof(text));
        ck_assert_msg(strstr(text, i == 0 ? "cuda-emulated fused" : "cuda-emulated resident"), "%s", text);
    }
    ndtd_pipeline_destroy(pipeline);
}
