/** @file
 * @brief The pose at any time as a message: what the pipeline and the stream of poses have in common. Pure. */
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
    enum ndt_state state; /**< after the newest scan */
    double max_ahead_s;   /**< output.max_ahead_s */
};
/** The pose of the base at a stamp; 0: at the newest of all scans and samples of the motion. NDT_END: there is none
 * there; the line begins with the name of the reason (ndt_track_refusal_name): "no_pose: ...". `out` is then
 * unchanged. */
NDT_MUST_CHECK enum ndt_status ndtd_moment_at(const struct ndtd_moments *moments, int64_t stamp_ns,
                                              struct ndt_moment_message *out, struct ndt_error *err);

#ifdef __cplusplus
}
#endif
#endif
