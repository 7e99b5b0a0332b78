/** @file
 * @brief A finished replay: the folder that ndtd --replay BAG --output DIR writes. Read where it is: only the place
 * of each result and scan is kept in memory, 24 bytes per scan. Any thread. */
#ifndef WEB_REPLAY_H
#define WEB_REPLAY_H

#include "web_source.h"

struct web_replay;
/** Reads summary.json and results.jsonl, which are required, points.bag and truth.tum: results then have the key
 * `truth`, the true pose at their stamp as `pose`. scan_points: of a scan for the page,
 * at most. NDT_ERR_IO, NDT_ERR_FORMAT with one line: the file, the line, what is wrong. */
NDT_MUST_CHECK enum ndt_status web_replay_open(struct web_replay **out, const char *folder, size_t scan_points,
                                               struct ndt_error *err);
/** Allowed on NULL. */
void web_replay_close(struct web_replay *replay);
/** Sets the source for the server; valid until web_replay_close. */
void web_replay_source(struct web_replay *replay, struct web_source *out);
/** The map as the summary names it; may be empty. */
const char *web_replay_map(const struct web_replay *replay);

#endif
