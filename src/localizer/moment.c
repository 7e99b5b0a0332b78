#include "ndtd/moment.h"

enum { LINE_BYTES = 160 };

enum ndt_status ndtd_moment_at(const struct ndtd_moments *moments, int64_t stamp_ns, struct ndt_moment_message *out,
                               struct ndt_error *err)
{
    struct ndt_track_pose pose;
    char line[LINE_BYTES];
    if (stamp_ns == 0)
        stamp_ns = ndt_track_newest_ns(moments->window, moments->track);
    const enum ndt_track_refusal refusal =
        ndt_track_pose_at(moments->window, moments->track, stamp_ns, moments->max_ahead_s, &pose);
    if (refusal != NDT_TRACK_NOT_REFUSED) {
        ndt_track_refusal_line(refusal, &pose, line, sizeof(line));
        return ndt_fail(err, NDT_END, "%s: %s", ndt_track_refusal_name(refusal), line);
    }
    *out = (struct ndt_moment_message){.stamp_ns = stamp_ns,
                                       .frame_id = "map",
                                       .T_map_base = pose.state.T_map_base,
                                       .has_twist = pose.state.has_twist,
                                       .twist = pose.state.twist,
                                       .kind = pose.kind,
                                       .state = moments->state,
                                       .scan_ns = pose.scan_ns};
    ndt_track_map_covariance(&pose.state, out->covariance);
    return NDT_OK;
}
