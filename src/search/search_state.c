/* The state that the steps of a search share: lists, progress, cancellation. */
#include "search_state.h"

#include <math.h>
#include <stdlib.h>

enum ndt_status ndt_list_resize(struct ndt_list *list, size_t count, size_t size, struct ndt_error *err)
{
    static const size_t MOST_BYTES = (size_t)4 << 30;
    if (count > list->capacity) {
        free(list->items);
        *list = (struct ndt_list){0};
        list->items = count <= MOST_BYTES / size ? malloc(count * size) : NULL;
        if (!list->items)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a search: %zu items of %zu bytes", count, size);
        list->capacity = count;
    }
    list->count = count;
    return NDT_OK;
}

void ndt_search_cancel(struct ndt_search_control *control)
{
    __atomic_store_n(&control->is_cancelled, 1, __ATOMIC_RELEASE);
}

void ndt_search_rearm(struct ndt_search_control *control)
{
    (void)__atomic_exchange_n(&control->is_cancelled, 0, __ATOMIC_ACQUIRE);
    __atomic_store_n(&control->done_percent, 0, __ATOMIC_RELAXED);
}

unsigned ndt_search_progress(const struct ndt_search_control *control)
{
    return __atomic_load_n(&control->done_percent, __ATOMIC_RELAXED);
}

void ndt_search_set_progress(struct ndt_search *search, unsigned percent)
{
    if (search->control)
        __atomic_store_n(&search->control->done_percent, percent, __ATOMIC_RELAXED);
}

int ndt_search_is_cancelled(const struct ndt_search *search)
{
    return search->control && __atomic_load_n(&search->control->is_cancelled, __ATOMIC_RELAXED);
}

int ndt_search_is_at_height(const struct ndt_search *search, double ground_m, uint32_t height_view)
{
    const struct ndt_search_region *region = &search->region;
    const double height_m = search->field->origin_m[2] + ground_m + search->view.height_views[height_view].height_m;
    return !region->has_height || fabs(height_m - region->position_m[2]) <= region->height_reach_m;
}

int ndt_search_reaches_height(const struct ndt_search *search, double ground_m)
{
    for (uint32_t i = 0; i < search->view.sight_count; i++)
        if (ndt_search_is_at_height(search, ground_m, i))
            return 1;
    return 0;
}

void ndt_search_expect(struct ndt_search *search, unsigned items, unsigned percent)
{
    search->done_from = search->done_to;
    search->done_to = percent;
    search->total = items ? items : 1;
    __atomic_store_n(&search->done, 0, __ATOMIC_RELAXED);
}

void ndt_search_advance(struct ndt_search *search)
{
    const unsigned done = __atomic_add_fetch(&search->done, 1, __ATOMIC_RELAXED);
    const unsigned span = search->done_to > search->done_from ? search->done_to - search->done_from : 0;
    ndt_search_set_progress(search, search->done_from + (unsigned)((uint64_t)span * done / search->total));
}
