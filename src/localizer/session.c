/** @file
 * @brief A pipeline with its options, map and messages in one object, for other programs. */
#include "ndtd/session.h"

#include <stdlib.h>

#include "ndt_io/map_file.h"
#include "ndtd/config_file.h"
#include "ndtd/pipeline.h"
#include "ndtd/scan_result.h"
#include "ndtd/scan_state.h"

struct ndtd_session {
    struct ndtd_settings settings;
    uint64_t config_hash, map_id;
    struct ndtd_pipeline *pipeline; /**< NULL before the start */
    struct ndt_buffer frame;        /**< message in process */
    int is_trusted;
};

enum ndt_status ndtd_session_create(struct ndtd_session **out, struct ndt_error *err)
{
    struct ndtd_session *session = *out = calloc(1, sizeof(*session));
    if (!session)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a session");
    ndtd_settings_default(&session->settings);
    ndt_buffer_init(&session->frame);
    return NDT_OK;
}

void ndtd_session_destroy(struct ndtd_session *session)
{
    if (!session)
        return;
    if (session->pipeline)
        ndtd_pipeline_destroy(session->pipeline);
    ndt_buffer_free(&session->frame);
    free(session);
}

/* ---- before the start ---- */

static enum ndt_status check_not_started(const struct ndtd_session *session, struct ndt_error *err)
{
    return session->pipeline ? ndt_fail(err, NDT_ERR_ARGUMENT, "the session has started: options are set before")
                             : NDT_OK;
}

/* A refused option leaves the others as they are. */
enum ndt_status ndtd_session_read_options(struct ndtd_session *session, const char *path, struct ndt_error *err)
{
    struct ndtd_settings settings = session->settings;
    enum ndt_status status = check_not_started(session, err);
    if (status == NDT_OK)
        status = ndtd_config_read(&settings, path, err);
    if (status == NDT_OK)
        session->settings = settings;
    return status;
}

enum ndt_status ndtd_session_set_option(struct ndtd_session *session, const char *name, const char *value,
                                        struct ndt_error *err)
{
    struct ndtd_settings settings = session->settings;
    enum ndt_status status = check_not_started(session, err);
    if (status == NDT_OK)
        status = ndtd_option_set_text(&settings, name, value, err);
    if (status == NDT_OK)
        session->settings = settings;
    return status;
}

static enum ndt_status load_map(const struct ndtd_settings *settings, struct ndt_map **map, struct ndt_error *err)
{
    if (!*settings->map_path)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "no map: hand one over, or set the option map.path");
    return ndt_map_load(map, settings->map_path, &settings->map, err);
}

enum ndt_status ndtd_session_start(struct ndtd_session *session, struct ndt_map *map, struct ndt_error *err)
{
    const struct ndtd_settings_snapshot *snapshot = NULL;
    struct ndtd_settings settings = session->settings;
    struct ndt_map *loaded = NULL;
    enum ndt_status status = check_not_started(session, err);
    if (status == NDT_OK)
        status = ndtd_settings_finish(&settings, err);
    if (status == NDT_OK && !map) {
        status = load_map(&settings, &loaded, err);
        map = loaded;
    }
    if (status == NDT_OK)
        status = ndtd_settings_snapshot_create(&snapshot, &settings, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_create(&session->pipeline, snapshot, map, 0, err);
    if (status == NDT_OK) {
        session->config_hash = snapshot->hash;
        session->map_id = map->id;
    }
    ndtd_settings_snapshot_release(snapshot);
    ndt_map_release(loaded);
    return status;
}

/* ---- after the start ---- */

static enum ndt_status check_started(const struct ndtd_session *session, struct ndt_error *err)
{
    return session->pipeline ? NDT_OK : ndt_fail(err, NDT_ERR_ARGUMENT, "the session has not started");
}

static enum ndt_status process(struct ndtd_session *session, const void *data, size_t size, int *is_scan,
                               struct ndt_result_message *result, struct ndt_error *err)
{
    struct ndtd_message frame = {.data = data, .size = size};
    struct ndtd_scan_record record;
    enum ndt_status status = ndt_message_peek(data, size, &frame.type, err);
    if (status == NDT_OK && frame.type == NDT_MESSAGE_SCAN)
        status = ndt_scan_header_decode(data, size, &frame.scan, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_process(session->pipeline, &frame, &record, err);
    *is_scan = status == NDT_OK && frame.type == NDT_MESSAGE_SCAN;
    if (!*is_scan)
        return status;
    ndtd_scan_result(&record, result);
    result->config_hash = session->config_hash;
    result->map_id = session->map_id;
    session->is_trusted = ndtd_scan_has_trusted_pose(&record);
    return NDT_OK;
}

/* Processes the message that was encoded, if it could be. */
static enum ndt_status process_encoded(struct ndtd_session *session, enum ndt_status encoded,
                                       struct ndt_result_message *result, struct ndt_error *err)
{
    int is_scan;
    return encoded == NDT_OK ? process(session, session->frame.data, session->frame.size, &is_scan, result, err)
                             : encoded;
}

enum ndt_status ndtd_session_message(struct ndtd_session *session, const void *data, size_t size, int *is_scan,
                                     struct ndt_result_message *result, struct ndt_error *err)
{
    const enum ndt_status status = check_started(session, err);
    *is_scan = 0;
    return status == NDT_OK ? process(session, data, size, is_scan, result, err) : status;
}

enum ndt_status ndtd_session_scan(struct ndtd_session *session, const struct ndt_scan_message *scan,
                                  const struct ndt_cloud *points, struct ndt_result_message *result,
                                  struct ndt_error *err)
{
    const enum ndt_status status = check_started(session, err);
    if (status != NDT_OK)
        return status;
    return process_encoded(session, ndt_scan_encode(&session->frame, scan, points, err), result, err);
}

enum ndt_status ndtd_session_pose(struct ndtd_session *session, enum ndt_message_type type,
                                  const struct ndt_pose_message *pose, struct ndt_error *err)
{
    const enum ndt_status status = check_started(session, err);
    if (status != NDT_OK)
        return status;
    if (type != NDT_MESSAGE_INITIAL_POSE && type != NDT_MESSAGE_ODOMETRY)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a pose is an initial_pose or odometry, not %s",
                        ndt_message_name(type));
    return process_encoded(session, ndt_pose_message_encode(&session->frame, type, pose, err), NULL, err);
}

enum ndt_status ndtd_session_imu(struct ndtd_session *session, const struct ndt_imu_message *imu,
                                 struct ndt_error *err)
{
    const enum ndt_status status = check_started(session, err);
    if (status != NDT_OK)
        return status;
    return process_encoded(session, ndt_imu_encode(&session->frame, imu, err), NULL, err);
}

enum ndt_status ndtd_session_gnss(struct ndtd_session *session, const struct ndt_gnss_message *gnss,
                                  struct ndt_error *err)
{
    const enum ndt_status status = check_started(session, err);
    if (status != NDT_OK)
        return status;
    return process_encoded(session, ndt_gnss_encode(&session->frame, gnss, err), NULL, err);
}

enum ndt_status ndtd_session_pose_at(const struct ndtd_session *session, int64_t stamp_ns,
                                     struct ndt_moment_message *out, struct ndt_error *err)
{
    const enum ndt_status status = check_started(session, err);
    return status == NDT_OK ? ndtd_pipeline_pose_at(session->pipeline, stamp_ns, out, err) : status;
}

int ndtd_session_is_pose_trusted(const struct ndtd_session *session)
{
    return session->is_trusted;
}

enum ndt_status ndtd_session_set_map(struct ndtd_session *session, struct ndt_map *map, struct ndt_error *err)
{
    enum ndt_status status = check_started(session, err);
    if (status == NDT_OK)
        status = ndtd_pipeline_set_map(session->pipeline, map, err);
    if (status == NDT_OK)
        session->map_id = map ? map->id : 0;
    return status;
}
