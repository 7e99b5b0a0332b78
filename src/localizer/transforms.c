#include "ndtd/transforms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double MAX_DISTANCE_M = 1000; /* limit of the configuration */
/* Difference below which a configured pose is the same. */
static const double SAME_M = 1e-3, SAME_RAD = 1e-3;

static int find(const struct ndtd_transforms *transforms, const char *frame_id)
{
    for (size_t i = 0; i < transforms->count; i++)
        if (strcmp(transforms->frames[i].frame_id, frame_id) == 0)
            return (int)i;
    return -1;
}

enum ndt_status ndtd_transforms_put(struct ndtd_transforms *transforms, const struct ndt_pose_message *message,
                                    struct ndt_error *err)
{
    const double *t_m = message->pose.t_m, distance_m = hypot(hypot(t_m[0], t_m[1]), t_m[2]);
    int i = find(transforms, message->frame_id);
    if (distance_m > MAX_DISTANCE_M)
        return ndt_fail(err, NDT_ERR_LIMIT, "transform of '%s': a translation of %g m, at most %g m are possible",
                        message->frame_id, distance_m, MAX_DISTANCE_M);
    if (i < 0 && transforms->count == NDTD_TRANSFORMS_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "transform of '%s': %d frames have one already, the limit",
                        message->frame_id, NDTD_TRANSFORMS_MAX);
    if (i >= 0 && memcmp(&transforms->frames[i].T_base_sensor, &message->pose, sizeof(message->pose)) == 0)
        return NDT_OK;
    if (i >= 0) {
        struct ndtd_transform_events *events = &transforms->events;
        events->changed++;
        snprintf(events->changed_frame, sizeof(events->changed_frame), "%s", message->frame_id);
    } else {
        i = (int)transforms->count++;
        snprintf(transforms->frames[i].frame_id, sizeof(transforms->frames[i].frame_id), "%s", message->frame_id);
    }
    transforms->frames[i].T_base_sensor = message->pose;
    transforms->stamp_ns[i] = message->stamp_ns;
    transforms->told &= ~(1u << i);
    return NDT_OK;
}

/* ---- which pose counts ---- */

static int is_identity(const struct ndt_pose *pose)
{
    const struct ndt_pose identity = ndt_pose_identity();
    return memcmp(pose, &identity, sizeof(identity)) == 0;
}

/* Lets the configuration win over transform i; told once where they differ. */
static void overrule(struct ndtd_transforms *transforms, int i, const char *option, double off_m, double off_rad)
{
    struct ndtd_transform_events *events = &transforms->events;
    if (transforms->told & 1u << i)
        return;
    transforms->told |= 1u << i;
    if (off_m <= SAME_M && off_rad <= SAME_RAD)
        return;
    events->unused++;
    snprintf(events->unused_frame, sizeof(events->unused_frame), "%s", transforms->frames[i].frame_id);
    snprintf(events->unused_option, sizeof(events->unused_option), "%s", option);
}

static const struct ndt_pose *choose(struct ndtd_transforms *transforms, const char *frame_id,
                                     const struct ndt_pose *configured, int is_given, const char *option)
{
    const int i = find(transforms, frame_id);
    if (i < 0)
        return configured;
    const struct ndt_pose *told = &transforms->frames[i].T_base_sensor;
    if (!is_given)
        return told;
    overrule(transforms, i, option, ndt_pose_distance_m(told, configured), ndt_pose_angle_rad(told, configured));
    return configured;
}

const struct ndt_pose *ndtd_transforms_sensor(struct ndtd_transforms *transforms,
                                              const struct ndtd_extrinsics *frames, const char *frame_id)
{
    const struct ndtd_sensor_frame *sensor = ndtd_extrinsics_sensor(frames, frame_id);
    const struct ndt_pose *configured = ndtd_extrinsics_of(frames, frame_id);
    return choose(transforms, frame_id, configured, sensor || !is_identity(configured),
                  sensor ? "frames.sensors" : "frames.T_base_sensor");
}

const struct ndt_pose *ndtd_transforms_imu(struct ndtd_transforms *transforms, const struct ndtd_extrinsics *frames,
                                           const char *frame_id)
{
    return choose(transforms, frame_id, &frames->T_base_imu, !is_identity(&frames->T_base_imu),
                  "frames.T_base_imu");
}

const double *ndtd_transforms_antenna(struct ndtd_transforms *transforms, const struct ndtd_extrinsics *frames,
                                      const char *frame_id)
{
    const double *configured = frames->gnss_antenna_m;
    const int i = frame_id ? find(transforms, frame_id) : -1;
    if (i < 0)
        return configured;
    const double *told = transforms->frames[i].T_base_sensor.t_m;
    if (configured[0] == 0 && configured[1] == 0 && configured[2] == 0)
        return told;
    overrule(transforms, i, "frames.gnss_antenna_m",
             hypot(hypot(told[0] - configured[0], told[1] - configured[1]), told[2] - configured[2]), 0);
    return configured;
}
