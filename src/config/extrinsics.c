/** @file
 * @brief Transforms to the base frame from text. */
#include "ndtd/extrinsics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MATRIX_NUMBERS = 16, NUMBER_BYTES = 40 };
static const char SEPARATORS[] = " \t,";
static const double MAX_DISTANCE_M = 1000, MAX_ANGLE_RAD = 6.2832, ROTATION_TOLERANCE = 1e-3;

const struct ndtd_sensor_frame *ndtd_extrinsics_sensor(const struct ndtd_extrinsics *frames, const char *frame_id)
{
    for (size_t i = 0; i < frames->sensor_count; i++)
        if (strcmp(frames->sensors[i].frame_id, frame_id) == 0)
            return &frames->sensors[i];
    return NULL;
}

const struct ndt_pose *ndtd_extrinsics_of(const struct ndtd_extrinsics *frames, const char *frame_id)
{
    const struct ndtd_sensor_frame *sensor = ndtd_extrinsics_sensor(frames, frame_id);
    return sensor ? &sensor->T_base_sensor : &frames->T_base_sensor;
}

/* ---- numbers ---- */

static enum ndt_status add_number(const char *text, size_t length, double numbers[MATRIX_NUMBERS], size_t *count,
                                  struct ndt_error *err)
{
    char item[NUMBER_BYTES], *end = item;
    if (*count == MATRIX_NUMBERS)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "more than %d numbers", MATRIX_NUMBERS);
    if (length < sizeof(item)) {
        memcpy(item, text, length);
        item[length] = '\0';
        numbers[*count] = strtod(item, &end);
    }
    /* excludes "0x1p3", "nan" and "inf", which strtod takes */
    if (length >= sizeof(item) || *end || strspn(item, "+-.0123456789eE") != length || !isfinite(numbers[*count]))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.*s' is not a number", (int)(length < 40 ? length : 40), text);
    (*count)++;
    return NDT_OK;
}

static enum ndt_status read_numbers(const char *text, double numbers[MATRIX_NUMBERS], size_t *count,
                                    struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    for (text += strspn(text, SEPARATORS); status == NDT_OK && *text; text += strspn(text, SEPARATORS)) {
        const size_t length = strcspn(text, SEPARATORS);
        status = add_number(text, length, numbers, count, err);
        text += length;
    }
    return status;
}

/* ---- transforms ---- */

static enum ndt_status from_quaternion(const double numbers[7], struct ndt_pose *out, struct ndt_error *err)
{
    const double *q = numbers + 3, norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(fabs(norm - 1) <= ROTATION_TOLERANCE))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the quaternion has length %g instead of 1 +- %g", norm,
                        ROTATION_TOLERANCE);
    memcpy(out->t_m, numbers, sizeof(out->t_m));
    memcpy(out->q_xyzw, q, sizeof(out->q_xyzw));
    if (fabs(norm - 1) > 1e-14) /* a quaternion that was normalised and printed reads back bit by bit */
        (void)ndt_pose_normalize(out);
    return NDT_OK;
}

static enum ndt_status from_angles(const double numbers[6], struct ndt_pose *out, struct ndt_error *err)
{
    static const char *const names[] = {"roll", "pitch", "yaw"};
    double c[3], s[3];
    for (int i = 0; i < 3; i++) {
        if (fabs(numbers[3 + i]) > MAX_ANGLE_RAD)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s is %g; angles are in radians, -%g .. %g", names[i],
                            numbers[3 + i], MAX_ANGLE_RAD, MAX_ANGLE_RAD);
        c[i] = cos(numbers[3 + i]);
        s[i] = sin(numbers[3 + i]);
    }
    const double R[9] = {c[2] * c[1],
                         c[2] * s[1] * s[0] - s[2] * c[0],
                         c[2] * s[1] * c[0] + s[2] * s[0],
                         s[2] * c[1],
                         s[2] * s[1] * s[0] + c[2] * c[0],
                         s[2] * s[1] * c[0] - c[2] * s[0],
                         -s[1],
                         c[1] * s[0],
                         c[1] * c[0]};
    *out = ndt_pose_from_rotation(R, numbers);
    return NDT_OK;
}

static double determinant(const double R[9])
{
    return R[0] * (R[4] * R[8] - R[5] * R[7]) - R[1] * (R[3] * R[8] - R[5] * R[6]) +
           R[2] * (R[3] * R[7] - R[4] * R[6]);
}

static enum ndt_status from_matrix(const double numbers[16], struct ndt_pose *out, struct ndt_error *err)
{
    double R[9], worst = 0;
    for (int i = 0; i < 4; i++)
        if (fabs(numbers[12 + i] - (i == 3)) > 1e-9)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "the last row of the matrix is not 0 0 0 1");
    for (int i = 0; i < 9; i++)
        R[i] = numbers[4 * (i / 3) + i % 3];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            const double product = R[3 * i] * R[3 * k] + R[3 * i + 1] * R[3 * k + 1] + R[3 * i + 2] * R[3 * k + 2];
            worst = fmax(worst, fabs(product - (i == k)));
        }
    if (!(worst <= ROTATION_TOLERANCE) || determinant(R) < 0)
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "the matrix is not a rotation: R R^T differs from 1 by %g (limit %g), the determinant is %g", worst,
            ROTATION_TOLERANCE, determinant(R));
    const double t_m[3] = {numbers[3], numbers[7], numbers[11]};
    *out = ndt_pose_from_rotation(R, t_m);
    return NDT_OK;
}

static enum ndt_status from_numbers(const double numbers[MATRIX_NUMBERS], size_t count, struct ndt_pose *out,
                                    struct ndt_error *err)
{
    enum ndt_status status;
    switch (count) {
    case 6:
        status = from_angles(numbers, out, err);
        break;
    case 7:
        status = from_quaternion(numbers, out, err);
        break;
    case 16:
        status = from_matrix(numbers, out, err);
        break;
    default:
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "%zu numbers, but a transform has 6 (x y z roll pitch yaw), 7 (x y z qx qy qz qw) or 16 (a "
                        "4x4 matrix by rows)",
                        count);
    }
    if (status != NDT_OK)
        return status;
    const double distance_m = hypot(hypot(out->t_m[0], out->t_m[1]), out->t_m[2]);
    if (distance_m > MAX_DISTANCE_M)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a translation of %g m, at most %g m are possible", distance_m,
                        MAX_DISTANCE_M);
    return NDT_OK;
}

enum ndt_status ndtd_transform_parse(const char *const *texts, size_t count, struct ndt_pose *out,
                                     struct ndt_error *err)
{
    double numbers[MATRIX_NUMBERS] = {0};
    size_t found = 0;
    enum ndt_status status = NDT_OK;
    struct ndt_pose pose;
    for (size_t i = 0; status == NDT_OK && i < count; i++)
        status = read_numbers(texts[i], numbers, &found, err);
    if (status == NDT_OK)
        status = from_numbers(numbers, found, &pose, err);
    if (status == NDT_OK)
        *out = pose;
    return status;
}

/* ---- several sensors ---- */

/* Whether a YAML list holds the text without quotes. */
static int is_frame_id(const char *text, size_t length)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/0123456789.-";
    return length > 0 && strchr(first, text[0]) && strspn(text, more) >= length;
}

enum ndt_status ndtd_sensor_frame_parse(const char *text, struct ndtd_sensor_frame *out, struct ndt_error *err)
{
    struct ndtd_sensor_frame sensor = {.frame_id = ""};
    text += strspn(text, SEPARATORS);
    const size_t length = strcspn(text, SEPARATORS);
    const char *const numbers = text + length;
    if (!is_frame_id(text, length))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "'%.40s' does not begin with a frame_id of letters, digits and _ / . - that is followed by "
                        "its transform",
                        text);
    if (length >= sizeof(sensor.frame_id))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a frame_id of %zu bytes, at most %d are possible", length,
                        NDTD_FRAME_ID_MAX - 1);
    memcpy(sensor.frame_id, text, length);
    const enum ndt_status status = ndtd_transform_parse(&numbers, 1, &sensor.T_base_sensor, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", sensor.frame_id);
    *out = sensor;
    return NDT_OK;
}

enum ndt_status ndtd_extrinsics_check(const struct ndtd_extrinsics *frames, struct ndt_error *err)
{
    for (size_t i = 0; i < frames->sensor_count; i++)
        if (ndtd_extrinsics_sensor(frames, frames->sensors[i].frame_id) != &frames->sensors[i])
            return ndt_fail(err, NDT_ERR_ARGUMENT, "frames.sensors: '%s' appears twice",
                            frames->sensors[i].frame_id);
    if (frames->merge_sensors && frames->sensor_count < 2)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "frames.merge_sensors: %zu sensors in frames.sensors, but merging needs two or more",
                        frames->sensor_count);
    return NDT_OK;
}
