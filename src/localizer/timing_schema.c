#include "ndtd/timing_schema.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ndt/linalg.h"

/* clang-format off */
#define SCAN(member) {NDTD_CELL_SCAN, offsetof(struct ndtd_scan_record, member)}
#define STEP(member) {NDTD_CELL_STEP, offsetof(struct ndt_iteration, member)}
#define NONE         {NDTD_CELL_NONE, 0}
/* clang-format on */
#define REAL NDTD_CELL_REAL
#define TIME NDTD_CELL_US

static const struct ndtd_timing_column columns[] = {
    {"seq", "", "number of the scan", NDTD_CELL_U64, SCAN(seq), SCAN(seq)},
    {"stamp_ns", "ns", "stamp of the scan", NDTD_CELL_I64, SCAN(stamp_ns), SCAN(stamp_ns)},
    {"iteration", "", "number of the step, from 0; scan: number of steps", NDTD_CELL_I32, STEP(iteration),
     SCAN(result.iterations)},
    {"level", "", "level of the step, 0 = the coarsest", NDTD_CELL_I32, STEP(level), NONE},
    {"evaluations", "", "evaluations of the score", NDTD_CELL_I32, STEP(evaluations), SCAN(result.evaluations)},
    {"score", "", "score where the step starts", REAL, STEP(score), NONE},
    {"gradient_norm", "", "length of its gradient", REAL, STEP(gradient_norm), NONE},
    {"step_m", "m", "length of the step", REAL, STEP(step_m), NONE},
    {"step_rad", "rad", "angle of the step", REAL, STEP(step_rad), NONE},
    {"min_abs_eigenvalue", "", "smallest |eigenvalue| of the Hessian", NDTD_CELL_EIGENVALUE, STEP(hessian), NONE},
    {"matched", "points", "points with a voxel", REAL, STEP(matched), NONE},
    {"pairs", "", "pairs of point and voxel", REAL, STEP(pairs), NONE},
    {"eval_us", "us", "time in the backend's evaluations", TIME, STEP(eval_us), NONE},
    {"solve_us", "us", "time in the solver", TIME, STEP(solve_us), NONE},
    {"kernel_us", "us", "time on the device", TIME, STEP(kernel_us), NONE},
    {"h2d_bytes", "bytes", "moved to the device", NDTD_CELL_U64, STEP(h2d_bytes), NONE},
    {"d2h_bytes", "bytes", "moved from the device", NDTD_CELL_U64, STEP(d2h_bytes), NONE},
    {"launches", "", "kernels launched", NDTD_CELL_U64, STEP(launches), NONE},
    {"synchronisations", "", "waits for the device", NDTD_CELL_U64, STEP(synchronisations), NONE},
    {"allocations", "", "allocations of the backend", NDTD_CELL_U64, STEP(allocations), NONE},
    {"tx", "m", "pose after the step; scan: the result", REAL, STEP(T_map_sensor.t_m[0]),
     SCAN(result.T_map_sensor.t_m[0])},
    {"ty", "m", "", REAL, STEP(T_map_sensor.t_m[1]), SCAN(result.T_map_sensor.t_m[1])},
    {"tz", "m", "", REAL, STEP(T_map_sensor.t_m[2]), SCAN(result.T_map_sensor.t_m[2])},
    {"qx", "", "", REAL, STEP(T_map_sensor.q_xyzw[0]), SCAN(result.T_map_sensor.q_xyzw[0])},
    {"qy", "", "", REAL, STEP(T_map_sensor.q_xyzw[1]), SCAN(result.T_map_sensor.q_xyzw[1])},
    {"qz", "", "", REAL, STEP(T_map_sensor.q_xyzw[2]), SCAN(result.T_map_sensor.q_xyzw[2])},
    {"qw", "", "", REAL, STEP(T_map_sensor.q_xyzw[3]), SCAN(result.T_map_sensor.q_xyzw[3])},
    {"outcome", "", "outcome of the scan", NDTD_CELL_OUTCOME, NONE, SCAN(result.outcome)},
    {"points_raw", "points", "points of the scan", NDTD_CELL_U64, NONE, SCAN(points_raw)},
    {"points_thinned", "points", "of points_raw: not read, see preprocess.max_points", NDTD_CELL_U64, NONE,
     SCAN(points_thinned)},
    {"points_used", "points", "points that were matched", NDTD_CELL_U64, NONE, SCAN(points_used)},
    {"transform_probability", "", "score per point", REAL, NONE, SCAN(result.scores.transform_probability)},
    {"nvtl", "", "mean score of the nearest voxels", REAL, NONE, SCAN(result.scores.nvtl)},
    {"nvtl_normalized", "", "the same over its largest value", REAL, NONE, SCAN(result.scores.nvtl_normalized)},
    {"match_ratio", "", "matched points over all", REAL, NONE, SCAN(result.scores.match_ratio)},
    {"coverage", "", "part of the directions that meet the map", REAL, NONE, SCAN(result.scores.coverage)},
    {"state", "", "state of the localisation after the scan", NDTD_CELL_STATE, NONE, SCAN(state)},
    {"hypotheses", "", "guesses that were aligned", NDTD_CELL_I32, NONE, SCAN(hypotheses)},
    {"margin", "", "probability of the pose against all others that were tried", REAL, NONE, SCAN(margin)},
    {"confidence", "", "probability that the pose is right", REAL, NONE, SCAN(confidence)},
    {"innovation", "", "squared distance from the prediction in sigmas", REAL, NONE, SCAN(innovation)},
    {"reference_s", "s", "reference moment of the sweep, after the stamp", REAL, NONE, SCAN(reference_s)},
    {"reference_tx", "m", "pose of the base at the reference moment", REAL, NONE, SCAN(T_map_reference.t_m[0])},
    {"reference_ty", "m", "", REAL, NONE, SCAN(T_map_reference.t_m[1])},
    {"reference_tz", "m", "", REAL, NONE, SCAN(T_map_reference.t_m[2])},
    {"reference_qx", "", "", REAL, NONE, SCAN(T_map_reference.q_xyzw[0])},
    {"reference_qy", "", "", REAL, NONE, SCAN(T_map_reference.q_xyzw[1])},
    {"reference_qz", "", "", REAL, NONE, SCAN(T_map_reference.q_xyzw[2])},
    {"reference_qw", "", "", REAL, NONE, SCAN(T_map_reference.q_xyzw[3])},
    {"vx", "m/s", "twist of the base there", REAL, NONE, SCAN(twist.v_mps[0])},
    {"vy", "m/s", "", REAL, NONE, SCAN(twist.v_mps[1])},
    {"vz", "m/s", "", REAL, NONE, SCAN(twist.v_mps[2])},
    {"wx", "rad/s", "", REAL, NONE, SCAN(twist.w_radps[0])},
    {"wy", "rad/s", "", REAL, NONE, SCAN(twist.w_radps[1])},
    {"wz", "rad/s", "", REAL, NONE, SCAN(twist.w_radps[2])},
    {"oscillation", "", "longest run of reversing steps", NDTD_CELL_I32, NONE, SCAN(result.oscillation)},
    {"decode_us", "us", "frame to points", TIME, NONE, SCAN(decode_us)},
    {"queue_us", "us", "waiting", TIME, NONE, SCAN(queue_us)},
    {"preprocess_us", "us", "crop, filter, sample, motion", TIME, NONE, SCAN(preprocess_us)},
    {"upload_us", "us", "points to the backend", TIME, NONE, SCAN(upload_us)},
    {"align_us", "us", "matching", TIME, NONE, SCAN(align_us)},
    {"publish_us", "us", "handing the result on", TIME, NONE, SCAN(publish_us)},
    {"protection_lateral", "m", "protection level; nan: none", REAL, NONE, SCAN(protection.level[0])},
    {"protection_longitudinal", "m", "", REAL, NONE, SCAN(protection.level[1])},
    {"protection_vertical", "m", "", REAL, NONE, SCAN(protection.level[2])},
    {"protection_heading", "rad", "", REAL, NONE, SCAN(protection.level[3])},
    {"unsafe", "", "the horizontal level is above integrity.alert_limit_m", NDTD_CELL_I32, NONE,
     SCAN(protection.is_unsafe)},
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]) };

size_t ndtd_timing_column_count(void)
{
    return COLUMN_COUNT;
}

const struct ndtd_timing_column *ndtd_timing_column_at(size_t i)
{
    return i < COLUMN_COUNT ? &columns[i] : NULL;
}

static const char *row_name(const struct ndt_iteration *step)
{
    return step ? "iteration" : "scan";
}

/* Address of a cell's value; NULL if the row has none. */
static const char *find_cell(const struct ndtd_timing_column *column, const struct ndtd_scan_record *scan,
                             const struct ndt_iteration *step)
{
    const struct ndtd_cell *cell = step ? &column->in_iteration : &column->in_scan;
    if (cell->source == NDTD_CELL_NONE)
        return NULL;
    const char *base = cell->source == NDTD_CELL_SCAN ? (const char *)scan : (const char *)step;
    return base + cell->offset;
}

static void format_real(const char *at, int decimals, char *text, size_t size)
{
    double value;
    memcpy(&value, at, sizeof(value));
    if (!isfinite(value))
        snprintf(text, size, "nan");
    else if (decimals >= 0)
        snprintf(text, size, "%.*f", decimals, value);
    else
        snprintf(text, size, "%.17g", value);
}

/* Returns the least eigenvalue of a symmetric 6x6 matrix, given by its upper triangle. */
static double least_eigenvalue(const char *at)
{
    double upper[21], lambda[6], V[36], least = INFINITY;
    memcpy(upper, at, sizeof(upper));
    ndt_eigen_symmetric(6, upper, lambda, V);
    for (int i = 0; i < 6; i++)
        least = fmin(least, fabs(lambda[i]));
    return least;
}

static void format_cell(const struct ndtd_timing_column *column, const char *at, char *text, size_t size)
{
    int32_t narrow;
    int64_t wide;
    uint64_t large;
    enum ndt_outcome outcome;
    enum ndt_state state;
    double least;
    switch (column->type) {
    case NDTD_CELL_I32:
        memcpy(&narrow, at, sizeof(narrow));
        snprintf(text, size, "%" PRId32, narrow);
        return;
    case NDTD_CELL_U64:
        memcpy(&large, at, sizeof(large));
        snprintf(text, size, "%" PRIu64, large);
        return;
    case NDTD_CELL_I64:
        memcpy(&wide, at, sizeof(wide));
        snprintf(text, size, "%" PRId64, wide);
        return;
    case NDTD_CELL_OUTCOME:
        memcpy(&outcome, at, sizeof(outcome));
        snprintf(text, size, "%s", ndt_outcome_name(outcome));
        return;
    case NDTD_CELL_STATE:
        memcpy(&state, at, sizeof(state));
        snprintf(text, size, "%s", ndt_state_name(state));
        return;
    case NDTD_CELL_EIGENVALUE:
        least = least_eigenvalue(at);
        format_real((const char *)&least, -1, text, size);
        return;
    default:
        format_real(at, column->type == NDTD_CELL_US ? 3 : -1, text, size);
    }
}

void ndtd_timing_csv_header(FILE *file)
{
    fputs("row", file);
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        fprintf(file, ",%s", columns[i].name);
    fputc('\n', file);
}

void ndtd_timing_csv_row(FILE *file, const struct ndtd_scan_record *scan, const struct ndt_iteration *step)
{
    char text[64];
    fputs(row_name(step), file);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const char *at = find_cell(&columns[i], scan, step);
        text[0] = '\0';
        if (at)
            format_cell(&columns[i], at, text, sizeof(text));
        fprintf(file, ",%s", text);
    }
    fputc('\n', file);
}

void ndtd_timing_json_row(FILE *file, const struct ndtd_scan_record *scan, const struct ndt_iteration *step)
{
    char text[64];
    fprintf(file, "{\"row\":\"%s\"", row_name(step));
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const char *at = find_cell(&columns[i], scan, step);
        if (!at)
            continue;
        format_cell(&columns[i], at, text, sizeof(text));
        const int is_name = columns[i].type == NDTD_CELL_OUTCOME || columns[i].type == NDTD_CELL_STATE;
        const char *quote = is_name ? "\"" : "";
        fprintf(file, ",\"%s\":%s%s%s", columns[i].name, quote, strcmp(text, "nan") == 0 ? "null" : text, quote);
    }
    fputs("}\n", file);
}

void ndtd_timing_print_help(FILE *file)
{
    fprintf(file, "\nColumns of --timing: row (iteration or scan), then\n");
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const struct ndtd_timing_column *column = &columns[i];
        const char *rows = column->in_iteration.source == NDTD_CELL_NONE ? "scan"
                           : column->in_scan.source == NDTD_CELL_NONE    ? "iteration"
                                                                         : "both";
        fprintf(file, "    %-22s %-10s %-7s %s\n", column->name, rows, column->unit, column->help);
    }
}
