/** @file
 * @brief The matching thread on the emulated device: a new map arrives without scans, between scans, and not at all
 * when the thread is stopped meanwhile. */
#include <stdlib.h>
#include <time.h>

#include "ndt_io/compiled_map.h"
#include "temp_dir.h"
#include "worker_drive.h"

static const double PATIENCE_US = 60e6;

static struct ndt_map *other;

static void setup(void)
{
    const struct world world = {WORLD_STREET, 5, 120, 0.02};
    struct ndt_cloud cloud;
    street_drive_make();
    temp_dir_make();
    street_drive_set("backend.name", "cuda-emulated");
    street_drive_set("live.budget_ms", "60000");
    street_drive_set("preprocess.sample_count", "300");
    ndt_cloud_init(&cloud);
    must(world_map(&cloud, &world, 110000, (double[3]){0, 0, 0}, &err));
    must(ndt_map_from_cloud(&other, &drive.settings.map, &cloud, &err));
    ndt_cloud_free(&cloud);
    must(ndt_map_save(other, temp_path("other.ndtmap"), &err));
    must(ndt_map_save(drive.map, temp_path("first.ndtmap"), &err));
    worker_drive_open();
    worker_drive_start();
}

static void teardown(void)
{
    worker_drive_close();
    ndt_map_release(other);
    temp_dir_remove();
    street_drive_free();
}

static uint64_t map_in_use(void)
{
    struct ndtd_worker_status status;
    ndtd_worker_status(worker, &status);
    return status.map_id;
}

static void wait_for(uint64_t map_id)
{
    const double start_us = ndt_clock_us();
    while (map_in_use() != map_id && ndt_clock_us() - start_us < PATIENCE_US)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert_uint_eq(map_in_use(), map_id);
}

FIXTURE(setup, teardown)

TEST(a_map_arrives_without_scans)
{
    ck_assert_uint_eq(map_in_use(), drive.map->id);
    ndtd_map_loader_load(loader, temp_path("other.ndtmap"), NULL);
    wait_for(other->id);
    ndtd_map_loader_load(loader, NULL, NULL);
    wait_for(0);
    ndtd_map_loader_load(loader, temp_path("first.ndtmap"), NULL);
    wait_for(drive.map->id);
}

/* The first scans meet the first map; once one has met the other one, all do. */
TEST(a_map_arrives_between_scans)
{
    give(NDT_MESSAGE_INITIAL_POSE, &drive.start);
    give(NDT_MESSAGE_SCAN, &drive.scans[0]);
    sem_wait(&answered);
    ndtd_map_loader_load(loader, temp_path("other.ndtmap"), NULL);
    ck_assert_int_eq(ndtd_map_loader_wait(loader, 60), 1);
    for (size_t i = 1; i < 8; i++)
        give(NDT_MESSAGE_SCAN, &drive.scans[i]);
    for (size_t i = 1; i < 8; i++)
        sem_wait(&answered);
    wait_for(other->id);
    give(NDT_MESSAGE_SCAN, &drive.scans[8]);
    sem_wait(&answered);
    ck_assert_uint_eq(answers[0].map_id, drive.map->id);
    ck_assert_uint_eq(answers[8].map_id, other->id);
    for (size_t i = 0; i < 9; i++) {
        ck_assert_int_eq(answers[i].result.outcome, NDT_CONVERGED);
        ck_assert(answers[i].map_id == drive.map->id || answers[i].map_id == other->id);
        if (i > 0 && answers[i - 1].map_id == other->id)
            ck_assert_uint_eq(answers[i].map_id, other->id);
    }
}

/* An upload in progress is released; the sanitizer checks it. */
TEST(a_stop_in_the_middle_leaves_nothing)
{
    ndtd_map_loader_load(loader, temp_path("other.ndtmap"), NULL);
    ck_assert_int_eq(ndtd_map_loader_wait(loader, 60), 1);
    ndtd_worker_stop(worker);
    worker = NULL;
    ck_assert_int_eq(drive.map->references, 1);
}
