#include "ndtd/replay_sinks.h"

#include <inttypes.h>
#include <string.h>

#include "ndt_io/trajectory.h"
#include "ndt/clock.h"
#include "ndtd/scan_result.h"
#include "ndtd/timing_schema.h"

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

int ndtd_timing_format(const char *path)
{
    return ends_with(path, ".csv") ? 1 : ends_with(path, ".jsonl") ? 2 : 0;
}

static enum ndt_status open_timing(struct ndtd_sinks *sinks, const char *path, struct ndt_error *err)
{
    int format = ndtd_timing_format(path);
    if (!format)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--timing %s: the name has to end in .csv or .jsonl", path);
    enum ndt_status status = ndt_output_open(&sinks->timing, path, err);
    sinks->timing_is_json = format == 2;
    if (status == NDT_OK && !sinks->timing_is_json)
        ndtd_timing_csv_header(sinks->timing.file);
    return status;
}

static enum ndt_status open_all(struct ndtd_sinks *sinks, const struct ndtd_sink_paths *paths,
                                struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    if (paths->expect) {
        status = ndtd_reference_trajectory_read(&sinks->reference, paths->expect, err);
        sinks->expects = status == NDT_OK;
    }
    if (status == NDT_OK && paths->poses) {
        sinks->poses_format = ends_with(paths->poses, ".kitti") ? NDT_KITTI : NDT_TUM;
        status = ndt_output_open(&sinks->poses, paths->poses, err);
    }
    if (status == NDT_OK && paths->timing)
        status = open_timing(sinks, paths->timing, err);
    if (status == NDT_OK && paths->results)
        status = ndt_output_open(&sinks->results, paths->results, err);
    if (status == NDT_OK && paths->summary)
        status = ndt_output_open(&sinks->json, paths->summary, err);
    return status;
}

enum ndt_status ndtd_sinks_open(struct ndtd_sinks *sinks, const struct ndtd_sink_paths *paths,
                                struct ndt_error *err)
{
    *sinks = (struct ndtd_sinks){.summary.trajectory_hash = NDTD_TRAJECTORY_HASH_START,
                                 .summary.has_out = paths->poses != NULL,
                                 .keeps_untrusted = paths->keeps_untrusted};
    ndt_buffer_init(&sinks->frame);
    enum ndt_status status = open_all(sinks, paths, err);
    if (status != NDT_OK)
        ndtd_sinks_close(sinks);
    return status;
}

static void write_timing(struct ndtd_sinks *sinks, const struct ndtd_scan_record *record)
{
    void (*write_row)(FILE *, const struct ndtd_scan_record *, const struct ndt_iteration *) =
        sinks->timing_is_json ? ndtd_timing_json_row : ndtd_timing_csv_row;
    for (size_t i = 0; i < record->trace_count; i++)
        write_row(sinks->timing.file, record, &record->trace[i]);
    write_row(sinks->timing.file, record, NULL);
}

/* Writes one line with the keys of the result message. A result that cannot be sent, such as one with a covariance
 * that is not finite, is written as its number and the reason. */
static enum ndt_status write_result(struct ndtd_sinks *sinks, const struct ndtd_scan_record *record,
                                    struct ndt_error *err)
{
    FILE *file = sinks->results.file;
    struct ndt_result_message message;
    struct ndt_error why = {""};
    ndtd_scan_result(record, &message);
    message.map_id = sinks->map_id;
    message.config_hash = sinks->config_hash;
    enum ndt_status status = ndt_result_encode(&sinks->frame, &message, &why);
    if (status == NDT_ERR_MEMORY)
        return ndt_fail(err, status, "%s", why.text);
    fputc('{', file);
    if (status == NDT_OK)
        status = ndt_message_print_json(file, sinks->frame.data, sinks->frame.size, &why);
    if (status != NDT_OK)
        fprintf(file, "\"seq\":%" PRIu64 ",\"stamp_ns\":%" PRId64 ",\"error\":\"%s\"", record->seq,
                record->stamp_ns, why.text);
    fputs("}\n", file);
    return NDT_OK;
}

static enum ndt_status publish(struct ndtd_sinks *sinks, const struct ndtd_scan_record *record,
                               struct ndt_error *err)
{
    const struct ndt_pose *pose = &record->result.T_map_sensor;
    int has_pose = ndtd_outcome_has_pose(record->result.outcome);
    int is_written = has_pose && (sinks->keeps_untrusted || ndtd_scan_has_trusted_pose(record));
    sinks->summary.trajectory_hash = ndtd_trajectory_hash(sinks->summary.trajectory_hash, record->seq,
                                                          record->stamp_ns, record->result.outcome, pose);
    sinks->summary.omitted += sinks->poses.file && has_pose && !is_written;
    if (is_written && sinks->poses.file)
        ndt_trajectory_write_pose(sinks->poses.file, sinks->poses_format, record->stamp_ns, pose);
    if (is_written && sinks->expects)
        ndtd_reference_trajectory_compare(&sinks->reference, record->stamp_ns, pose);
    return ndtd_trajectory_error_add_result(&sinks->trajectory_error, record->stamp_ns, has_pose ? pose : NULL,
                                            err);
}

enum ndt_status ndtd_sinks_emit(struct ndtd_sinks *sinks, struct ndtd_scan_record *record, struct ndt_error *err)
{
    double start_us = ndt_clock_us();
    enum ndt_status status = publish(sinks, record, err);
    record->publish_us = ndt_clock_us() - start_us;
    if (status == NDT_OK)
        status = ndtd_summary_add(&sinks->summary, record, err);
    if (status == NDT_OK && sinks->timing.file)
        write_timing(sinks, record);
    if (status == NDT_OK && sinks->results.file)
        status = write_result(sinks, record, err);
    return status;
}

static enum ndt_status commit(struct ndt_output *output, enum ndt_status status, struct ndt_error *err)
{
    return status == NDT_OK && output->file ? ndt_output_commit(output, err) : status;
}

enum ndt_status ndtd_sinks_finish(struct ndtd_sinks *sinks, struct ndt_error *err)
{
    enum ndt_status status = ndtd_trajectory_error_compute(&sinks->trajectory_error, &sinks->summary.errors, err);
    if (sinks->poses.file && sinks->poses_format == NDT_TUM) /* readers of KITTI files know no comments */
        fprintf(sinks->poses.file, "# trajectory_hash %016" PRIx64 "\n", sinks->summary.trajectory_hash);
    if (sinks->json.file)
        ndtd_report_json(sinks->json.file, &sinks->summary);
    status = commit(&sinks->poses, status, err);
    status = commit(&sinks->timing, status, err);
    status = commit(&sinks->results, status, err);
    return commit(&sinks->json, status, err);
}

void ndtd_sinks_close(struct ndtd_sinks *sinks)
{
    ndt_output_discard(&sinks->poses);
    ndt_output_discard(&sinks->timing);
    ndt_output_discard(&sinks->results);
    ndt_buffer_free(&sinks->frame);
    ndt_output_discard(&sinks->json);
    ndtd_reference_trajectory_free(&sinks->reference);
    ndtd_trajectory_error_free(&sinks->trajectory_error);
    ndtd_summary_free(&sinks->summary);
    sinks->expects = 0;
}
