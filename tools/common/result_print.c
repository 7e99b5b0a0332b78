#include "result_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int result_has_pose(const struct ndt_result_message *message)
{
    const double *q = message->result.T_map_sensor.q_xyzw;
    return q[0] != 0 || q[1] != 0 || q[2] != 0 || q[3] != 0;
}

double result_latency_us(const struct ndt_result_message *message)
{
    const double stages[] = {message->decode_us, message->queue_us, message->preprocess_us, message->publish_us,
                             message->result.align_us};
    double sum = 0; /* upload_us is a part of align_us */
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
        sum += isfinite(stages[i]) ? stages[i] : 0;
    return sum;
}

void result_print_text(FILE *file, const struct ndt_result_message *message)
{
    const struct ndt_align_result *result = &message->result;
    fprintf(file, "%" PRIu64 " %" PRId64 " ns %s", message->seq, message->stamp_ns,
            ndt_outcome_name(result->outcome));
    if (result_has_pose(message)) {
        const double *t = result->T_map_sensor.t_m, *q = result->T_map_sensor.q_xyzw;
        const double yaw_rad = atan2(2 * (q[3] * q[2] + q[0] * q[1]), 1 - 2 * (q[1] * q[1] + q[2] * q[2]));
        fprintf(file, "  x %.3f y %.3f z %.3f m yaw %.2f deg", t[0], t[1], t[2], yaw_rad * 57.29577951308232);
        fprintf(file, "  nvtl %.3f matched %.3f  %d iterations", result->scores.nvtl, result->scores.match_ratio,
                result->iterations);
    }
    fprintf(file, "  %.1f ms", result_latency_us(message) * 1e-3);
    if (*result->reason)
        fprintf(file, "  (%s)", result->reason);
    fputc('\n', file);
}

/* 17 digits give every double back. */
static void print_number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, "%.17g", value);
    else
        fprintf(file, "null");
}

static void print_real(FILE *file, const char *key, double value)
{
    fprintf(file, ",\"%s\":", key);
    print_number(file, value);
}

static void print_reals(FILE *file, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputc(i == 0 ? '[' : ',', file);
        print_number(file, values[i]);
    }
    fputc(']', file);
}

/* Texts on the wire are printable ASCII. */
static void print_text(FILE *file, const char *key, const char *text)
{
    fprintf(file, ",\"%s\":\"", key);
    for (; *text; text++)
        fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', file);
}

static void print_poses(FILE *file, const struct ndt_result_message *message)
{
    const struct ndt_align_result *result = &message->result;
    if (result_has_pose(message)) {
        double values[7];
        memcpy(values, result->T_map_sensor.t_m, sizeof(result->T_map_sensor.t_m));
        memcpy(values + 3, result->T_map_sensor.q_xyzw, sizeof(result->T_map_sensor.q_xyzw));
        fprintf(file, ",\"pose\":");
        print_reals(file, values, 7);
    }
    if (result->has_covariance) {
        fprintf(file, ",\"covariance\":");
        print_reals(file, result->covariance, 36);
    }
    fprintf(file, ",\"weak_axes\":[");
    for (int i = 0; i < result->weak_count; i++) {
        fputs(i ? "," : "", file);
        print_reals(file, result->weak_axes[i], 6);
    }
    fputc(']', file);
}

void result_print_json(FILE *file, const struct ndt_result_message *message)
{
    const struct ndt_align_result *result = &message->result;
    fprintf(file, "{\"seq\":%" PRIu64 ",\"stamp_ns\":%" PRId64, message->seq, message->stamp_ns);
    print_text(file, "frame_id", message->frame_id);
    print_text(file, "outcome", ndt_outcome_name(result->outcome));
    print_text(file, "reason", result->reason);
    print_poses(file, message);
    print_real(file, "transform_probability", result->scores.transform_probability);
    print_real(file, "nvtl", result->scores.nvtl);
    print_real(file, "nvtl_normalized", result->scores.nvtl_normalized);
    print_real(file, "match_ratio", result->scores.match_ratio);
    print_real(file, "coverage", result->scores.coverage);
    fprintf(file, ",\"iterations\":%d,\"evaluations\":%d,\"oscillation\":%d,\"map_id\":%" PRIu64,
            result->iterations, result->evaluations, result->oscillation, message->map_id);
    fprintf(file, ",\"config_hash\":%" PRIu64 ",\"queue_depth\":%" PRIu32 ",\"drop_counter\":%" PRIu64,
            message->config_hash, message->queue_depth, message->drop_counter);
    print_real(file, "decode_us", message->decode_us);
    print_real(file, "queue_us", message->queue_us);
    print_real(file, "preprocess_us", message->preprocess_us);
    print_real(file, "upload_us", message->upload_us);
    print_real(file, "align_us", result->align_us);
    print_real(file, "publish_us", message->publish_us);
    fputs("}\n", file);
}
