/** @file
 * @brief Searches for the place of a scan beside the matching.
 *
 * In the live daemon a thread of its own searches, at the lowest priority: no answer waits for it, and the next
 * scan picks up what it has found. In a replay the search runs where it is started, so that the result does not
 * depend on time. One search at a time.
 *
 * The field of a map (ndt_search/field.h) is built when the map is set: in the thread, or before the first search.
 *
 * Threads: one thread at a time calls; ndtd_searcher_progress is thread-safe. */
#ifndef NDTD_SEARCHER_H
#define NDTD_SEARCHER_H

#include "ndt_search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_searcher;

/** How searches run. */
struct ndtd_searcher_config {
    int is_background;                        /**< 1: in a thread */
    const struct ndt_backend_config *compute; /**< threads, CPU variant, device; borrowed during create */
    const char *backend;                      /**< its device scores as well, where it has one; same results */
};
/** Creates a searcher without a map. */
NDT_MUST_CHECK enum ndt_status
ndtd_searcher_create(struct ndtd_searcher **out, const struct ndtd_searcher_config *config, struct ndt_error *err);
/** Cancels a running search; `searcher` may be NULL. */
void ndtd_searcher_destroy(struct ndtd_searcher *searcher);
/** The following searches use this map; acquires a reference. NULL: none. A running search of the map before ends
 * without a result. */
void ndtd_searcher_set_map(struct ndtd_searcher *searcher, struct ndt_map *map);

/** What is searched. */
struct ndtd_search_request {
    const struct ndt_cloud *scan; /**< sensor frame; copied */
    int64_t stamp_ns;             /**< the moment to which the points belong */
    struct ndt_pose T_base_sensor;
    int has_up;
    double up_in_sensor[3];
    struct ndt_search_window window;
    int purpose; /**< the caller's */
};
/** Whether a search can be started: there is a map, and none is running. */
int ndtd_searcher_is_free(const struct ndtd_searcher *searcher);
/** Starts a search; without a background thread it is complete on return. A result that was not taken is lost. */
NDT_MUST_CHECK enum ndt_status ndtd_searcher_start(struct ndtd_searcher *searcher,
                                                   const struct ndtd_search_request *request,
                                                   struct ndt_error *err);

/** What was found. */
struct ndtd_search_answer {
    struct ndtd_search_request request; /**< scan: NULL */
    enum ndt_status status;             /**< NDT_OK, or why there is no result */
    struct ndt_error why;
    struct ndt_search_result result;
};
/** The answer of the last search, once; NULL while it runs. Borrowed until the next start. */
const struct ndtd_search_answer *ndtd_searcher_take(struct ndtd_searcher *searcher);
/** Whether a search is running, and how far it is [0 .. 100]; thread-safe. */
int ndtd_searcher_progress(const struct ndtd_searcher *searcher, unsigned *percent);

#ifdef __cplusplus
}
#endif
#endif
