/** @file
 * @brief The dense score on the device.
 *
 * The tiles of a field are uploaded once; memory for everything else is allocated at open. A job goes through in
 * slices of windows: per slice one copy up, one launch, one copy down, one wait; the points of the hypotheses go up
 * once. */
#include "ndt_cuda/search_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_device.h"
#include "kernels.h"
#include "ndt/dense_score.h"

#ifndef NDT_CUDA_NAME /* a test build has another one */
#define NDT_CUDA_NAME "cuda"
#endif

enum {
    SLICE_WINDOWS = 1024,
    SLICE_PAIRS = 16384, /* windows times hypotheses: 1 MiB of peaks, about a millisecond */
    FIELD_SLICE = 4096,  /* tiles */
    ALIGNMENT = 256
};
_Static_assert((int)NDT_GPU_WINDOW == NDT_WINDOW_CELLS && (int)NDT_GPU_PEAKS == NDT_DENSE_PEAKS &&
                   (int)NDT_GPU_SEARCH_POINTS == NDT_DENSE_POINTS && (int)NDT_GPU_WINDOW_HALO == NDT_DENSE_HALO,
               "the sizes of the kernel are those of the search");
_Static_assert(NDT_GPU_WINDOW_HALO *(NDT_GPU_WINDOW_STRIDE + 1) <= INT16_MAX, "an offset is 16 bits");

/* Offsets from the start of the memory, on the device and pinned, in bytes. */
struct layout {
    size_t windows, counts, points, peaks, bytes;
};

static struct layout make_layout(void)
{
    struct layout out = {.windows = ALIGNMENT};
    out.counts = out.windows + SLICE_WINDOWS * sizeof(struct ndt_gpu_search_window);
    out.points = out.counts + NDT_DENSE_HYPOTHESES * sizeof(uint32_t);
    out.peaks = out.points + (size_t)NDT_DENSE_HYPOTHESES * NDT_DENSE_POINTS * sizeof(uint32_t);
    out.bytes = out.peaks + (size_t)SLICE_PAIRS * NDT_DENSE_PEAKS;
    return out;
}
_Static_assert(sizeof(struct ndt_gpu_search) <= ALIGNMENT, "the head of the memory");

/* The field on the device; tiles are counted, the other members are bytes from the start. */
struct field {
    char *memory;
    size_t capacity, count; /* tiles */
    size_t cells[NDT_DENSE_LEVELS];
    int is_loaded;
};

struct ndt_dense_engine {
    struct ndt_cuda_device device;
    struct ndt_cuda_facts facts;
    struct layout at;
    char *memory, *pinned;
    struct field field;
};

static const size_t level_bytes[NDT_DENSE_LEVELS] = {NDT_DENSE_EDGE_2M * NDT_DENSE_EDGE_2M,
                                                     NDT_DENSE_EDGE_1M *NDT_DENSE_EDGE_1M};
static const int32_t level_edge_bits[NDT_DENSE_LEVELS] = {4, 5};

/* ---- the field ---- */

static enum ndt_status reserve(struct ndt_dense_engine *engine, size_t count, struct ndt_error *err)
{
    struct field *field = &engine->field;
    void *memory = NULL;
    size_t bytes = count * sizeof(struct ndt_gpu_search_tile);
    if (count <= field->capacity)
        return NDT_OK;
    ndt_cuda_release(&engine->device, field->memory);
    *field = (struct field){0};
    for (int level = 0; level < NDT_DENSE_LEVELS; level++) {
        bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        field->cells[level] = bytes;
        bytes += count * level_bytes[level];
    }
    const enum ndt_status status = ndt_cuda_allocate(&engine->device, &memory, bytes, "the field of a map", err);
    field->memory = memory;
    field->capacity = status == NDT_OK ? count : 0;
    return status;
}

/* Uploads an array of `count` items from number `first` on, packed at `*staged`. */
static enum ndt_status upload(struct ndt_dense_engine *engine, size_t at, size_t first, size_t count, size_t size,
                              char **staged, struct ndt_error *err)
{
    const char *from = *staged;
    *staged += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return ndt_cuda_upload(&engine->device, engine->field.memory + at + first * size, from, count * size, err);
}

static enum ndt_status upload_tiles(struct ndt_dense_engine *engine, const struct ndt_dense_tile *tiles,
                                    size_t first, size_t count, struct ndt_error *err)
{
    char *staged = engine->pinned;
    struct ndt_gpu_search_tile *places = (struct ndt_gpu_search_tile *)(void *)staged;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct ndt_gpu_search_tile){tiles[i].layer, tiles[i].y, tiles[i].x};
    enum ndt_status status = upload(engine, 0, first, count, sizeof(*places), &staged, err);
    for (int level = 0; status == NDT_OK && level < NDT_DENSE_LEVELS; level++) {
        for (size_t i = 0; i < count; i++)
            memcpy(staged + i * level_bytes[level], tiles[i].bits[level], level_bytes[level]);
        status = upload(engine, engine->field.cells[level], first, count, level_bytes[level], &staged, err);
    }
    if (status == NDT_OK)
        status = ndt_cuda_wait(&engine->device, err);
    return ndt_cuda_settle(&engine->device, NDT_CUDA_MAIN,
                           status); /* the next field is staged in the same memory */
}
_Static_assert((size_t)FIELD_SLICE *(sizeof(struct ndt_gpu_search_tile) + 5 * 256) + 3 * ALIGNMENT <=
                   (size_t)NDT_DENSE_HYPOTHESES * NDT_DENSE_POINTS * sizeof(uint32_t),
               "tiles fit into the pinned memory");

static enum ndt_status cuda_set_field(struct ndt_dense_engine *engine, const struct ndt_dense_tile *tiles,
                                      size_t count, struct ndt_error *err)
{
    engine->field.is_loaded = 0;
    enum ndt_status status = reserve(engine, count, err);
    for (size_t i = 0; status == NDT_OK && i < count; i += FIELD_SLICE)
        status = upload_tiles(engine, tiles + i, i, count - i < FIELD_SLICE ? count - i : FIELD_SLICE, err);
    engine->field.count = count;
    engine->field.is_loaded = status == NDT_OK;
    return status;
}

/* ---- a job ---- */

static enum ndt_status check_job(const struct ndt_dense_engine *engine, const struct ndt_dense_job *job,
                                 struct ndt_error *err)
{
    if (!engine->field.is_loaded)
        return ndt_fail(err, NDT_ERR_UNSUPPORTED, "no field is on the device");
    if (job->level < 0 || job->level >= NDT_DENSE_LEVELS || job->halo < 0 || job->halo > NDT_DENSE_HALO ||
        job->hypothesis_count > NDT_DENSE_HYPOTHESES)
        return ndt_fail(err, NDT_ERR_LIMIT, "a search on level %d, %d cells around, with %zu hypotheses",
                        job->level, job->halo, job->hypothesis_count);
    return NDT_OK;
}

static enum ndt_status upload_points(struct ndt_dense_engine *engine, const struct ndt_dense_job *job,
                                     struct ndt_error *err)
{
    uint32_t *counts = (uint32_t *)(void *)(engine->pinned + engine->at.counts);
    uint32_t *points = (uint32_t *)(void *)(engine->pinned + engine->at.points);
    for (size_t h = 0; h < job->hypothesis_count; h++, points += NDT_DENSE_POINTS) {
        const struct ndt_score_points *from = &job->hypotheses[h];
        counts[h] = from->count;
        for (uint32_t i = 0; i < from->count; i++)
            points[i] = (uint16_t)from->offset[i] | (uint32_t)from->mask[i] << 16;
    }
    return ndt_cuda_upload(&engine->device, engine->memory + engine->at.counts, counts,
                           (size_t)((char *)points - (char *)counts), err);
}

static void fill_head(const struct ndt_dense_engine *engine, const struct ndt_dense_job *job,
                      struct ndt_gpu_search *out)
{
    const struct field *field = &engine->field;
    const struct layout *at = &engine->at;
    *out = (struct ndt_gpu_search){
        .tiles = (const struct ndt_gpu_search_tile *)(const void *)field->memory,
        .cells = (const uint32_t *)(const void *)(field->memory + field->cells[job->level]),
        .tile_count = (uint32_t)field->count,
        .edge_bits = level_edge_bits[job->level],
        .halo = job->halo,
        .hypothesis_count = (uint32_t)job->hypothesis_count,
        .counts = (const uint32_t *)(const void *)(engine->memory + at->counts),
        .points = (const uint32_t *)(const void *)(engine->memory + at->points),
        .windows = (const struct ndt_gpu_search_window *)(const void *)(engine->memory + at->windows),
        .peaks = (uint8_t *)engine->memory + at->peaks};
}

static void fill_windows(const struct ndt_dense_job *job, size_t first, size_t count,
                         struct ndt_gpu_search_window *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct ndt_dense_window *window = &job->windows[first + i];
        out[i] = (struct ndt_gpu_search_window){.layer = window->layer, .y = window->y, .x = window->x};
        memcpy(out[i].allowed, job->allowed + (first + i) * NDT_WINDOW_CELLS, sizeof(out[i].allowed));
    }
}

static enum ndt_status score_slice(struct ndt_dense_engine *engine, const struct ndt_dense_job *job, size_t first,
                                   size_t count, struct ndt_error *err)
{
    const struct layout *at = &engine->at;
    struct ndt_gpu_search_window *windows = (struct ndt_gpu_search_window *)(void *)(engine->pinned + at->windows);
    const size_t parts = (job->hypothesis_count + NDT_GPU_HYPOTHESES - 1) / NDT_GPU_HYPOTHESES;
    const size_t bytes = job->hypothesis_count * NDT_DENSE_PEAKS;
    const struct ndt_gpu_job launch = {.search = (const struct ndt_gpu_search *)(const void *)engine->memory};
    fill_head(engine, job, (struct ndt_gpu_search *)(void *)engine->pinned);
    fill_windows(job, first, count, windows);
    enum ndt_status status = ndt_cuda_upload(&engine->device, engine->memory, engine->pinned,
                                             at->windows + count * sizeof(*windows), err);
    if (status == NDT_OK)
        status = ndt_cuda_launch_team(&engine->device, ndt_kernel_search_score(), (unsigned)(count * parts),
                                      NDT_GPU_TEAM, 1, &launch, err);
    if (status == NDT_OK)
        status = ndt_cuda_download(&engine->device, engine->pinned + at->peaks, engine->memory + at->peaks,
                                   count * bytes, err);
    if (status == NDT_OK)
        status = ndt_cuda_wait(&engine->device, err);
    if (status == NDT_OK)
        memcpy(job->peaks + first * bytes, engine->pinned + at->peaks, count * bytes);
    return status;
}

static enum ndt_status score_slices(struct ndt_dense_engine *engine, const struct ndt_dense_job *job,
                                    struct ndt_error *err)
{
    const size_t pairs = SLICE_PAIRS / job->hypothesis_count, most = pairs < SLICE_WINDOWS ? pairs : SLICE_WINDOWS;
    enum ndt_status status = upload_points(engine, job, err);
    for (size_t first = 0; status == NDT_OK && first < job->window_count; first += most) {
        const size_t left = job->window_count - first, count = left < most ? left : most;
        status = score_slice(engine, job, first, count, err);
        if (status == NDT_OK && job->goes_on && !job->goes_on(job->context, first + count))
            break;
    }
    return ndt_cuda_settle(&engine->device, NDT_CUDA_MAIN, status);
}

static enum ndt_status cuda_score(struct ndt_dense_engine *engine, const struct ndt_dense_job *job,
                                  struct ndt_error *err)
{
    enum ndt_status status = check_job(engine, job, err);
    if (status != NDT_OK || job->hypothesis_count == 0 || job->window_count == 0)
        return status;
    return score_slices(engine, job, err);
}

/* ---- open and close ---- */

static void close_parts(struct ndt_dense_engine *engine)
{
    ndt_cuda_release(&engine->device, engine->field.memory);
    ndt_cuda_release(&engine->device, engine->memory);
    ndt_cuda_release_pinned(&engine->device, engine->pinned);
    ndt_cuda_device_close(&engine->device);
}

static void cuda_close(struct ndt_dense_engine *engine)
{
    if (!engine)
        return;
    close_parts(engine);
    free(engine);
}

/* Launches the kernel once, on no data: the first search does not have to load it, and a device that this build has
 * no code for is refused here. */
static enum ndt_status warm_up(struct ndt_dense_engine *engine, struct ndt_error *err)
{
    static const uint64_t allowed[NDT_WINDOW_CELLS];
    const struct ndt_dense_window window = {0};
    const struct ndt_score_points points = {0};
    uint8_t peaks[NDT_DENSE_PEAKS];
    const struct ndt_dense_job nothing = {.window_count = 1,
                                          .windows = &window,
                                          .allowed = allowed,
                                          .hypothesis_count = 1,
                                          .hypotheses = &points,
                                          .peaks = peaks};
    return score_slices(engine, &nothing, err);
}

static enum ndt_status open_parts(struct ndt_dense_engine *engine, int index, struct ndt_error *err)
{
    void *memory = NULL, *pinned = NULL;
    enum ndt_status status = ndt_cuda_facts(&engine->facts, index, err);
    if (status == NDT_OK)
        status = ndt_cuda_device_open(&engine->device, index, err);
    if (status == NDT_OK)
        status = ndt_cuda_allocate(&engine->device, &memory, engine->at.bytes, "a search", err);
    engine->memory = memory;
    if (status == NDT_OK)
        status = ndt_cuda_allocate_pinned(&engine->device, &pinned, engine->at.bytes, "staging a search", err);
    engine->pinned = pinned;
    return status == NDT_OK ? warm_up(engine, err) : status;
}

static enum ndt_status cuda_open(struct ndt_dense_engine **out, int index, struct ndt_error *err)
{
    *out = NULL;
    struct ndt_dense_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a search on a device");
    engine->at = make_layout();
    const enum ndt_status status = open_parts(engine, index, err);
    if (status != NDT_OK)
        close_parts(engine);
    if (status == NDT_OK)
        *out = engine;
    else
        free(engine);
    return status;
}

static void cuda_describe(const struct ndt_dense_engine *engine, char *text, size_t size)
{
    snprintf(text, size, "%s on %s", NDT_CUDA_NAME, engine->facts.name);
}

const struct ndt_dense_ops ndt_cuda_search_engine = {.name = NDT_CUDA_NAME,
                                                     .stride = NDT_GPU_WINDOW_STRIDE,
                                                     .open = cuda_open,
                                                     .close = cuda_close,
                                                     .set_field = cuda_set_field,
                                                     .score = cuda_score,
                                                     .describe = cuda_describe};
