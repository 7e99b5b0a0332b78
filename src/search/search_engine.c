/* The engine of a search, if it has one: life cycle, and fallback to the threads when it fails. */
#include <stdio.h>
#include <stdlib.h>

#include "search_state.h"

_Static_assert((int)NDT_DENSE_TILE_M == NDT_FIELD_TILE_M, "tiles are those of the field");

static void fail(struct ndt_search *search, const struct ndt_error *why)
{
    search->engine_failure = *why;
    ndt_search_engine_close(search);
}

void ndt_search_engine_open(struct ndt_search *search)
{
    struct ndt_error why = {""};
    const struct ndt_dense_ops *ops = search->config.engine;
    if (ops && ops->open(&search->engine, search->config.device, &why) != NDT_OK)
        fail(search, &why);
}

void ndt_search_engine_close(struct ndt_search *search)
{
    if (search->engine)
        search->config.engine->close(search->engine);
    search->engine = NULL;
    search->has_engine_field = 0;
}

static enum ndt_status copy_field(struct ndt_search *search, struct ndt_error *err)
{
    const struct ndt_field *field = search->field;
    struct ndt_dense_tile *tiles = malloc((field->tile_count + 1) * sizeof(*tiles));
    if (!tiles)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %u tiles", field->tile_count);
    for (uint32_t i = 0; i < field->tile_count; i++) {
        const struct ndt_field_tile *tile = &field->tiles[i];
        tiles[i] = (struct ndt_dense_tile){tile->layer, tile->y, tile->x, {tile->bits_2m, tile->bits_1m}};
    }
    const enum ndt_status status = search->config.engine->set_field(search->engine, tiles, field->tile_count, err);
    free(tiles);
    return status;
}

void ndt_search_engine_set_field(struct ndt_search *search)
{
    struct ndt_error why = {""};
    search->has_engine_field = 0;
    if (!search->engine || !search->field)
        return;
    const enum ndt_status status = copy_field(search, &why);
    search->has_engine_field = status == NDT_OK;
    if (status == NDT_ERR_MEMORY) /* the engine is kept: the next field may be smaller */
        search->engine_failure = why;
    else if (status != NDT_OK)
        fail(search, &why);
    else
        search->engine_failure = (struct ndt_error){""};
}

void ndt_search_use_engine(struct ndt_search *search, int is_used)
{
    search->is_engine_unused = !is_used;
}

void ndt_search_drop_engine(struct ndt_search *search)
{
    ndt_search_engine_close(search);
}

int ndt_search_has_engine(const struct ndt_search *search)
{
    return search->engine && search->has_engine_field && !search->is_engine_unused;
}

/* ---- scoring ---- */

struct advance {
    struct ndt_search *search;
    size_t windows;
};

static int goes_on(void *context, size_t windows)
{
    struct advance *advance = context;
    for (; advance->windows < windows; advance->windows++)
        ndt_search_advance(advance->search);
    return !ndt_search_is_cancelled(advance->search);
}

int ndt_search_engine_score(struct ndt_search *search, struct ndt_dense_job *job)
{
    struct ndt_error why = {""};
    struct advance advance = {search, 0};
    job->goes_on = goes_on;
    job->context = &advance;
    const enum ndt_status status = search->config.engine->score(search->engine, job, &why);
    if (status != NDT_OK)
        fail(search, &why);
    return status == NDT_OK;
}

/* ---- reports ---- */

const char *ndt_search_engine_failure(const struct ndt_search *search)
{
    return search->engine_failure.text[0] ? search->engine_failure.text : NULL;
}

void ndt_search_describe(const struct ndt_search *search, char *text, size_t size)
{
    if (search->engine && (search->has_engine_field || !search->field) && !search->is_engine_unused)
        search->config.engine->describe(search->engine, text, size);
    else
        snprintf(text, size, "cpu %s, %d thread%s", ndt_score_name(search->score), ndt_pool_threads(search->pool),
                 ndt_pool_threads(search->pool) == 1 ? "" : "s");
}
