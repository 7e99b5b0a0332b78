/** @file
 * @brief compare: values of a setting, measured in one run and compared with the first value. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "ndtd/options.h"

enum { MOST_CHOICES = 12, WARM_UP = 3 };
static const double LEAST = 0.02; /* smaller differences do not count */

/* Experiments. The other values are compared with the first one; a value that this machine does not support, such
 * as an instruction set of another processor, is skipped. */
static const struct experiment {
    const char *name, *option, *values, *threads;
    double pause_ms; /* between two alignments, so that idle workers fall asleep as between scans */
    const char *help;
} experiments[] = {
    {"vector-width", "cpu.isa", "baseline,avx2,avx512,neon", "1", 0, "instruction sets of the evaluation"},
    {"threads", "cpu.threads", "1,2,3,4", NULL, 0, "threads of the CPU backend"},
    {"spin", "cpu.spin_us", "0,20,50,100,200,500", "2", 2, "how long idle workers spin before they sleep"},
    {"pinning", "cpu.pin_threads", "false,true", "2", 2, "whether workers are pinned to cores"},
    {"line-search", "ndt.max_line_search_steps", "1,2,3,4", NULL, 0, "step lengths per iteration"},
    {"neighbours", "ndt.neighbours", "radius,direct1,direct7,direct27", NULL, 0,
     "voxels with which a point is matched"},
    {"gpu-pipelines", "cuda.pipeline", "staged,fused,resident", NULL, 0,
     "pipelines of the CUDA backend (--backend cuda)"},
    {"gpu-shapes", "cuda.shape", "block,cluster,graph,chain", NULL, 0,
     "shapes of alignments on the device (--backend cuda)"},
};
enum { EXPERIMENTS = sizeof(experiments) / sizeof(experiments[0]) };

/* One value of an option. */
struct choice {
    char value[64];
    struct ndtd_settings settings; /* the setup of its candidate borrows from it */
    struct bench_candidates candidates;
    struct bench_samples align_us;
};
struct run {
    struct bench_source *source;
    double pause_ms;
    size_t count;
    struct choice choices[MOST_CHOICES];
};

static enum ndt_status sample(void *context, size_t item, size_t round, int is_counted, struct ndt_error *err)
{
    struct run *run = context;
    struct choice *choice = &run->choices[item];
    struct bench_candidate *candidate = &choice->candidates.items[0];
    const struct bench_options *options = run->source->options;
    const struct bench_scan *scan = &run->source->scans[0].items[round % run->source->scans[0].count];
    const struct ndt_pose guess =
        bench_start(options->seed, round, &scan->T_map_sensor, &options->offsets.items[0]);
    const struct timespec pause = {0, (long)(run->pause_ms * 1e6)};
    struct ndt_align_result result;
    double took_us, kernel_us;
    if (run->pause_ms > 0)
        (void)nanosleep(&pause, NULL);
    if (!bench_candidate_align(candidate, &candidate->setup.align, &scan->cloud, &guess, &result, &took_us,
                               &kernel_us))
        return ndt_fail(err, NDT_ERR_DEVICE, "%s: %s", candidate->name, candidate->why.text);
    if (is_counted)
        bench_samples_add(&choice->align_us, took_us);
    return NDT_OK;
}

static enum ndt_status open_choice(struct run *run, const struct experiment *experiment, struct ndt_error *err)
{
    const struct bench_options *options = run->source->options;
    struct choice *choice = &run->choices[run->count];
    struct bench_setup setup = options->setup;
    char threads[16];
    snprintf(threads, sizeof(threads), "%zu", options->threads.values[0]);
    choice->settings = options->settings;
    enum ndt_status status = ndtd_option_set_text(&choice->settings, experiment->option, choice->value, err);
    if (status == NDT_OK && experiment->threads)
        status = ndtd_option_set_text(&choice->settings, "cpu.threads", experiment->threads, err);
    if (status == NDT_OK && options->threads.count)
        status = ndtd_option_set_text(&choice->settings, "cpu.threads", threads, err);
    if (status == NDT_OK && options->backends.count)
        status = ndtd_option_set_text(&choice->settings, "backend.name", options->backends.items[0], err);
    if (status == NDT_OK)
        status = ndtd_settings_finish(&choice->settings, err);
    if (status != NDT_OK)
        return status;
    setup.config = choice->settings.compute;
    setup.align = choice->settings.align;
    setup.map = choice->settings.map;
    const int is_auto =
        strcmp(choice->settings.backend, "auto") == 0; /* auto would replace a backend that does not work */
    snprintf(setup.backend, sizeof(setup.backend), "%s", is_auto ? "cpu" : choice->settings.backend);
    snprintf(setup.pipeline, sizeof(setup.pipeline), "%s", setup.config.pipeline ? setup.config.pipeline : "");
    status = bench_candidates_add(&choice->candidates, run->source, &setup, err);
    run->count += status == NDT_OK;
    if (status != NDT_OK)
        bench_candidates_close(&choice->candidates);
    return status;
}

/* The factor is the median over the rounds of the time of the first value over that of this one. */
static void put_rows(struct run *run, const struct experiment *experiment, struct bench_report *report,
                     struct bench_table *table)
{
    const struct choice *first = &run->choices[0];
    struct bench_samples factors[MOST_CHOICES] = {{0}};
    for (size_t i = 1; i < run->count; i++)
        for (size_t k = 0; k < first->align_us.count; k++)
            bench_samples_add(&factors[i], first->align_us.values[k] / run->choices[i].align_us.values[k]);
    for (size_t i = 0; i < run->count; i++) {
        struct choice *choice = &run->choices[i];
        const double factor = bench_median(&factors[i]), low = bench_quantile(&factors[i], 0.25),
                     high = bench_quantile(&factors[i], 0.75);
        bench_row(report, table);
        bench_text(table, "experiment", "%s", experiment->name);
        bench_text(table, "option", "%s", experiment->option);
        bench_text(table, "value", "%s", choice->value);
        bench_text(table, "backend", "%s", choice->candidates.items[0].name);
        bench_number(table, "points", 0, (double)run->source->scans[0].points);
        bench_number(table, "align_us", 1, bench_median(&choice->align_us));
        bench_number(table, "p95_us", 1, bench_quantile(&choice->align_us, 0.95));
        if (i > 0) {
            bench_number(table, "factor", 2, factor);
            bench_number(table, "factor_low", 2, low);
            bench_number(table, "factor_high", 2, high);
            bench_text(table, "verdict", "%s",
                       (low <= 1 && high >= 1) || fabs(factor - 1) < LEAST ? "no difference"
                       : factor > 1                                        ? "faster"
                                                                           : "slower");
        }
        report->device_rows += choice->candidates.items[0].is_device != 0;
    }
    bench_samples_free(factors, run->count);
}

/* Bytes up to the next comma outside of brackets. */
static size_t value_length(const char *values)
{
    size_t length = 0;
    for (int depth = 0; values[length] && (depth > 0 || values[length] != ','); length++)
        depth += (values[length] == '[') - (values[length] == ']');
    return length;
}

static enum ndt_status compare(struct run *run, const struct experiment *experiment, struct bench_report *report,
                               struct bench_table *table, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    run->pause_ms = experiment->pause_ms;
    for (const char *at = experiment->values; status == NDT_OK && *at && run->count < MOST_CHOICES;) {
        struct ndt_error why = {""};
        const size_t length = value_length(at);
        snprintf(run->choices[run->count].value, sizeof(run->choices[0].value), "%.*s", (int)length, at);
        status = open_choice(run, experiment, &why);
        if (status == NDT_ERR_UNSUPPORTED || (status == NDT_ERR_ARGUMENT && experiment->help)) {
            bench_note(table, "%s: %.*s is not here: %.120s", experiment->name, (int)length, at, why.text);
            status = NDT_OK;
        }
        if (status != NDT_OK)
            (void)ndt_fail(err, status, "%s", why.text);
        at += length + (at[length] == ',');
    }
    if (status == NDT_OK && run->count > 0)
        status = bench_sample(run->count, WARM_UP, run->source->options->rounds, sample, run, err);
    if (status == NDT_OK)
        put_rows(run, experiment, report, table);
    for (size_t i = 0; i < run->count; i++) {
        bench_candidates_close(&run->choices[i].candidates);
        bench_samples_free(&run->choices[i].align_us, 1);
    }
    run->count = 0;
    return status;
}

/* A name of the table, or OPTION=VALUE,VALUE... */
static enum ndt_status find(const char *word, struct experiment *out, char option[128], struct ndt_error *err)
{
    const char *equals = strchr(word, '=');
    for (size_t i = 0; i < EXPERIMENTS; i++)
        if (strcmp(word, experiments[i].name) == 0) {
            *out = experiments[i];
            return NDT_OK;
        }
    if (!equals)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "compare: there is no '%.60s'; 'compare list' names them, or give OPTION=VALUE,VALUE",
                        word);
    snprintf(option, 128, "%.*s", (int)(equals - word), word);
    *out = (struct experiment){.name = "settings", .option = option, .values = equals + 1};
    return NDT_OK;
}

enum ndt_status bench_compare(struct bench_source *source, struct bench_report *report, struct ndt_error *err)
{
    static struct run run;
    const struct bench_options *options = source->options;
    if (options->operands.count == 0 || strcmp(options->operands.words[0], "list") == 0) {
        struct bench_table *table = bench_report_table(report, "experiments", "Experiments of compare");
        for (size_t i = 0; i < EXPERIMENTS; i++) {
            bench_row(report, table);
            bench_text(table, "experiment", "%s", experiments[i].name);
            bench_text(table, "option", "%s", experiments[i].option);
            bench_text(table, "values", "%s", experiments[i].values);
            bench_text(table, "about", "%s", experiments[i].help);
        }
        return NDT_OK;
    }
    run = (struct run){.source = source};
    enum ndt_status status = bench_source_scans(source, &options->preprocess,
                                                options->points.count ? options->points.values[0] : 0, err);
    if (status != NDT_OK)
        return status;
    bench_source_report(source, report);
    struct bench_table *table =
        bench_report_table(report, "compare",
                           "Comparison: factor is the time of the first value divided by that of this one, median "
                           "over the rounds; low and high: its quartiles; no difference: 1 lies between them, or "
                           "less than 2 %");
    for (size_t i = 0; status == NDT_OK && i < options->operands.count; i++) {
        struct experiment experiment = {0};
        char option[128];
        status = find(options->operands.words[i], &experiment, option, err);
        if (status == NDT_OK)
            status = compare(&run, &experiment, report, table, err);
    }
    return status;
}
