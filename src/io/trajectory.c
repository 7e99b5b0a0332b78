#include "ndt_io/trajectory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "number_text.h"

/* Largest difference from 1 that is a rounding error; beyond it the columns are wrong. */
static const double unit_tolerance = 0.01;
static const double rounding_tolerance = 1e-14;

/* A text file of numbers, read line by line. */
struct rows {
    struct ndt_input input;
    struct ndt_line_reader reader;
    const char *at, *end;
};

static enum ndt_status open_rows(struct rows *out, const char *path, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    enum ndt_status status = ndt_input_open(&out->input, path, err);
    return status == NDT_OK ? ndt_line_reader_open(&out->reader, &out->input, 0, 0, err) : status;
}

static void close_rows(struct rows *rows)
{
    ndt_line_reader_close(&rows->reader);
    ndt_input_close(&rows->input);
}

/* Reads the next line that is not blank before a '#'. */
static enum ndt_status next_row(struct rows *rows, struct ndt_error *err)
{
    enum ndt_status status;
    do {
        status = ndt_line_next(&rows->reader, &rows->at, &rows->end, err);
        if (status != NDT_OK)
            return status;
        const char *comment = memchr(rows->at, '#', (size_t)(rows->end - rows->at));
        if (comment)
            rows->end = comment;
    } while (ndt_text_done(rows->at, rows->end));
    return NDT_OK;
}

static enum ndt_status fail_row(const struct rows *rows, const char *what, struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: %s", rows->input.path, rows->reader.number, what);
}

static int read_numbers(struct rows *rows, double *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!ndt_text_real(&rows->at, rows->end, &out[i]) || !isfinite(out[i]))
            return 0;
    return ndt_text_done(rows->at, rows->end);
}

static enum ndt_status parse_tum(struct rows *rows, struct ndt_stamped_pose *out, struct ndt_error *err)
{
    double number[11];
    if (!ndt_text_seconds(&rows->at, rows->end, &out->stamp_ns))
        return fail_row(rows, "the stamp is not a number of seconds within int64 nanoseconds", err);
    const char *const from = rows->at;
    if (!read_numbers(rows, number, 7)) {
        rows->at = from;
        return fail_row(rows,
                        read_numbers(rows, number, 11)
                            ? "12 numbers, as a pose of KITTI; one of TUM has 8: stamp tx ty "
                              "tz qx qy qz qw (ndt-bag pack: --format kitti)"
                            : "not 8 numbers: stamp tx ty tz qx qy qz qw",
                        err);
    }
    memcpy(out->T_map_sensor.t_m, number, sizeof(out->T_map_sensor.t_m));
    memcpy(out->T_map_sensor.q_xyzw, number + 3, sizeof(out->T_map_sensor.q_xyzw));
    double square = 0.0;
    for (size_t i = 3; i < 7; i++)
        square += number[i] * number[i];
    if (fabs(sqrt(square) - 1.0) > unit_tolerance)
        return fail_row(rows, "the quaternion does not have length 1", err);
    /* Numbers written with all digits stay bit-identical. */
    if (fabs(square - 1.0) > rounding_tolerance)
        ndt_pose_normalize(&out->T_map_sensor);
    return NDT_OK;
}

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Whether a matrix is a rotation: rows of unit length, at right angles, right-handed. */
static int is_rotation(const double R[9])
{
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j <= i; j++)
            if (!(fabs(dot(R + 3 * i, R + 3 * j) - (i == j)) <= unit_tolerance))
                return 0;
    const double cross[3] = {R[4] * R[8] - R[5] * R[7], R[5] * R[6] - R[3] * R[8], R[3] * R[7] - R[4] * R[6]};
    return dot(R, cross) > 0.0;
}

static enum ndt_status parse_kitti(struct rows *rows, struct ndt_stamped_pose *out, struct ndt_error *err)
{
    double number[12], R[9], t_m[3];
    if (!read_numbers(rows, number, 12))
        return fail_row(rows, "not 12 numbers of a 3x4 matrix", err);
    for (size_t i = 0; i < 3; i++) {
        memcpy(R + 3 * i, number + 4 * i, 3 * sizeof(double));
        t_m[i] = number[4 * i + 3];
    }
    if (!is_rotation(R))
        return fail_row(rows, "the 3x3 part is not a rotation", err);
    out->T_map_sensor = ndt_pose_from_rotation(R, t_m);
    out->stamp_ns = (int64_t)rows->reader.number - 1;
    return NDT_OK;
}

/* Makes room for one more element. */
static enum ndt_status grow(const struct rows *rows, void **array, size_t count, size_t *capacity, size_t size,
                            struct ndt_error *err)
{
    if (count < *capacity)
        return NDT_OK;
    const size_t wanted = *capacity ? 2 * *capacity : 256;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory for %zu lines", rows->input.path, wanted);
    *array = grown;
    *capacity = wanted;
    return NDT_OK;
}

static enum ndt_status read_poses(struct rows *rows, struct ndt_trajectory *out, enum ndt_trajectory_format format,
                                  struct ndt_error *err)
{
    size_t capacity = 0;
    for (;;) {
        enum ndt_status status = next_row(rows, err);
        if (status == NDT_END)
            break;
        void *poses = out->poses;
        if (status == NDT_OK)
            status = grow(rows, &poses, out->count, &capacity, sizeof(*out->poses), err);
        out->poses = poses;
        if (status == NDT_OK)
            status = format == NDT_TUM ? parse_tum(rows, &out->poses[out->count], err)
                                       : parse_kitti(rows, &out->poses[out->count], err);
        if (status != NDT_OK)
            return status;
        out->count++;
    }
    return out->count ? NDT_OK : ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no pose", rows->input.path);
}

enum ndt_status ndt_trajectory_read(struct ndt_trajectory *out, const char *path, enum ndt_trajectory_format format,
                                    struct ndt_error *err)
{
    struct rows rows;
    memset(out, 0, sizeof(*out));
    enum ndt_status status = open_rows(&rows, path, err);
    if (status == NDT_OK)
        status = read_poses(&rows, out, format, err);
    close_rows(&rows);
    if (status != NDT_OK)
        ndt_trajectory_free(out);
    return status;
}

void ndt_trajectory_free(struct ndt_trajectory *trajectory)
{
    free(trajectory->poses);
    memset(trajectory, 0, sizeof(*trajectory));
}

static int write_tum(FILE *file, int64_t stamp_ns, const struct ndt_pose *pose)
{
    const uint64_t size_ns = stamp_ns < 0 ? 0 - (uint64_t)stamp_ns : (uint64_t)stamp_ns;
    return fprintf(file, "%s%" PRIu64 ".%09" PRIu64 " %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n",
                   stamp_ns < 0 ? "-" : "", size_ns / 1000000000u, size_ns % 1000000000u, pose->t_m[0],
                   pose->t_m[1], pose->t_m[2], pose->q_xyzw[0], pose->q_xyzw[1], pose->q_xyzw[2], pose->q_xyzw[3]);
}

static int write_kitti(FILE *file, const struct ndt_pose *pose)
{
    double R[9];
    ndt_pose_rotation(pose, R);
    const double *t_m = pose->t_m;
    return fprintf(file, "%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", R[0], R[1],
                   R[2], t_m[0], R[3], R[4], R[5], t_m[1], R[6], R[7], R[8], t_m[2]);
}

int ndt_trajectory_write_pose(FILE *file, enum ndt_trajectory_format format, int64_t stamp_ns,
                              const struct ndt_pose *pose)
{
    const locale_t callers = uselocale(ndt_text_locale());
    const int written = format == NDT_TUM ? write_tum(file, stamp_ns, pose) : write_kitti(file, pose);
    uselocale(callers);
    return written;
}

static enum ndt_status read_times(struct rows *rows, int64_t **out, size_t *count, struct ndt_error *err)
{
    size_t capacity = 0;
    for (;;) {
        int64_t time_ns = 0;
        enum ndt_status status = next_row(rows, err);
        if (status == NDT_END)
            break;
        void *times = *out;
        if (status == NDT_OK)
            status = grow(rows, &times, *count, &capacity, sizeof(**out), err);
        *out = times;
        if (status == NDT_OK &&
            (!ndt_text_seconds(&rows->at, rows->end, &time_ns) || !ndt_text_done(rows->at, rows->end)))
            status = fail_row(rows, "not one number of seconds within int64 nanoseconds", err);
        if (status != NDT_OK)
            return status;
        (*out)[(*count)++] = time_ns;
    }
    return *count ? NDT_OK : ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no time", rows->input.path);
}

enum ndt_status ndt_times_read(int64_t **out, size_t *count, const char *path, struct ndt_error *err)
{
    struct rows rows;
    *out = NULL;
    *count = 0;
    enum ndt_status status = open_rows(&rows, path, err);
    if (status == NDT_OK)
        status = read_times(&rows, out, count, err);
    close_rows(&rows);
    if (status != NDT_OK) {
        free(*out);
        *out = NULL;
        *count = 0;
    }
    return status;
}
