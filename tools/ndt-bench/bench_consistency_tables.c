/** @file
 * @brief consistency: the statistics of the results. */
#include "bench_consistency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const axis_names[CONSISTENCY_AXES] = {"along", "across", "up", "roll", "pitch", "yaw"};
/* A pose within these is right. */
static const double RIGHT_M = 0.5, RIGHT_DEG = 3;
/* The 0.5 and 99.5 % points of the normal distribution. */
static const double Z99 = 2.5758;
/* Chi-square with 6 degrees of freedom, 99 %. */
static const double CHI_SQUARE_6_99 = 16.81;

static double percent(size_t part, size_t whole)
{
    return whole ? 100 * (double)part / (double)whole : NAN;
}

/* Centimetres for the first three axes, degrees for the others. */
static double in_unit(int axis, double value)
{
    return axis < 3 ? value * 100 : value / BENCH_DEG;
}

/* ---- errors of the drive ---- */

struct spread {
    double median, p95, most;
};

/* The means over the seeds of the quantiles of each. */
static struct spread spread_of(const struct consistency *results, int rotation)
{
    struct spread mean = {0};
    size_t seeds = 0;
    for (uint64_t k = 0; k < results->seeds; k++) {
        const struct consistency_scan *scans = results->scans + k * results->per_seed;
        struct bench_samples samples = {0};
        for (size_t i = 0; i < results->per_seed; i++)
            if (scans[i].has_error)
                bench_samples_add(&samples, rotation ? scans[i].off_deg : 100 * scans[i].off_m);
        if (samples.count) {
            mean.median += bench_median(&samples);
            mean.p95 += bench_quantile(&samples, 0.95);
            mean.most += bench_quantile(&samples, 1);
            seeds++;
        }
        bench_samples_free(&samples, 1);
    }
    return (struct spread){mean.median / (double)seeds, mean.p95 / (double)seeds, mean.most / (double)seeds};
}

static void put_drive(const struct consistency *results, struct bench_report *report)
{
    struct bench_table *table = bench_report_table(
        report, "drive", "Drive: errors in cm and deg, means over the seeds of their median, 95 % and maximum");
    size_t outcomes[NDT_OUTCOME_COUNT] = {0}, used = 0;
    double evaluations = 0;
    char text[BENCH_CELL_TEXT] = "";
    for (size_t i = 0; i < results->count; i++) {
        outcomes[results->scans[i].outcome]++;
        evaluations += results->scans[i].evaluations;
    }
    for (int i = 0; i < NDT_OUTCOME_COUNT; i++)
        if (outcomes[i] && used < sizeof(text))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %zu", used ? ", " : "",
                                     ndt_outcome_name((enum ndt_outcome)i), outcomes[i]);
    const struct spread moved = spread_of(results, 0), turned = spread_of(results, 1);
    bench_row(report, table);
    bench_number(table, "seeds", 0, (double)results->seeds);
    bench_number(table, "scans", 0, (double)results->per_seed);
    bench_number(table, "median_cm", 2, moved.median);
    bench_number(table, "p95_cm", 2, moved.p95);
    bench_number(table, "max_cm", 2, moved.most);
    bench_number(table, "median_deg", 4, turned.median);
    bench_number(table, "p95_deg", 4, turned.p95);
    bench_number(table, "max_deg", 4, turned.most);
    bench_number(table, "evaluations", 2, evaluations / (double)results->count);
    bench_text(table, "outcomes", "%s", text);
}

/* ---- NEES and innovation ---- */

/* Integrated autocorrelation time of a series: 1 + 2 sum of rho_k up to the smallest window of 5 such times
 * (Sokal 1997). */
static double correlation_time(const double *series, size_t count)
{
    double mean = 0, variance = 0, time = 1;
    for (size_t i = 0; i < count; i++)
        mean += series[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        variance += (series[i] - mean) * (series[i] - mean);
    for (size_t lag = 1; variance > 0 && lag < count && (double)lag < 5 * time; lag++) {
        double product = 0;
        for (size_t i = lag; i < count; i++)
            product += (series[i] - mean) * (series[i - lag] - mean);
        time += 2 * product / variance;
    }
    return fmax(time, 1);
}

/* NEES of each scan, averaged over the seeds: they see the same clouds and the same errors of map and truth.
 * Returns how many scans have one. */
static size_t nees_series(const struct consistency *results, double *series)
{
    size_t count = 0;
    for (size_t i = 0; i < results->per_seed; i++) {
        double sum = 0;
        size_t seen = 0;
        for (uint64_t k = 0; k < results->seeds; k++) {
            const struct consistency_scan *scan = &results->scans[k * results->per_seed + i];
            sum += scan->has_nees ? scan->nees : 0;
            seen += (size_t)scan->has_nees;
        }
        if (seen)
            series[count++] = sum / (double)seen;
    }
    return count;
}

/* Quantile of the mean of `count` chi-square numbers with 6 degrees of freedom (Wilson and Hilferty 1931). */
static double mean_quantile(double count, double z)
{
    const double freedom = CONSISTENCY_AXES * count, part = 2 / (9 * freedom);
    return CONSISTENCY_AXES * pow(1 - part + z * sqrt(part), 3);
}

static void put_nees(const struct consistency *results, struct bench_report *report)
{
    struct bench_table *table = bench_report_table(
        report, "consistency",
        "Consistency: NEES and squared innovations, both expected to be 6; the band holds the mean NEES in 99 % of "
        "the cases if the covariances are exact, for so many independent scans as the correlation time of the "
        "NEES along the drive leaves; seeds do not count as independent");
    double *series = malloc(results->per_seed * sizeof(*series));
    struct bench_samples innovations = {0};
    size_t above = 0, count = series ? nees_series(results, series) : 0;
    double nees = count ? 0 : NAN, time = correlation_time(series, count);
    for (size_t i = 0; i < count; i++)
        nees += series[i] / (double)count;
    for (size_t i = 0; i < results->count; i++) {
        const double innovation = results->scans[i].innovation;
        if (!(innovation > 0))
            continue;
        bench_samples_add(&innovations, innovation);
        above += innovation > CHI_SQUARE_6_99;
    }
    const double independent = fmax((double)count / time, 1);
    report->is_incomplete |= !series;
    free(series);
    bench_row(report, table);
    bench_number(table, "nees", 2, nees);
    bench_number(table, "nees_low", 2, mean_quantile(independent, -Z99));
    bench_number(table, "nees_high", 2, mean_quantile(independent, Z99));
    bench_number(table, "scans", 0, (double)count);
    bench_number(table, "correlation_scans", 2, time);
    bench_number(table, "independent", 1, independent);
    bench_number(table, "innovation", 2, bench_mean(&innovations));
    bench_number(table, "innovation_median", 2, bench_median(&innovations));
    bench_number(table, "innovation_p99", 2, bench_quantile(&innovations, 0.99));
    bench_number(table, "innovation_above_99", 2, percent(above, innovations.count));
    bench_samples_free(&innovations, 1);
}

/* ---- coverage ---- */

struct coverage {
    size_t count, within[3];
    double error, square, sigma; /* sums */
};

static struct coverage cover(const struct consistency *results, int axis)
{
    struct coverage out = {0};
    for (size_t i = 0; i < results->count; i++) {
        const struct consistency_scan *scan = &results->scans[i];
        if (!scan->has_nees)
            continue;
        const double error = scan->error[axis], sigma = scan->sigma[axis];
        out.count++;
        out.error += error;
        out.square += error * error;
        out.sigma += sigma;
        for (int k = 0; k < 3; k++)
            out.within[k] += fabs(error) <= (k + 1) * sigma;
    }
    return out;
}

static void put_within(struct bench_table *table, const double values[3])
{
    static const char *const keys[3] = {"within_1", "within_2", "within_3"};
    for (int k = 0; k < 3; k++)
        bench_number(table, keys[k], 1, values[k]);
}

static void put_coverage(const struct consistency *results, struct bench_report *report)
{
    struct bench_table *table =
        bench_report_table(report, "coverage",
                           "Coverage: errors in the axes of the base, and the share within 1, 2 and 3 sigma in "
                           "percent; ratio: root mean square error over mean sigma");
    size_t pooled[3] = {0}, count = 0;
    for (int axis = 0; axis < CONSISTENCY_AXES; axis++) {
        const struct coverage sums = cover(results, axis);
        const double scans = (double)sums.count, rms = sqrt(sums.square / scans);
        double within[3];
        for (int k = 0; k < 3; k++) {
            within[k] = percent(sums.within[k], sums.count);
            pooled[k] += sums.within[k];
        }
        count += sums.count;
        bench_row(report, table);
        bench_text(table, "axis", "%s", axis_names[axis]);
        bench_text(table, "unit", "%s", axis < 3 ? "cm" : "deg");
        bench_number(table, "mean_error", 4, in_unit(axis, sums.error / scans));
        bench_number(table, "rms_error", 4, in_unit(axis, rms));
        bench_number(table, "mean_sigma", 4, in_unit(axis, sums.sigma / scans));
        bench_number(table, "ratio", 2, rms / (sums.sigma / scans));
        put_within(table, within);
    }
    bench_row(report, table);
    bench_text(table, "axis", "pooled");
    put_within(table,
               (const double[3]){percent(pooled[0], count), percent(pooled[1], count), percent(pooled[2], count)});
    bench_row(report, table);
    bench_text(table, "axis", "nominal");
    put_within(table, (const double[3]){68.27, 95.45, 99.73});
}

/* ---- acceptance ---- */

enum measure { BY_CONFIDENCE, BY_SCORE };

static void put_threshold(const struct consistency *results, enum measure by, double threshold,
                          struct bench_report *report, struct bench_table *table)
{
    size_t right = 0, wrong = 0, right_accepted = 0, wrong_accepted = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct consistency_scan *scan = &results->scans[i];
        const int is_right = scan->off_m <= RIGHT_M && scan->off_deg <= RIGHT_DEG;
        const int is_accepted = (by == BY_SCORE ? scan->score : scan->confidence) >= threshold; /* NAN: no */
        if (!scan->has_error)
            continue;
        right += (size_t)is_right;
        wrong += (size_t)!is_right;
        right_accepted += (size_t)(is_right && is_accepted);
        wrong_accepted += (size_t)(!is_right && is_accepted);
    }
    bench_row(report, table);
    bench_text(table, "by", by == BY_SCORE ? "score" : "confidence");
    bench_number(table, "threshold", 3, threshold);
    bench_number(table, "right", 0, (double)right);
    bench_number(table, "true_accepts", 2, percent(right_accepted, right));
    bench_number(table, "wrong", 0, (double)wrong);
    bench_number(table, "false_accepts", 2, percent(wrong_accepted, wrong));
}

static void put_acceptance(const struct consistency *results, struct bench_report *report)
{
    static const double confidences[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999};
    static const double scores[] = {0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6};
    struct bench_table *table = bench_report_table(
        report, "acceptance",
        "Acceptance: share of the right poses (within 0.5 m and 3 deg) and of the wrong ones whose confidence, or "
        "score (normalised NVTL times match ratio), is at least the threshold, in percent");
    for (size_t i = 0; i < sizeof(confidences) / sizeof(confidences[0]); i++)
        put_threshold(results, BY_CONFIDENCE, confidences[i], report, table);
    for (size_t i = 0; i < sizeof(scores) / sizeof(scores[0]); i++)
        put_threshold(results, BY_SCORE, scores[i], report, table);
}

/* ---- every result ---- */

static void put_scans(const struct consistency *results, struct bench_report *report)
{
    static const char *const errors[CONSISTENCY_AXES] = {"error_along", "error_across", "error_up",
                                                         "error_roll",  "error_pitch",  "error_yaw"};
    static const char *const sigmas[CONSISTENCY_AXES] = {"sigma_along", "sigma_across", "sigma_up",
                                                         "sigma_roll",  "sigma_pitch",  "sigma_yaw"};
    struct bench_table *table = bench_report_table(report, "scans", "Results: errors and deviations in m and rad");
    table->is_for_programs = 1;
    for (size_t i = 0; i < results->count; i++) {
        const struct consistency_scan *scan = &results->scans[i];
        bench_row(report, table);
        bench_number(table, "seed", 0, (double)scan->seed);
        bench_number(table, "time_s", 3, scan->time_s);
        bench_text(table, "outcome", "%s", ndt_outcome_name(scan->outcome));
        bench_number(table, "score", 4, scan->score);
        bench_number(table, "confidence", 4, scan->confidence);
        bench_number(table, "innovation", 3, scan->innovation);
        bench_number(table, "evaluations", 0, scan->evaluations);
        if (!scan->has_nees)
            continue;
        bench_number(table, "nees", 3, scan->nees);
        for (int axis = 0; axis < CONSISTENCY_AXES; axis++) {
            bench_number(table, errors[axis], 6, scan->error[axis]);
            bench_number(table, sigmas[axis], 6, scan->sigma[axis]);
        }
    }
}

void consistency_report(const struct consistency *results, int with_scans, struct bench_report *report)
{
    put_drive(results, report);
    put_nees(results, report);
    put_coverage(results, report);
    put_acceptance(results, report);
    if (with_scans)
        put_scans(results, report);
}
