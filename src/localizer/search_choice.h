/** @file
 * @brief Whether searches are faster with the engine of a device, and their alignments with an aligner on it, than
 * with the threads, by measurement: the choices of backend.name auto. Source: search_choice.c. */
#ifndef NDTD_SEARCH_CHOICE_H
#define NDTD_SEARCH_CHOICE_H

#include "ndt_search/search.h"

/** Least times of a search around a place of the map, and of its alignments [us]. */
struct ndtd_search_choice {
    double engine_us, threads_us;
    int is_engine; /**< the engine was faster */
    double aligner_us, align_threads_us;
    int is_aligner;                   /**< the aligner was faster */
    struct ndt_error aligner_failure; /**< why it is not; empty: it has not failed */
};

/** A measurement: its subject and its limits. */
struct ndtd_search_measurement {
    struct ndt_search *search;   /**< search with map and engine; on return, the threads score and align */
    struct ndt_aligner *aligner; /**< with the map; NULL: there is none */
    const struct ndt_map *map;   /**< map of the search */
    double pause_s;              /**< pause before each search: a device lowers its clocks meanwhile */
    double limit_us;             /**< no third or further round begins after this time */
    double (*now_us)(void);
    double (*align_us)(const struct ndt_search_result *result); /**< time of its alignments; NULL: times_us */
    struct ndt_search_control *control; /**< control of each search; cancelled: NDT_ERR_CANCELLED */
};
/** Searches for a drawn scan with the engine and with the threads in turn. NDT_ERR_DEVICE: the engine has failed,
 * see ndt_search_engine_failure. */
NDT_MUST_CHECK enum ndt_status ndtd_search_choose(const struct ndtd_search_measurement *measurement,
                                                  struct ndtd_search_choice *out, struct ndt_error *err);

#endif
