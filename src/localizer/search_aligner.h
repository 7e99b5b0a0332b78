/** @file
 * @brief The aligner that a search borrows: a backend of its own that solves alignments on a device, all those of a
 * step in one launch. Source: search_aligner.c. */
#ifndef NDTD_SEARCH_ALIGNER_H
#define NDTD_SEARCH_ALIGNER_H

#include "ndt/align.h"

/** All zero: not opened. One thread at a time. */
struct ndtd_search_aligner {
    struct ndt_backend *backend;
    struct ndt_aligner *aligner; /**< NULL: not opened */
    struct ndt_map *map;         /**< map of the aligner, which holds the reference */
};

/** Opens the aligner on a backend with a device, if it is not open, and gives it the map, if it has another one.
 * compute: device and pipeline. NDT_ERR_UNSUPPORTED: the pipeline that was asked for does not solve. After a
 * failure the aligner is closed. */
NDT_MUST_CHECK enum ndt_status ndtd_search_aligner_ready(struct ndtd_search_aligner *aligner, const char *backend,
                                                         const struct ndt_backend_config *compute,
                                                         struct ndt_map *map, struct ndt_error *err);
void ndtd_search_aligner_close(struct ndtd_search_aligner *aligner);

#endif
