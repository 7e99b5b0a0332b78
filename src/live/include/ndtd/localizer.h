/** @file
 * @brief The request `localize`: from the control socket to the matching thread, and its report back.
 *
 * One search at a time; while it runs another request is refused. A request with a position first makes the map
 * loader load the tiles there. ndtd_pipeline_localize does the search.
 *
 * Threads: any thread may begin, report and cancel, without waiting for a search; the matching thread serves.
 * Source: localizer.c. */
#ifndef NDTD_LOCALIZER_H
#define NDTD_LOCALIZER_H

#include "ndtd/map_loader.h"
#include "ndtd/pipeline.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_localizer;
NDT_MUST_CHECK enum ndt_status ndtd_localizer_create(struct ndtd_localizer **out, struct ndt_error *err);
/** `localizer` may be NULL. */
void ndtd_localizer_destroy(struct ndtd_localizer *localizer);

/** Begins a search with the next scan. NDT_ERR_ARGUMENT: a search runs already. */
NDT_MUST_CHECK enum ndt_status ndtd_localizer_begin(struct ndtd_localizer *localizer,
                                                    const struct ndt_request_message *request,
                                                    struct ndt_error *err);
/** Copies the report of the running search, or of the last one. */
void ndtd_localizer_report(struct ndtd_localizer *localizer, struct ndt_localize_report *out);
/** Ends the running search, if any, without an accepted pose. */
void ndtd_localizer_cancel(struct ndtd_localizer *localizer);

/** Passes requests to the pipeline and takes its report; called between frames. loader: may be NULL. is_map_new: a
 * map waits to be used. */
void ndtd_localizer_serve(struct ndtd_localizer *localizer, struct ndtd_pipeline *pipeline,
                          struct ndtd_map_loader *loader, int is_map_new);

#ifdef __cplusplus
}
#endif
#endif
