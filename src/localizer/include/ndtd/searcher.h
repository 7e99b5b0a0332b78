/** @file
 * @brief Searches the map for the pose of a scan, beside the matching.
 *
 * In the live daemon a thread of its own searches, at the lowest priority: no answer waits for it, and the next
 * scan picks up what it has found. In a replay the search runs where it is started, so that the result does not
 * depend on time. One search at a time, for one of three owners.
 *
 * The field of a map (ndt_search/field.h) is built when the map is set: in the thread, or before the first search.
 * A search whose map was replaced ends without a result.
 *
 * Threads: one thread at a time calls, and never waits; ndtd_searcher_progress is thread-safe. Source: searcher.c.
 */
#ifndef NDTD_SEARCHER_H
#define NDTD_SEARCHER_H

#include "ndt_search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_searcher;

/** Configuration of a searcher. */
struct ndtd_searcher_config {
    int is_background;                        /**< 1: in a thread */
    int is_eager;                             /**< 1: builds fields before the first search needs them */
    const struct ndt_backend_config *compute; /**< threads, CPU variant, device, pipeline; borrowed during create */
    /** Backend whose device may score and align as well. Scores are the same;
     * places are aligned in one launch, to poses within the tolerance of that backend. */
    const char *backend;
    /** 0: the device does both in any case. Else it does either only where it is faster, as measured in the
     * background thread while no search is wanted; until then the threads do it. No measurement takes much longer
     * than this. */
    double choice_limit_us;
    double choice_pause_s;                                      /**< pause before each search that is measured */
    double (*now_us)(void);                                     /**< clock of the measurement; NULL: ndt_clock_us */
    double (*align_us)(const struct ndt_search_result *result); /**< time of alignments; NULL: result->times_us */
};
/** Creates a searcher without a map. */
NDT_MUST_CHECK enum ndt_status
ndtd_searcher_create(struct ndtd_searcher **out, const struct ndtd_searcher_config *config, struct ndt_error *err);
/** Cancels a running search; `searcher` may be NULL. */
void ndtd_searcher_destroy(struct ndtd_searcher *searcher);
/** Sets the map of the following searches and acquires a reference; NULL: none. Cancels a running search of another
 * map: its answer, also one that was not taken yet, has is_cancelled set. */
void ndtd_searcher_set_map(struct ndtd_searcher *searcher, struct ndt_map *map);

/** Owners of searches: each takes its own answers. The others do not wait for NDTD_SEARCH_WATCH: they cancel its
 * search and lose its answer. */
enum ndtd_search_owner { NDTD_SEARCH_RECOVERY, NDTD_SEARCH_LOCALIZE, NDTD_SEARCH_WATCH };

/** A search to be started. */
struct ndtd_search_request {
    enum ndtd_search_owner owner;
    const struct ndt_cloud *scan; /**< sensor frame; copied */
    uint64_t seq;                 /**< number of the caller's */
    int64_t stamp_ns;             /**< moment to which the points belong */
    struct ndt_pose T_base_sensor;
    struct ndt_pose T_upright_sensor; /**< see ndt_search_run */
    struct ndt_search_region region;
    int purpose; /**< value of the caller's, returned with the answer */
};
/** Whether this owner can start a search now: a map is set, no search runs, and no answer waits for another owner,
 * but for that of NDTD_SEARCH_WATCH. A running search of NDTD_SEARCH_WATCH is cancelled for the others: it ends
 * within milliseconds, so that they can start with the next scan. */
int ndtd_searcher_claim(struct ndtd_searcher *searcher, enum ndtd_search_owner owner);
/** Starts a search; without a background thread it is complete on return. An answer of this owner that was not
 * taken is lost. */
NDT_MUST_CHECK enum ndt_status ndtd_searcher_start(struct ndtd_searcher *searcher,
                                                   const struct ndtd_search_request *request,
                                                   struct ndt_error *err);
/** Cancels a running search: it ends within milliseconds, and its answer has is_cancelled set. */
void ndtd_searcher_cancel(struct ndtd_searcher *searcher);

/** The answer to a search. */
struct ndtd_search_answer {
    struct ndtd_search_request request; /**< scan: NULL */
    enum ndt_status status;             /**< NDT_OK, or why there is no result */
    struct ndt_error why;
    uint64_t map_id; /**< id of the map that was searched */
    double search_us;
    struct ndt_search_result result;
};
/** Takes the answer of the last search, once, if it belongs to this owner; NULL while the search runs. Borrowed
 * until the next start. */
const struct ndtd_search_answer *ndtd_searcher_take(struct ndtd_searcher *searcher, enum ndtd_search_owner owner);
/** Takes a reference to the field of the last map, which the caller releases; NULL: it is not built yet, cannot be
 * built, or was taken already. Without a background thread it is built now. */
struct ndt_field *ndtd_searcher_take_field(struct ndtd_searcher *searcher);
/** Whether a search runs, and its progress [0 .. 100]; thread-safe. */
int ndtd_searcher_progress(const struct ndtd_searcher *searcher, unsigned *percent);

#ifdef __cplusplus
}
#endif
#endif
