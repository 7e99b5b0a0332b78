/** @file
 * @brief The matching thread along the street drive on the emulated device: its parts, and its answers in their
 * order. */
#ifndef WORKER_DRIVE_H
#define WORKER_DRIVE_H

#include <semaphore.h>

#include "ndt/clock.h"
#include "ndtd/worker.h"
#include "street_drive.h"

static struct ndtd_queue *queue;
static struct ndtd_map_loader *loader;
static struct ndtd_worker *worker;
static struct ndt_result_message answers[DRIVE_SCANS];
static size_t answer_count;
static sem_t answered; /* posted once for each answer */

static enum ndt_status keep_answer(void *context, const struct ndt_result_message *result,
                                   struct ndt_error *ignored)
{
    (void)context, (void)ignored;
    answers[answer_count++] = *result;
    sem_post(&answered);
    return NDT_OK;
}

static void worker_drive_open(void)
{
    answer_count = 0;
    sem_init(&answered, 0, 0);
    must(ndtd_queue_create(&queue, 8, &err));
}

static void worker_drive_start(void)
{
    const struct ndtd_map_loader_config config = {.map = drive.settings.map};
    must(ndtd_map_loader_create(&loader, &config, &err));
    const struct ndtd_worker_parts parts = {.settings = street_drive_snapshot(),
                                            .queue = queue,
                                            .loader = loader,
                                            .map = drive.map,
                                            .sink = {.send = keep_answer}};
    must(ndtd_worker_start(&worker, &parts, &err));
}

static void worker_drive_close(void)
{
    ndtd_worker_stop(worker);
    ndtd_map_loader_destroy(loader);
    ndtd_queue_destroy(queue);
    sem_destroy(&answered);
}

/* Queues an encoded message; nothing is copied. */
static void give(enum ndt_message_type type, const struct ndt_buffer *encoded)
{
    struct ndtd_message pushed_out, waiting = street_drive_frame(type, encoded);
    int dropped;
    zmq_msg_t message;
    waiting.arrival_us = ndt_clock_us();
    zmq_msg_init_data(&message, encoded->data, encoded->size, NULL, NULL);
    must(ndtd_queue_push(queue, &waiting, &message, &dropped, &pushed_out, &err));
}

#endif
