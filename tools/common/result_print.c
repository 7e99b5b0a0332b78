#include "result_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int is_pose(const struct ndt_pose *pose)
{
    const double *q = pose->q_xyzw;
    return q[0] != 0 || q[1] != 0 || q[2] != 0 || q[3] != 0;
}

int result_has_pose(const struct ndt_result_message *message)
{
    return is_pose(&message->result.T_map_sensor);
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
        const double *t = result->T_map_sensor.t_m;
        fprintf(file, "  x %.3f y %.3f z %.3f m yaw %.2f deg", t[0], t[1], t[2],
                ndt_pose_heading_rad(&result->T_map_sensor) * 57.29577951308232);
        fprintf(file, "  nvtl %.3f matched %.3f  %d iterations", result->scores.nvtl, result->scores.match_ratio,
                result->iterations);
    }
    if (message->has_state)
        fprintf(file, "  %s", ndt_state_name(message->state));
    if (message->has_confidence)
        fprintf(file, "  confidence %.3f", message->confidence);
    fprintf(file, "  %.1f ms", result_latency_us(message) * 1e-3);
    if (*result->reason)
        fprintf(file, "  (%s)", result->reason);
    fputc('\n', file);
}

/* 17 digits restore every double exactly. */
void json_number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, "%.17g", value);
    else
        fprintf(file, "null");
}

void json_real(FILE *file, const char *key, double value)
{
    fprintf(file, ",\"%s\":", key);
    json_number(file, value);
}

void json_reals(FILE *file, const char *key, const double *values, size_t count)
{
    if (key)
        fprintf(file, ",\"%s\":", key);
    fputc('[', file);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', file);
        json_number(file, values[i]);
    }
    fputc(']', file);
}

void json_text(FILE *file, const char *key, const char *text)
{
    fprintf(file, ",\"%s\":\"", key);
    for (; *text; text++)
        fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', file);
}

void json_pose(FILE *file, const struct ndt_pose *pose)
{
    double values[7];
    if (!is_pose(pose))
        return;
    memcpy(values, pose->t_m, sizeof(pose->t_m));
    memcpy(values + 3, pose->q_xyzw, sizeof(pose->q_xyzw));
    json_reals(file, "pose", values, 7);
}

void json_twist(FILE *file, const struct ndt_twist *twist)
{
    double values[6];
    memcpy(values, twist->v_mps, sizeof(twist->v_mps));
    memcpy(values + 3, twist->w_radps, sizeof(twist->w_radps));
    json_reals(file, "twist", values, 6);
}

void result_print_json(FILE *file, const struct ndt_result_message *message)
{
    struct ndt_buffer frame;
    struct ndt_error err = {""};
    ndt_buffer_init(&frame);
    if (ndt_result_encode(&frame, message, &err) != NDT_OK ||
        ndt_message_print_json(file, frame.data, frame.size, &err) != NDT_OK)
        fprintf(file, "\"error\":\"%s\"", err.text); /* out of memory: what is decoded can be encoded */
    ndt_buffer_free(&frame);
}
