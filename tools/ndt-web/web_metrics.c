#include "web_metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ndt/clock.h"
#include "ndt/linalg.h"
#include "ndt/version.h"
#include "ndt_proto/control_message.h"
#include "reply_view.h"
#include "result_print.h"
#include "web_metrics_text.h"

/* Limit beyond which a number of a result is no measurement; sums of smaller numbers stay finite and exact enough.
 */
#define LARGEST 1e12

struct web_metrics {
    pthread_mutex_t mutex;
    struct web_values values;
    int has_last, has_uptime;
    struct ndt_result_message last;
    double last_us;  /* its arrival */
    double uptime_s; /* uptime of the daemon at its last answer */
};

enum ndt_status web_metrics_open(struct web_metrics **out, struct ndt_error *err)
{
    double process[WEB_PROCESS_VALUES];
    struct web_metrics *metrics = calloc(1, sizeof(*metrics));
    *out = NULL;
    if (!metrics)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the metrics");
    if (pthread_mutex_init(&metrics->mutex, NULL) != 0) {
        free(metrics);
        return ndt_fail(err, NDT_ERR_MEMORY, "no mutex for the metrics");
    }
    web_process_read(process); /* sets the start */
    for (size_t row = 0; row < web_metric_count; row++) {
        const int starts_at_zero = web_metric_table[row].type == WEB_COUNTER && row < WEB_FIRST_OF_SOURCES;
        for (size_t i = 0; i < WEB_MAX_LABELS; i++)
            metrics->values.numbers[row][i] = starts_at_zero ? 0 : NAN;
    }
    metrics->values.numbers[WEB_OWN_INFO][0] = 1;
    snprintf(metrics->values.texts[web_metric_info_slot(WEB_OWN_INFO)][0], WEB_TEXT_BYTES, "%s", ndt_version());
    *out = metrics;
    return NDT_OK;
}

void web_metrics_close(struct web_metrics *metrics)
{
    if (metrics)
        pthread_mutex_destroy(&metrics->mutex);
    free(metrics);
}

/* ---- results ---- */

enum { OTHER_CLOCK_S = 3600 };

static void put(struct web_metrics *metrics, size_t row, size_t label, double value)
{
    metrics->values.numbers[row][label] = isfinite(value) ? value : NAN;
}

static void observe(struct web_metrics *metrics, size_t row, size_t label, double value)
{
    const struct web_metric *metric = &web_metric_table[row];
    struct web_histogram *histogram = &metrics->values.histograms[row - WEB_LATENCY][label];
    size_t bucket = 0;
    if (!(value >= 0 && value <= LARGEST))
        return;
    while (bucket < metric->bound_count && value > metric->bounds[bucket])
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum += value;
}

/* A publisher that gets a new subscriber repeats its last result, which has the same times then. */
static int is_repeated(const struct ndt_result_message *a, const struct ndt_result_message *b)
{
    const double times_us[][2] = {{a->decode_us, b->decode_us},
                                  {a->queue_us, b->queue_us},
                                  {a->preprocess_us, b->preprocess_us},
                                  {a->result.align_us, b->result.align_us},
                                  {a->publish_us, b->publish_us}};
    for (size_t i = 0; i < sizeof(times_us) / sizeof(times_us[0]); i++)
        if (memcmp(&times_us[i][0], &times_us[i][1], sizeof(double)) != 0) /* NaN equals NaN */
            return 0;
    return a->seq == b->seq && a->stamp_ns == b->stamp_ns && a->result.outcome == b->result.outcome;
}

/* The whole way from the sensor, where its stamps are of the same clock. */
static double delay_s(int64_t stamp_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double delay = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - (double)stamp_ns * 1e-9;
    return fabs(delay) < OTHER_CLOCK_S ? delay : NAN;
}

static void count_result(struct web_metrics *metrics, const struct ndt_result_message *result)
{
    const struct ndt_align_result *aligned = &result->result;
    const double stages_us[WEB_STAGE_COUNT] = {
        [WEB_STAGE_DECODE] = result->decode_us,         [WEB_STAGE_QUEUE] = result->queue_us,
        [WEB_STAGE_PREPROCESS] = result->preprocess_us, [WEB_STAGE_UPLOAD] = result->upload_us,
        [WEB_STAGE_ALIGN] = aligned->align_us,          [WEB_STAGE_PUBLISH] = result->publish_us};
    const double latency_us = result_latency_us(result);
    const int is_trusted = ndt_state_is_trusted(result->state);
    double *untrusted = &metrics->values.numbers[WEB_UNTRUSTED][0];
    metrics->values.numbers[WEB_RESULTS][0]++;
    put(metrics, WEB_LAST_DELAY, 0, delay_s(result->stamp_ns));
    if (latency_us > 0 && (unsigned)aligned->outcome < NDT_OUTCOME_COUNT)
        observe(metrics, WEB_LATENCY, aligned->outcome, latency_us * 1e-6);
    for (size_t i = 0; i < WEB_STAGE_COUNT; i++)
        if (stages_us[i] > 0) /* 0: the scan did not come there */
            observe(metrics, WEB_STAGES, i, stages_us[i] * 1e-6);
    if (aligned->iterations > 0) {
        observe(metrics, WEB_ITERATIONS, 0, aligned->iterations);
        observe(metrics, WEB_NVTL, 0, aligned->scores.nvtl_normalized);
        observe(metrics, WEB_MATCH_RATIO, 0, aligned->scores.match_ratio);
    }
    if (result->has_confidence)
        observe(metrics, WEB_CONFIDENCE, 0, result->confidence);
    if (result->has_innovation)
        observe(metrics, WEB_INNOVATION, 0, result->innovation);
    if (result->has_guess && result_has_pose(result))
        observe(metrics, WEB_CORRECTION, 0, ndt_pose_distance_m(&result->T_map_guess, &aligned->T_map_sensor));
    if (result->has_state)
        *untrusted = is_trusted ? 0 : isnan(*untrusted) ? 1 : *untrusted + 1;
}

static void show_deviations(struct web_metrics *metrics, const struct ndt_align_result *aligned)
{
    const double *C = aligned->covariance, upper[6] = {C[0], C[1], C[2], C[7], C[8], C[14]};
    double values[3] = {NAN, NAN, NAN}, V[9];
    int is_known = aligned->has_covariance;
    for (size_t i = 0; i < 6; i++)
        is_known = is_known && isfinite(upper[i]);
    if (is_known)
        ndt_eigen_symmetric(3, upper, values, V);
    put(metrics, WEB_WORST_DEVIATION, 0, sqrt(values[2]));
    for (size_t i = 0; i < 3; i++) {
        put(metrics, WEB_POSITION_DEVIATION, i, aligned->has_covariance ? sqrt(C[7 * i]) : NAN);
        put(metrics, WEB_ROTATION_DEVIATION, i, aligned->has_covariance ? sqrt(C[7 * (i + 3)]) : NAN);
    }
}

static void show_result(struct web_metrics *metrics, const struct ndt_result_message *result)
{
    const struct ndt_align_result *aligned = &result->result;
    const int is_aligned = aligned->iterations > 0;
    const double *v_mps = result->twist.v_mps;
    put(metrics, WEB_LAST_CONFIDENCE, 0, result->has_confidence ? result->confidence : NAN);
    put(metrics, WEB_LAST_PROBABILITY, 0, is_aligned ? aligned->scores.transform_probability : NAN);
    put(metrics, WEB_LAST_NVTL, 0, is_aligned ? aligned->scores.nvtl : NAN);
    put(metrics, WEB_LAST_MATCH_RATIO, 0, is_aligned ? aligned->scores.match_ratio : NAN);
    put(metrics, WEB_LAST_COVERAGE, 0,
        is_aligned && aligned->scores.coverage >= 0 ? aligned->scores.coverage : NAN);
    put(metrics, WEB_LAST_MARGIN, 0, result->has_margin ? result->margin : NAN);
    put(metrics, WEB_LAST_INNOVATION, 0, result->has_innovation ? result->innovation : NAN);
    put(metrics, WEB_LAST_ITERATIONS, 0, is_aligned ? (double)aligned->iterations : NAN);
    put(metrics, WEB_LAST_OSCILLATION, 0, is_aligned ? (double)aligned->oscillation : NAN);
    put(metrics, WEB_LAST_HYPOTHESES, 0, result->has_hypotheses ? (double)result->hypotheses : NAN);
    put(metrics, WEB_LAST_LATENCY, 0, result_latency_us(result) * 1e-6);
    put(metrics, WEB_WEAK_AXES, 0, is_aligned ? (double)aligned->weak_count : NAN);
    put(metrics, WEB_SPEED, 0,
        result->has_twist ? sqrt(v_mps[0] * v_mps[0] + v_mps[1] * v_mps[1] + v_mps[2] * v_mps[2]) : NAN);
    for (size_t i = 0; i < 3; i++)
        put(metrics, WEB_PROTECTION, i,
            result->has_protection && isfinite(result->protection.level[i]) ? result->protection.level[i] : NAN);
    put(metrics, WEB_UNSAFE, 0, result->has_protection ? (double)result->protection.is_unsafe : NAN);
    show_deviations(metrics, aligned);
}

void web_metrics_add(struct web_metrics *metrics, const struct ndt_result_message *result)
{
    pthread_mutex_lock(&metrics->mutex);
    show_result(metrics, result);
    if (!metrics->has_last || !is_repeated(&metrics->last, result)) {
        count_result(metrics, result);
        metrics->last_us = ndt_clock_us();
    }
    metrics->last = *result;
    metrics->has_last = 1;
    pthread_mutex_unlock(&metrics->mutex);
}

/* ---- status ---- */

/* The end of a long text tells more than its begin: it is the path of a file. */
static void read_text(const struct reply_view *view, const char *path, char out[WEB_TEXT_BYTES])
{
    char text[NDT_PROTO_MAX_PATH + 1];
    reply_view_text(view, path, text, sizeof(text));
    if (!*text)
        reply_view_digits(view, path, text, sizeof(text));
    const size_t length = strlen(text), most = WEB_TEXT_BYTES - 1;
    if (length <= most)
        memcpy(out, text, length + 1);
    else
        snprintf(out, WEB_TEXT_BYTES, "...%s", text + length - (most - 3));
}

static double read_number(const struct reply_view *view, const struct web_metric *metric, size_t label)
{
    char path[96];
    double value;
    if (metric->paths)
        snprintf(path, sizeof(path), "%s", metric->paths[label]);
    else
        snprintf(path, sizeof(path), metric->path, metric->label ? metric->label->at(label) : "");
    if (!reply_view_find_number(view, path, &value) || !isfinite(value))
        return NAN;
    if (metric->type == WEB_COUNTER && value < 0)
        return NAN;
    return metric->scale > 0 ? value * metric->scale : value;
}

static void read_row(struct web_values *values, size_t row, const struct reply_view *view)
{
    const struct web_metric *metric = &web_metric_table[row];
    const size_t count = metric->label ? metric->label->count : 1;
    double *numbers = values->numbers[row];
    char text[WEB_TEXT_BYTES];
    if (metric->type == WEB_INFO) {
        const size_t slot = web_metric_info_slot(row);
        int is_known = 0;
        for (size_t i = 0; i < WEB_MAX_TEXTS && metric->texts[i].name; i++) {
            read_text(view, metric->texts[i].path, values->texts[slot][i]);
            is_known = is_known || values->texts[slot][i][0];
        }
        numbers[0] = is_known ? 1 : NAN;
    } else if (metric->source == WEB_FROM_NUMBER) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = read_number(view, metric, i);
    } else if (reply_view_has(view, metric->path)) {
        reply_view_text(view, metric->path, text, sizeof(text));
        for (size_t i = 0; i < count; i++)
            numbers[i] =
                metric->source == WEB_FROM_TEXT ? text[0] != '\0' : strcmp(text, metric->label->at(i)) == 0;
    }
}

static void forget(struct web_values *values, size_t first, size_t end)
{
    for (size_t row = first; row < end; row++)
        for (size_t i = 0; i < WEB_MAX_LABELS; i++)
            values->numbers[row][i] = NAN;
}

static void note_answer(struct web_metrics *metrics, const struct reply_view *view)
{
    double *up = &metrics->values.numbers[WEB_UP][0], uptime_s = 0;
    const int has_uptime = reply_view_find_number(view, "uptime_s", &uptime_s);
    if (*up != 1)
        metrics->values.numbers[WEB_CONNECTS][0]++;
    if (metrics->has_uptime && has_uptime && uptime_s < metrics->uptime_s)
        metrics->values.numbers[WEB_RESTARTS][0]++;
    metrics->has_uptime = has_uptime;
    metrics->uptime_s = uptime_s;
    *up = 1;
}

void web_metrics_set_status(struct web_metrics *metrics, const struct reply_view *status)
{
    pthread_mutex_lock(&metrics->mutex);
    forget(&metrics->values, WEB_FIRST_OF_SOURCES, web_metric_count);
    if (status) {
        note_answer(metrics, status);
        for (size_t row = WEB_FIRST_OF_SOURCES; row < web_metric_count; row++)
            if (web_metric_table[row].source != WEB_FROM_SERVER)
                read_row(&metrics->values, row, status);
    } else {
        metrics->values.numbers[WEB_UP][0] = 0;
        forget(&metrics->values, WEB_LAST_CONFIDENCE, WEB_OWN_INFO);
    }
    pthread_mutex_unlock(&metrics->mutex);
}

/* ---- ndt-web itself ---- */

void web_metrics_count_response(struct web_metrics *metrics, unsigned code, uint64_t bytes)
{
    const struct web_label *codes = web_metric_table[WEB_RESPONSES].label;
    size_t label = 0;
    while (label + 1 < codes->count && (unsigned)atoi(codes->at(label)) != code)
        label++; /* the last is "other" */
    pthread_mutex_lock(&metrics->mutex);
    metrics->values.numbers[WEB_RESPONSES][label]++;
    metrics->values.numbers[WEB_RESPONSE_BYTES][0] += (double)bytes;
    pthread_mutex_unlock(&metrics->mutex);
}

/* ---- text ---- */

static void add_server(struct web_values *values, const struct web_metrics_server *server)
{
    for (size_t row = WEB_FIRST_OF_SOURCES; row < web_metric_count; row++) {
        uint64_t value;
        if (web_metric_table[row].source != WEB_FROM_SERVER)
            continue;
        memcpy(&value, (const char *)server + web_metric_table[row].offset, sizeof(value));
        values->numbers[row][0] = (double)value;
    }
}

void web_metrics_write(struct web_metrics *metrics, const struct web_metrics_server *server,
                       enum web_metrics_format format, FILE *file)
{
    double process[WEB_PROCESS_VALUES];
    struct web_values *values = malloc(sizeof(*values));
    if (!values)
        return;
    web_process_read(process);
    pthread_mutex_lock(&metrics->mutex);
    *values = metrics->values;
    values->numbers[WEB_LAST_AGE][0] = metrics->has_last ? (ndt_clock_us() - metrics->last_us) * 1e-6 : NAN;
    pthread_mutex_unlock(&metrics->mutex);
    for (size_t i = 0; i < WEB_PROCESS_VALUES; i++)
        values->numbers[WEB_FIRST_PROCESS + i][0] = process[i];
    add_server(values, server);
    web_values_print(values, format, file);
    free(values);
}
