#include "web_metrics_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct text {
    FILE *file;
    enum web_metrics_format format;
};

/* ---- parts of a line ---- */

/* Whole numbers without exponent, others with the fewest digits that restore them. */
static void print_number(FILE *file, double value)
{
    char digits[32];
    if (isnan(value))
        snprintf(digits, sizeof(digits), "NaN");
    else if (isinf(value))
        snprintf(digits, sizeof(digits), "%sInf", value > 0 ? "+" : "-");
    else if (fabs(value) < 1e15 && value == floor(value))
        snprintf(digits, sizeof(digits), "%.0f", value == 0 ? 0 : value);
    else
        for (int precision = 15; precision <= 17; precision++) {
            snprintf(digits, sizeof(digits), "%.*g", precision, value);
            if (strtod(digits, NULL) == value)
                break;
        }
    fputs(digits, file);
}

/* OpenMetrics wants a point in the bounds of buckets; with the same text in both formats they are the same series.
 */
static void print_bound(FILE *file, double bound)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%.6g", bound);
    fprintf(file, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

/* The value of a label may have come from outside: quotes, backslashes and line ends are escaped, bytes that are
 * not printable ASCII replaced. */
static void print_escaped(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", file);
        else if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else
            fputc(*text >= ' ' && *text <= '~' ? *text : '?', file);
    }
}

/* ---- lines ---- */

/* Length of the family's name: OpenMetrics leaves out the ending of a counter or an info. */
static int family_length(const struct web_metric *metric, enum web_metrics_format format)
{
    const size_t length = strlen(metric->name);
    if (format == WEB_METRICS_OPENMETRICS && metric->type == WEB_COUNTER)
        return (int)(length - strlen("_total"));
    if (format == WEB_METRICS_OPENMETRICS && metric->type == WEB_INFO)
        return (int)(length - strlen("_info"));
    return (int)length;
}

static void print_head(const struct text *out, const struct web_metric *metric)
{
    const int is_open = out->format == WEB_METRICS_OPENMETRICS, length = family_length(metric, out->format);
    const int is_info = !is_open && metric->type == WEB_INFO;
    fprintf(out->file, "# HELP %.*s %s\n# TYPE %.*s %s\n", length, metric->name, metric->help, length, metric->name,
            web_metric_type_name(is_info ? WEB_GAUGE : metric->type));
    if (is_open && *metric->unit)
        fprintf(out->file, "# UNIT %.*s %s\n", length, metric->name, metric->unit);
}

static void print_label(const struct text *out, const struct web_metric *metric, size_t label, const char *open)
{
    if (!metric->label)
        return;
    fprintf(out->file, "%s%s=\"", open, metric->label->name);
    print_escaped(out->file, metric->label->at(label));
    fputc('"', out->file);
}

static void print_sample(const struct text *out, const struct web_metric *metric, const char *ending, size_t label,
                         double value)
{
    fprintf(out->file, "%s%s", metric->name, ending);
    print_label(out, metric, label, "{");
    fputs(metric->label ? "} " : " ", out->file);
    print_number(out->file, value);
    fputc('\n', out->file);
}

static void print_bucket(const struct text *out, const struct web_metric *metric, size_t label, size_t bucket,
                         double count)
{
    fprintf(out->file, "%s_bucket", metric->name);
    print_label(out, metric, label, "{");
    fputs(metric->label ? ",le=\"" : "{le=\"", out->file);
    if (bucket < metric->bound_count)
        print_bound(out->file, metric->bounds[bucket]);
    else
        fputs("+Inf", out->file);
    fputs("\"} ", out->file);
    print_number(out->file, count);
    fputc('\n', out->file);
}

static void print_histogram(const struct text *out, const struct web_metric *metric, size_t label,
                            const struct web_histogram *histogram)
{
    double count = 0;
    for (size_t bucket = 0; bucket <= metric->bound_count; bucket++) {
        count += histogram->counts[bucket];
        print_bucket(out, metric, label, bucket, count);
    }
    print_sample(out, metric, "_sum", label, histogram->sum);
    print_sample(out, metric, "_count", label, count);
}

static void print_info(const struct text *out, const struct web_metric *metric, const char (*texts)[WEB_TEXT_BYTES])
{
    const char *open = "{";
    fputs(metric->name, out->file);
    for (size_t i = 0; i < WEB_MAX_TEXTS && metric->texts[i].name; i++) {
        if (!*texts[i])
            continue;
        fprintf(out->file, "%s%s=\"", open, metric->texts[i].name);
        print_escaped(out->file, texts[i]);
        fputc('"', out->file);
        open = ",";
    }
    fputs(*open == ',' ? "} 1\n" : " 1\n", out->file);
}

/* ---- all ---- */

static void print_metric(const struct text *out, const struct web_values *values, size_t row)
{
    const struct web_metric *metric = &web_metric_table[row];
    const size_t count = metric->label ? metric->label->count : 1;
    int has_head = 0;
    for (size_t label = 0; label < count; label++) {
        const double value = values->numbers[row][label];
        if (metric->type != WEB_HISTOGRAM && isnan(value))
            continue;
        if (!has_head)
            print_head(out, metric);
        has_head = 1;
        if (metric->type == WEB_HISTOGRAM)
            print_histogram(out, metric, label, &values->histograms[row - WEB_LATENCY][label]);
        else if (metric->type == WEB_INFO)
            print_info(out, metric, values->texts[web_metric_info_slot(row)]);
        else
            print_sample(out, metric, "", label, value);
    }
}

void web_values_print(const struct web_values *values, enum web_metrics_format format, FILE *file)
{
    const struct text out = {file, format};
    for (size_t row = 0; row < web_metric_count; row++)
        print_metric(&out, values, row);
    if (format == WEB_METRICS_OPENMETRICS)
        fputs("# EOF\n", file);
}

void web_metrics_list(FILE *file)
{
    for (size_t row = 0; row < web_metric_count; row++) {
        const struct web_metric *metric = &web_metric_table[row];
        fprintf(file, "%s\t%s\t%s\t", metric->name, web_metric_type_name(metric->type),
                *metric->unit ? metric->unit : "-");
        if (metric->label)
            fputs(metric->label->name, file);
        for (size_t i = 0; i < WEB_MAX_TEXTS && metric->texts[i].name; i++)
            fprintf(file, "%s%s", i ? "," : "", metric->texts[i].name);
        fprintf(file, "%s\t%s\n", metric->label || metric->texts[0].name ? "" : "-", metric->help);
    }
}

/* ---- the format that is asked for ---- */

static int is_media_type(const char *range, size_t length, const char *type)
{
    return length == strlen(type) && strncasecmp(range, type, length) == 0;
}

/* The weight of a media range such as "text/plain;version=0.0.4;q=0.5", up to the comma. */
static double weight_of(const char *range, size_t length)
{
    for (size_t at = 0; at + 2 < length; at++)
        if (range[at] == ';' && strspn(range + at + 1, " ") + at + 2 < length) {
            const char *name = range + at + 1 + strspn(range + at + 1, " ");
            if ((*name == 'q' || *name == 'Q') && name[1] == '=')
                return strtod(name + 2, NULL);
        }
    return 1;
}

enum web_metrics_format web_metrics_negotiate(const char *accept)
{
    double open = 0, plain = 0;
    while (accept && *accept) {
        const size_t length = strcspn(accept, ",");
        const size_t skip = strspn(accept, " \t");
        const size_t name = skip < length ? strcspn(accept + skip, ",; \t") : 0;
        const double weight = weight_of(accept, length);
        if (is_media_type(accept + skip, name, "application/openmetrics-text") && weight > open)
            open = weight;
        if ((is_media_type(accept + skip, name, "text/plain") || is_media_type(accept + skip, name, "text/*")) &&
            weight > plain)
            plain = weight;
        accept += length + (accept[length] == ',');
    }
    return open > 0 && open >= plain ? WEB_METRICS_OPENMETRICS : WEB_METRICS_PROMETHEUS;
}

const char *web_metrics_content_type(enum web_metrics_format format)
{
    return format == WEB_METRICS_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                             : "text/plain; version=0.0.4; charset=utf-8";
}
