/** @file
 * @brief The pose at any time as a message, for the pipeline and for the stream of poses. Pure. */
#ifndef NDTD_MOMENT_H
#define NDTD_MOMENT_H

#include "ndt_proto/message.h"
#include "ndt_track/track_window.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sources of the poses; borrowed. */
struct ndtd_moments {
    const struct ndt_track_window *window;
    const struct ndt_track *track;
    enum ndt_state state; /**< state after the newest scan */
    double max_ahead_s;   /**< output.max_ahead_s */
};
/** Writes the pose of the base at a stamp; 0: at the newest of all scans and motion samples. NDT_END: there is no
 * pose at this stamp; the line begins with the name of the reason (ndt_track_refusal_name): "no_pose: ...". `out`
 * is then unchanged. */
NDT_MUST_CHECK enum ndt_status ndtd_moment_at(const struct ndtd_moments *moments, int64_t stamp_ns,
                                              struct ndt_moment_message *out, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
