/* The metrics of ndt-web: what results and status become, in both formats, also from hostile values. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ndt_proto/control_message.h"
#include "run_tests.h"
#include "web_metrics.h"

static struct web_metrics *metrics;
static struct ndt_error error;
static const struct web_metrics_server server = {.connections = 3, .events_lost = 7};

static void setup(void)
{
    ck_assert(web_metrics_open(&metrics, &error) == NDT_OK);
}

static void teardown(void)
{
    web_metrics_close(metrics);
}

/* Not inlined: GCC would take the allocation of the stream for the local variable. */
__attribute__((noinline)) static char *text_of(enum web_metrics_format format)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    web_metrics_write(metrics, &server, format, file);
    ck_assert(fclose(file) == 0 && text);
    return text;
}

/* The value of a sample by its name and labels as they are written; NAN: there is no such sample. */
static double sample(const char *series)
{
    char *text = text_of(WEB_METRICS_PROMETHEUS);
    const size_t length = strlen(series);
    double value = NAN;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, series, length) == 0 && line[length] == ' ')
            value = strtod(line + length, NULL);
    free(text);
    return value;
}

static int has_line(enum web_metrics_format format, const char *wanted)
{
    char *text = text_of(format);
    const size_t length = strlen(wanted);
    int found = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        found |= strncmp(line, wanted, length) == 0 && line[length] == '\n';
    free(text);
    return found;
}

#define ASSERT_SAMPLE(series, expected) ck_assert_double_eq_tol(sample(series), expected, 1e-9)
#define ASSERT_ABSENT(series)           ck_assert_msg(isnan(sample(series)), "%s is there", series)

static struct ndt_result_message result_of(uint64_t seq)
{
    struct ndt_result_message result = {
        .seq = seq, .stamp_ns = (int64_t)(seq % 1000000000) * 100000000, .frame_id = "map"};
    result.result.outcome = NDT_CONVERGED;
    result.result.T_map_sensor.q_xyzw[3] = result.T_map_guess.q_xyzw[3] = 1;
    result.result.T_map_sensor.t_m[0] = 0.3;
    result.result.T_map_sensor.t_m[1] = 0.4;
    result.has_guess = result.has_confidence = result.has_innovation = result.has_state = 1;
    result.result.has_covariance = result.has_twist = result.has_margin = result.has_hypotheses = 1;
    for (int i = 0; i < 6; i++)
        result.result.covariance[7 * i] = i < 3 ? 0.01 * (i + 1) : 1e-4;
    result.has_protection = 1;
    result.protection = (struct ndt_protection){.level = {0.25, 0.5, INFINITY, 0.01}, .is_unsafe = 1};
    result.result.iterations = 5;
    result.result.evaluations = 7;
    result.result.oscillation = 2;
    result.result.weak_count = 1;
    result.result.scores = (struct ndt_scores){2.5, 3.25, 0.6, 0.9, 0.75};
    result.confidence = 0.97;
    result.innovation = 1.25;
    result.margin = 0.5;
    result.hypotheses = 3;
    result.twist.v_mps[0] = 3;
    result.twist.v_mps[1] = 4;
    result.state = NDT_STATE_TRACKING;
    result.decode_us = 500;
    result.queue_us = 100;
    result.preprocess_us = 2000;
    result.upload_us = 0;
    result.result.align_us = 9000;
    result.publish_us = 400;
    return result;
}

/* ---- replies ---- */

struct reply {
    struct ndt_buffer frame;
    struct ndt_reply_writer writer;
};

static void begin_reply(struct reply *reply)
{
    memset(reply, 0, sizeof(*reply));
    ndt_buffer_init(&reply->frame);
    ndt_reply_begin(&reply->writer, &reply->frame, 1, NULL);
}

static void set_status(struct reply *reply)
{
    struct reply_view *view = NULL;
    ck_assert(ndt_reply_finish(&reply->writer, &error) == NDT_OK);
    ck_assert(reply_view_read(&view, reply->frame.data, reply->frame.size, &error) == NDT_OK);
    web_metrics_set_status(metrics, view);
    reply_view_free(view);
    ndt_buffer_free(&reply->frame);
}

static void set_usual_status(double uptime_s, uint64_t converged)
{
    struct reply reply;
    struct ndt_reply_writer *writer = &reply.writer;
    begin_reply(&reply);
    ndt_reply_text(writer, "version", "1.2.3");
    ndt_reply_real(writer, "uptime_s", uptime_s);
    ndt_reply_text(writer, "state", "localising");
    ndt_reply_text(writer, "backend", "cpu");
    ndt_reply_open_map(writer, "latency_ms");
    ndt_reply_real(writer, "budget", 100);
    ndt_reply_close(writer);
    ndt_reply_text(writer, "needs_restart", "");
    ndt_reply_open_map(writer, "localisation");
    ndt_reply_text(writer, "state", "coasting");
    ndt_reply_close(writer);
    ndt_reply_open_map(writer, "outcomes");
    ndt_reply_uint(writer, "converged", converged);
    ndt_reply_uint(writer, "dropped", 2);
    ndt_reply_close(writer);
    ndt_reply_open_map(writer, "queue");
    ndt_reply_uint(writer, "waiting", 1);
    ndt_reply_uint(writer, "dropped", 2);
    ndt_reply_close(writer);
    ndt_reply_open_map(writer, "map");
    ndt_reply_text(writer, "path", "/maps/town.pcd");
    ndt_reply_uint(writer, "map_id", UINT64_MAX);
    ndt_reply_bool(writer, "busy", 1);
    ndt_reply_real(writer, "last_load_ms", 1500);
    ndt_reply_close(writer);
    ndt_reply_open_map(writer, "recorder");
    ndt_reply_text(writer, "state", "idle");
    ndt_reply_text(writer, "error", "the disk is full");
    ndt_reply_close(writer);
    set_status(&reply);
}

/* ---- tests ---- */

FIXTURE(setup, teardown)

TEST(without_a_daemon)
{
    ASSERT_ABSENT("ndtd_up"); /* a replay is shown */
    web_metrics_set_status(metrics, NULL);
    ASSERT_SAMPLE("ndtd_up", 0);
    ASSERT_SAMPLE("ndt_web_results_total", 0);
    ASSERT_SAMPLE("ndt_web_connections", 3);
    ASSERT_SAMPLE("ndt_web_events_lost_total", 7);
    ASSERT_SAMPLE("ndtd_scan_iterations_count", 0);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_bucket{outcome=\"deadline\",le=\"+Inf\"}", 0);
    ASSERT_ABSENT("ndtd_uptime_seconds");
    ASSERT_ABSENT("ndtd_result_age_seconds");
    ASSERT_ABSENT("ndtd_scans_total{outcome=\"converged\"}");
    ck_assert(sample("process_resident_memory_bytes") > 1e5);
    ck_assert(sample("process_open_fds") >= 3);
    ck_assert(sample("process_start_time_seconds") > 1.6e9);
}

TEST(results)
{
    for (uint64_t seq = 0; seq < 10; seq++) {
        struct ndt_result_message result = result_of(seq);
        if (seq == 9) {
            result.result.outcome = NDT_LOW_SCORE;
            result.result.align_us = 190000;
            result.state = NDT_STATE_LOST;
        }
        web_metrics_add(metrics, &result);
    }
    ASSERT_SAMPLE("ndt_web_results_total", 10);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_count{outcome=\"converged\"}", 9);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_sum{outcome=\"converged\"}", 9 * 0.012);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_bucket{outcome=\"converged\",le=\"0.01\"}", 0);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_bucket{outcome=\"converged\",le=\"0.015\"}", 9);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_bucket{outcome=\"converged\",le=\"+Inf\"}", 9);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_bucket{outcome=\"low_score\",le=\"0.2\"}", 1);
    ASSERT_SAMPLE("ndtd_scan_latency_seconds_bucket{outcome=\"low_score\",le=\"0.15\"}", 0);
    ASSERT_SAMPLE("ndtd_scan_stage_seconds_count{stage=\"align\"}", 10);
    ASSERT_SAMPLE("ndtd_scan_stage_seconds_count{stage=\"upload\"}", 0); /* 0 us: there was none */
    ASSERT_SAMPLE("ndtd_scan_iterations_bucket{le=\"5.0\"}", 10);        /* a bound belongs to its bucket */
    ASSERT_SAMPLE("ndtd_scan_iterations_bucket{le=\"4.0\"}", 0);
    ASSERT_SAMPLE("ndtd_scan_correction_meters_sum", 10 * 0.5);
    ASSERT_SAMPLE("ndtd_scan_confidence_ratio_bucket{le=\"0.98\"}", 10);
    ASSERT_SAMPLE("ndtd_position_deviation_meters{axis=\"y\"}", sqrt(0.02));
    ASSERT_SAMPLE("ndtd_protection_level_meters{axis=\"longitudinal\"}", 0.5);
    ASSERT_ABSENT("ndtd_protection_level_meters{axis=\"vertical\"}");
    ASSERT_SAMPLE("ndtd_unsafe", 1);
    ASSERT_SAMPLE("ndtd_position_worst_deviation_meters", sqrt(0.03));
    ASSERT_SAMPLE("ndtd_rotation_deviation_radians{axis=\"z\"}", 0.01);
    ASSERT_SAMPLE("ndtd_speed_meters_per_second", 5);
    ASSERT_SAMPLE("ndtd_untrusted_scans", 1);
    ASSERT_SAMPLE("ndtd_weak_axes", 1);
    ck_assert(sample("ndtd_result_age_seconds") >= 0 && sample("ndtd_result_age_seconds") < 60);
}

TEST(worst_deviation_is_that_of_the_ellipse)
{
    struct ndt_result_message result = result_of(1);
    double *covariance = result.result.covariance;
    covariance[0] = covariance[7] = 0.5;
    covariance[1] = covariance[6] = 0.4;
    web_metrics_add(metrics, &result);
    ASSERT_SAMPLE("ndtd_position_worst_deviation_meters", sqrt(0.9));
}

TEST(repeated_result_counts_once)
{
    struct ndt_result_message result = result_of(4);
    result.queue_us = NAN;
    web_metrics_add(metrics, &result);
    web_metrics_add(metrics, &result); /* after a new connection */
    ASSERT_SAMPLE("ndt_web_results_total", 1);
    result.decode_us += 1; /* the same scan, sent twice */
    web_metrics_add(metrics, &result);
    ASSERT_SAMPLE("ndt_web_results_total", 2);
}

TEST(delay_of_the_pose)
{
    struct ndt_result_message result = result_of(1); /* stamps since 1970: another clock */
    web_metrics_add(metrics, &result);
    ASSERT_ABSENT("ndtd_pose_delay_seconds");
    result.stamp_ns = (int64_t)time(NULL) * 1000000000 - 5000000000;
    web_metrics_add(metrics, &result);
    ck_assert(sample("ndtd_pose_delay_seconds") > 4 && sample("ndtd_pose_delay_seconds") < 60);
}

TEST(untrusted_scans_in_a_row)
{
    const enum ndt_state states[] = {NDT_STATE_TRACKING, NDT_STATE_LOST, NDT_STATE_RECOVERING, NDT_STATE_COASTING,
                                     NDT_STATE_INITIALISING};
    const double expected[] = {0, 1, 2, 0, 1};
    for (size_t i = 0; i < 5; i++) {
        struct ndt_result_message result = result_of(i);
        result.state = states[i];
        web_metrics_add(metrics, &result);
        ASSERT_SAMPLE("ndtd_untrusted_scans", expected[i]);
        result = result_of(100 + i); /* a merged or rejected scan tells no state */
        result.has_state = 0;
        web_metrics_add(metrics, &result);
        ASSERT_SAMPLE("ndtd_untrusted_scans", expected[i]);
    }
}

TEST(status)
{
    set_usual_status(12.5, 40);
    ASSERT_SAMPLE("ndtd_up", 1);
    ASSERT_SAMPLE("ndtd_uptime_seconds", 12.5);
    ASSERT_SAMPLE("ndtd_budget_seconds", 0.1);
    ASSERT_SAMPLE("ndtd_scans_total{outcome=\"converged\"}", 40);
    ASSERT_SAMPLE("ndtd_scans_total{outcome=\"dropped\"}", 2);
    ASSERT_ABSENT("ndtd_scans_total{outcome=\"lost\"}"); /* the reply does not tell */
    ASSERT_SAMPLE("ndtd_drops_total{queue=\"scans\"}", 2);
    ASSERT_SAMPLE("ndtd_state{state=\"localising\"}", 1);
    ASSERT_SAMPLE("ndtd_state{state=\"loading\"}", 0);
    ASSERT_SAMPLE("ndtd_localisation_state{state=\"coasting\"}", 1);
    ASSERT_SAMPLE("ndtd_localisation_state{state=\"tracking\"}", 0);
    ASSERT_SAMPLE("ndtd_map_info{path=\"/maps/town.pcd\",map_id=\"18446744073709551615\"}", 1);
    ASSERT_SAMPLE("ndtd_build_info{version=\"1.2.3\",backend=\"cpu\"}", 1);
    ASSERT_SAMPLE("ndtd_map_loading", 1);
    ASSERT_SAMPLE("ndtd_map_last_load_seconds", 1.5);
    ASSERT_SAMPLE("ndtd_recorder_failed", 1);
    ASSERT_SAMPLE("ndtd_config_needs_restart", 0);
    ASSERT_ABSENT("ndtd_processing_info");
    ASSERT_ABSENT("ndtd_resident_memory_bytes");
}

TEST(daemon_away_and_back)
{
    const struct ndt_result_message result = result_of(1);
    set_usual_status(100, 40);
    web_metrics_add(metrics, &result);
    web_metrics_set_status(metrics, NULL);
    ASSERT_SAMPLE("ndtd_up", 0);
    ASSERT_ABSENT("ndtd_scans_total{outcome=\"converged\"}");
    ASSERT_ABSENT("ndtd_state{state=\"localising\"}");
    ASSERT_ABSENT("ndtd_map_info{path=\"/maps/town.pcd\",map_id=\"18446744073709551615\"}");
    ASSERT_ABSENT("ndtd_confidence_ratio");
    ASSERT_SAMPLE("ndtd_scan_iterations_count", 1);
    ASSERT_SAMPLE("ndt_web_daemon_restarts_total", 0);
    set_usual_status(0.5, 3); /* a new one: its counters begin anew, those of ndt-web go on */
    web_metrics_add(metrics, &result);
    ASSERT_SAMPLE("ndtd_up", 1);
    ASSERT_SAMPLE("ndtd_scans_total{outcome=\"converged\"}", 3);
    ASSERT_SAMPLE("ndtd_scan_iterations_count", 1); /* the repeated result */
    ASSERT_SAMPLE("ndtd_confidence_ratio", 0.97);
    ASSERT_SAMPLE("ndt_web_daemon_restarts_total", 1);
    ASSERT_SAMPLE("ndt_web_daemon_connections_total", 2);
    set_usual_status(0.25, 0); /* restarted between two answers */
    ASSERT_SAMPLE("ndt_web_daemon_restarts_total", 2);
    ASSERT_SAMPLE("ndt_web_daemon_connections_total", 2);
}

TEST(hostile_results)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, -1, 1e308, -0.0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct ndt_result_message result = result_of(i);
        result.decode_us = result.queue_us = result.preprocess_us = result.upload_us = result.publish_us = bad[i];
        result.result.align_us = result.confidence = result.innovation = result.margin = bad[i];
        result.result.scores = (struct ndt_scores){bad[i], bad[i], bad[i], bad[i], bad[i]};
        result.result.T_map_sensor.t_m[0] = result.twist.v_mps[0] = bad[i];
        for (size_t k = 0; k < 36; k++)
            result.result.covariance[k] = bad[i];
        result.result.outcome = (enum ndt_outcome)(i % 2 ? 1000 : NDT_OUTCOME_COUNT);
        result.state = (enum ndt_state)77;
        result.result.iterations = i % 2 ? -3 : INT32_MAX;
        web_metrics_add(metrics, &result);
    }
    char *text = text_of(WEB_METRICS_PROMETHEUS);
    static const char *const values[] = {" NaN\n", " +Inf\n", " -"};
    for (size_t i = 0; i < 3; i++) {
        const char *found = strstr(text, values[i]);
        ck_assert_msg(!found, "'%.80s'", found ? found - (found - text < 40 ? found - text : 40) : "");
    }
    free(text);
    ASSERT_SAMPLE("ndt_web_results_total", 6);
    ASSERT_SAMPLE("ndtd_scan_stage_seconds_count{stage=\"align\"}", 0);
    ASSERT_SAMPLE("ndtd_scan_innovation_sigmas_count", 1); /* -0 */
}

TEST(hostile_status)
{
    struct reply reply;
    struct ndt_reply_writer *writer = &reply.writer;
    char path[1024];
    begin_reply(&reply);
    ndt_reply_text(writer, "version", "1\"} 5\nndtd_up 0\\");
    ndt_reply_text(writer, "state", "no such state");
    ndt_reply_real(writer, "uptime_s", NAN);
    ndt_reply_open_map(writer, "latency_ms");
    ndt_reply_real(writer, "budget", INFINITY);
    ndt_reply_close(writer);
    ndt_reply_int(writer, "frames_refused", -5);
    ndt_reply_text(writer, "scans_thinned", "many");
    ndt_reply_real(writer, "log_lines_lost", -INFINITY);
    ndt_reply_text(writer, "localisation", "not a map");
    ndt_reply_open_map(writer, "map");
    memset(path, 'x', sizeof(path) - 1);
    memcpy(path + 1000, "/the/end/of/map.pcd", 20);
    ndt_reply_text(writer, "path", path);
    ndt_reply_open_array(writer, "points");
    ndt_reply_close(writer);
    ndt_reply_close(writer);
    ndt_reply_uint(writer, "queue", 3);
    set_status(&reply);
    ASSERT_SAMPLE("ndtd_up", 1);
    ASSERT_ABSENT("ndtd_uptime_seconds");
    ASSERT_ABSENT("ndtd_budget_seconds");
    ASSERT_ABSENT("ndtd_frames_refused_total");
    ASSERT_ABSENT("ndtd_scans_thinned_total");
    ASSERT_ABSENT("ndtd_log_lines_lost_total");
    ASSERT_ABSENT("ndtd_map_points");
    ASSERT_ABSENT("ndtd_queue_scans");
    ASSERT_ABSENT("ndtd_localisation_state{state=\"tracking\"}");
    ASSERT_SAMPLE("ndtd_state{state=\"localising\"}", 0);
    ck_assert(has_line(WEB_METRICS_PROMETHEUS, "ndtd_build_info{version=\"1\\\"} 5?ndtd_up 0\\\\\"} 1"));
    char *text = text_of(WEB_METRICS_PROMETHEUS);
    ck_assert_ptr_nonnull(strstr(text, "ndtd_map_info{path=\"...xxx"));
    ck_assert_ptr_nonnull(strstr(text, "xx/the/end/of/map.pcd\"} 1\n"));
    free(text);
}

TEST(responses)
{
    web_metrics_count_response(metrics, 200, 1000);
    web_metrics_count_response(metrics, 200, 24);
    web_metrics_count_response(metrics, 404, 0);
    web_metrics_count_response(metrics, 418, 0);
    web_metrics_count_response(metrics, UINT32_MAX, 0);
    ASSERT_SAMPLE("ndt_web_responses_total{code=\"200\"}", 2);
    ASSERT_SAMPLE("ndt_web_responses_total{code=\"404\"}", 1);
    ASSERT_SAMPLE("ndt_web_responses_total{code=\"other\"}", 2);
    ASSERT_SAMPLE("ndt_web_responses_total{code=\"500\"}", 0);
    ASSERT_SAMPLE("ndt_web_response_bytes_total", 1024);
}

TEST(formats)
{
    set_usual_status(1, 2);
    ck_assert(has_line(WEB_METRICS_PROMETHEUS, "# TYPE ndtd_scans_total counter"));
    ck_assert(has_line(WEB_METRICS_PROMETHEUS, "# TYPE ndtd_build_info gauge"));
    ck_assert(!has_line(WEB_METRICS_PROMETHEUS, "# EOF"));
    ck_assert(has_line(WEB_METRICS_OPENMETRICS, "# TYPE ndtd_scans counter"));
    ck_assert(has_line(WEB_METRICS_OPENMETRICS, "# TYPE ndtd_build info"));
    ck_assert(has_line(WEB_METRICS_OPENMETRICS, "# UNIT ndtd_received_bytes bytes") == 0); /* has no value here */
    ck_assert(has_line(WEB_METRICS_OPENMETRICS, "# UNIT ndtd_uptime_seconds seconds"));
    ck_assert(has_line(WEB_METRICS_OPENMETRICS, "ndtd_scans_total{outcome=\"converged\"} 2"));
    char *text = text_of(WEB_METRICS_OPENMETRICS);
    ck_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
    free(text);
}

TEST(negotiation)
{
    static const struct {
        const char *accept;
        enum web_metrics_format format;
    } cases[] = {
        {NULL, WEB_METRICS_PROMETHEUS},
        {"", WEB_METRICS_PROMETHEUS},
        {"*/*", WEB_METRICS_PROMETHEUS},
        {"text/html", WEB_METRICS_PROMETHEUS},
        {"application/openmetrics-text", WEB_METRICS_OPENMETRICS},
        {"Application/OpenMetrics-Text; version=1.0.0", WEB_METRICS_OPENMETRICS},
        {"application/openmetrics-textual", WEB_METRICS_PROMETHEUS},
        /* Prometheus 2.42 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         WEB_METRICS_OPENMETRICS},
        {"text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.5", WEB_METRICS_PROMETHEUS},
        {"application/openmetrics-text;q=0", WEB_METRICS_PROMETHEUS},
        {"application/openmetrics-text; q=nan", WEB_METRICS_PROMETHEUS},
        {",,;;q=,;q", WEB_METRICS_PROMETHEUS},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(web_metrics_negotiate(cases[i].accept) == cases[i].format, "Accept: %s",
                      cases[i].accept ? cases[i].accept : "(none)");
    ck_assert_ptr_nonnull(strstr(web_metrics_content_type(WEB_METRICS_PROMETHEUS), "version=0.0.4"));
    ck_assert_ptr_nonnull(strstr(web_metrics_content_type(WEB_METRICS_OPENMETRICS), "version=1.0.0"));
}

static size_t count_series(void)
{
    char *text = text_of(WEB_METRICS_PROMETHEUS);
    size_t count = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        count += *line != '#';
    free(text);
    return count;
}

/* Neither time nor input makes more series. */
TEST(bounded)
{
    set_usual_status(1, 2);
    struct ndt_result_message result = result_of(0);
    web_metrics_add(metrics, &result);
    const size_t series = count_series();
    for (uint64_t seq = 1; seq < 20000; seq++) {
        result = result_of(seq * 0x9e3779b97f4a7c15u);
        result.result.outcome = (enum ndt_outcome)(seq % 40);
        result.result.align_us = (double)(seq % 1000) * 1e3;
        snprintf(result.result.reason, sizeof(result.result.reason), "reason %d", (int)seq);
        web_metrics_add(metrics, &result);
        web_metrics_count_response(metrics, (unsigned)seq, seq);
    }
    ck_assert_uint_eq(count_series(), series);
    ck_assert_uint_lt(series, 800);
}

static void *feed(void *unused)
{
    (void)unused;
    for (uint64_t seq = 0; seq < 2000; seq++) {
        const struct ndt_result_message result = result_of(seq);
        web_metrics_add(metrics, &result);
        web_metrics_count_response(metrics, 200, 1);
        if (seq % 100 == 0)
            web_metrics_set_status(metrics, NULL);
    }
    return NULL;
}

/* For the thread sanitizer; a histogram is always complete in itself. */
TEST(threads)
{
    pthread_t feeds[2];
    for (size_t i = 0; i < 2; i++)
        ck_assert(pthread_create(&feeds[i], NULL, feed, NULL) == 0);
    for (int i = 0; i < 50; i++) {
        char *text = text_of(WEB_METRICS_PROMETHEUS);
        const char *inf = strstr(text, "ndtd_scan_iterations_bucket{le=\"+Inf\"} ");
        const char *count = strstr(text, "ndtd_scan_iterations_count ");
        ck_assert(inf && count);
        ck_assert_double_eq(strtod(strchr(inf, '}') + 1, NULL), strtod(strchr(count, ' '), NULL));
        free(text);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(feeds[i], NULL);
    ASSERT_SAMPLE("ndt_web_responses_total{code=\"200\"}", 4000);
}
