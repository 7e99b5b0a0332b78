/* Crop: which points are used, and when each was measured; WIDE points at a time. */
#include "preprocess_steps.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/wide.h"

/* p >= at_least(v) exactly when (double)p >= v */
static float at_least(double value)
{
    const float near = (float)value;
    return (double)near < value ? nextafterf(near, INFINITY) : near;
}

static float at_most(double value)
{
    const float near = (float)value;
    return (double)near > value ? nextafterf(near, -INFINITY) : near;
}

/* Squares and sums of floats are off by less than 4 * 2^-24 of the sum, or by less than 1e-37 where they underflow;
 * so limits with a margin of one part in a million are certain. */
void ndt_crop_set(struct ndt_crop *crop, const struct ndt_preprocess_params *params, const struct ndt_sweep *sweep)
{
    const double part = 1e-6, least = 1e-37;
    const double near2 = params->min_range_m * params->min_range_m;
    const double far2 = params->max_range_m * params->max_range_m;
    crop->params = params;
    crop->reference_us = (float)(sweep->reference_s * 1e6);
    crop->begin_s = (float)sweep->begin_s;
    crop->end_s = (float)sweep->end_s;
    for (int k = 0; k < 3; k++) {
        crop->low_m[k] = at_least(params->crop_min_m[k]);
        crop->high_m[k] = at_most(params->crop_max_m[k]);
    }
    crop->certain_low_m2 = near2 > 0 ? (float)(near2 * (1 + part) + least) : (float)near2;
    crop->possible_low_m2 = (float)(near2 * (1 - part) - least);
    crop->certain_high_m2 = (float)(far2 * (1 - part) - least);
    if (crop->certain_high_m2 > FLT_MAX) /* an infinite float may be a finite double */
        crop->certain_high_m2 = FLT_MAX;
    crop->possible_high_m2 = (float)(far2 * (1 + part) + least);
}

static int is_in_range(const struct ndt_preprocess_params *params, double x, double y, double z)
{
    const double r2 = x * x + y * y + z * z;
    /* comparisons with NaN are false */
    return r2 >= params->min_range_m * params->min_range_m && r2 <= params->max_range_m * params->max_range_m;
}

static wide_i in_range_double(const struct ndt_preprocess_params *params, wide_f x, wide_f y, wide_f z)
{
    wide_i mask = {0};
    for (int i = 0; i < WIDE; i++)
        mask[i] = -is_in_range(params, (double)x[i], (double)y[i], (double)z[i]);
    return mask;
}

/* The limits in every lane: local copies, so that the compiler knows that no store changes them. */
struct limits {
    wide_f low_m[3], high_m[3];
    wide_f certain_low_m2, certain_high_m2, possible_low_m2, possible_high_m2;
};

static inline struct limits limits_of(const struct ndt_crop *crop)
{
    struct limits limits = {.certain_low_m2 = wide_set(crop->certain_low_m2),
                            .certain_high_m2 = wide_set(crop->certain_high_m2),
                            .possible_low_m2 = wide_set(crop->possible_low_m2),
                            .possible_high_m2 = wide_set(crop->possible_high_m2)};
    for (int k = 0; k < 3; k++) {
        limits.low_m[k] = wide_set(crop->low_m[k]);
        limits.high_m[k] = wide_set(crop->high_m[k]);
    }
    return limits;
}

/* Mask of the usable points among `lanes`. */
static inline wide_i usable(const struct limits *limits, const struct ndt_preprocess_params *params, wide_i lanes,
                            wide_f x, wide_f y, wide_f z)
{
    const wide_f r2 = x * x + y * y + z * z;
    const wide_i box = lanes & (x >= limits->low_m[0]) & (x <= limits->high_m[0]) & (y >= limits->low_m[1]) &
                       (y <= limits->high_m[1]) & (z >= limits->low_m[2]) & (z <= limits->high_m[2]);
    const wide_i certain = box & (r2 >= limits->certain_low_m2) & (r2 <= limits->certain_high_m2);
    const wide_i possible = box & (r2 >= limits->possible_low_m2) & (r2 <= limits->possible_high_m2);
    if (__builtin_expect(wide_any(certain ^ possible), 0))
        return certain | (possible & in_range_double(params, x, y, z));
    return certain;
}

/* Mask of the lanes that hold points when `left` are left. */
static inline wide_i lanes_of(size_t left)
{
    return left < WIDE ? wide_first(left) : wide_set_i(-1);
}

/* Abramowitz & Stegun 4.4.49 on [0, 1], unfolded to the full circle. */
static inline wide_f arc_tangent(wide_f y, wide_f x)
{
    const wide_f ax = wide_abs(x), ay = wide_abs(y);
    const wide_i steep = ay > ax;
    const wide_f high = wide_select(ax > ay, ax, ay), low = wide_select(ax > ay, ay, ax);
    const wide_f a = wide_select(high > 0, low / high, (wide_f){0}), s = a * a;
    wide_f r = (((0.0208351f * s - 0.0851330f) * s + 0.1801410f) * s - 0.3302995f) * s + 0.9998660f;
    r *= a;
    r = wide_select(steep, 1.57079633f - r, r);
    r = wide_select(x < 0, 3.14159265f - r, r);
    return wide_select(y < 0, -r, r);
}

/* Seconds relative to mid-sweep of points seen at these azimuths by a sensor that turns once per sweep_s, starting
 * and ending behind itself; the arc tangent is good to 1e-5 rad. */
static inline wide_f azimuth_time(wide_f x_m, wide_f y_m, float sweep_s, int is_clockwise)
{
    const wide_f turn = arc_tangent(y_m, x_m) * 0.159154943f; /* -1/2 .. 1/2 */
    return sweep_s * (is_clockwise ? -turn : turn);
}

static inline wide_i has_time(wide_f time_s)
{
    return wide_abs(time_s) <= (float)NDT_PREPROCESS_TIME_LIMIT_S;
}

/* As ndt_preprocess_since_reference. */
static inline wide_f since_reference(wide_f time_s, float reference_us)
{
    return ((time_s * 1e6f + NDT_ROUNDING) - (NDT_ROUNDING + reference_us)) * 1e-6f;
}

static inline void put(struct ndt_point_block *block, wide_i mask, const wide_f point[4])
{
    size_t at = block->count;
    if (wide_all(mask)) {
        wide_store(block->x_m + at, point[0]);
        wide_store(block->y_m + at, point[1]);
        wide_store(block->z_m + at, point[2]);
        wide_store(block->time_s + at, point[3]);
        block->count = at + WIDE;
        return;
    }
    for (int i = 0; i < WIDE; i++) { /* no unpredictable branch */
        block->x_m[at] = point[0][i];
        block->y_m[at] = point[1][i];
        block->z_m[at] = point[2][i];
        block->time_s[at] = point[3][i];
        at += (size_t)-mask[i];
    }
    block->count = at;
}

static inline size_t end_of(const struct ndt_cloud *raw, size_t first)
{
    return raw->count - first < NDT_BLOCK_POINTS ? raw->count : first + NDT_BLOCK_POINTS;
}

/* Inlined with a constant `mode`: one loop per mode. */
static inline void crop_in_mode(const struct ndt_crop *crop, const struct ndt_cloud *raw, size_t first,
                                enum ndt_deskew_mode mode, struct ndt_point_block *block)
{
    const struct limits limits = limits_of(crop);
    const float *const x_m = raw->x_m, *const y_m = raw->y_m, *const z_m = raw->z_m, *const time_s = raw->time_s;
    const size_t end = end_of(raw, first);
    const int is_clockwise = mode == NDT_DESKEW_AZIMUTH_CW;
    const float reference_us = crop->reference_us;
    const wide_f begin_s = wide_set(crop->begin_s), end_s = wide_set(crop->end_s);
    struct ndt_point_block out = *block;
    out.count = 0;
    for (size_t at = first; at < end; at += WIDE) { /* clouds are padded: the last load may reach behind `end` */
        const wide_f x = wide_load(x_m + at), y = wide_load(y_m + at), z = wide_load(z_m + at);
        wide_i mask = usable(&limits, crop->params, lanes_of(end - at), x, y, z);
        wide_f t = {0};
        if (mode == NDT_DESKEW_TIME) {
            const wide_f told_s = wide_load(time_s + at);
            t = since_reference(told_s, reference_us);
            mask &= has_time(told_s) & (t >= begin_s) & (t <= end_s);
        } else if (mode != NDT_DESKEW_OFF) {
            t = azimuth_time(x, y, (float)crop->params->sweep_s, is_clockwise);
            mask &= t - t == 0; /* finite */
        }
        if (wide_any(mask))
            put(&out, mask, (const wide_f[]){x, y, z, t});
    }
    block->count = out.count;
}

void ndt_crop_block(const struct ndt_crop *crop, const struct ndt_cloud *raw, size_t first,
                    struct ndt_point_block *block)
{
    switch (crop->params->deskew) {
    case NDT_DESKEW_AUTO: /* refused by ndt_crop_check */
    case NDT_DESKEW_OFF:
        crop_in_mode(crop, raw, first, NDT_DESKEW_OFF, block);
        break;
    case NDT_DESKEW_TIME:
        crop_in_mode(crop, raw, first, NDT_DESKEW_TIME, block);
        break;
    case NDT_DESKEW_AZIMUTH_CW:
        crop_in_mode(crop, raw, first, NDT_DESKEW_AZIMUTH_CW, block);
        break;
    case NDT_DESKEW_AZIMUTH_CCW:
        crop_in_mode(crop, raw, first, NDT_DESKEW_AZIMUTH_CCW, block);
        break;
    }
}

enum ndt_status ndt_crop_check(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw,
                               struct ndt_error *err)
{
    if (params->deskew == NDT_DESKEW_AUTO)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "deskew: 'auto' is to be decided first, by ndt_deskew_mode_of");
    if (params->deskew == NDT_DESKEW_TIME && !raw->time_s && raw->count > 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "the scan has no time field, but preprocess.deskew is 'time'; azimuth_cw, azimuth_ccw and "
                        "off need none");
    return NDT_OK;
}

/* ---- the sweep ---- */

/* The times that are looked at: those of the usable points, within the limit. */
struct time_look {
    struct limits limits;
    const struct ndt_preprocess_params *params;
    const struct ndt_cloud *raw;
    wide_f low_s, high_s;
};

static struct time_look look_at(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw,
                                double limit_s)
{
    static const struct ndt_sweep none = {0};
    struct ndt_crop crop;
    ndt_crop_set(&crop, params, &none);
    const wide_f limit = wide_set(limit_s < (double)FLT_MAX ? (float)limit_s : FLT_MAX);
    return (struct time_look){limits_of(&crop), params, raw, -limit, limit};
}

/* Returns the points that have a time, of WIDE points; `inside` gets the usable ones. */
static inline wide_i timed_at(const struct time_look *look, size_t at, wide_f *time_s, wide_i *inside)
{
    const struct ndt_cloud *raw = look->raw;
    *time_s = wide_load(raw->time_s + at);
    *inside = usable(&look->limits, look->params, lanes_of(raw->count - at), wide_load(raw->x_m + at),
                     wide_load(raw->y_m + at), wide_load(raw->z_m + at));
    return *inside & (*time_s >= look->low_s) & (*time_s <= look->high_s); /* not NaN */
}

static void find_range(const struct time_look *look, struct ndt_told_times *out)
{
    wide_f low = wide_set(INFINITY), high = wide_set(-INFINITY), t;
    wide_i points = {0}, timed = {0}, inside;
    for (size_t at = 0; at < look->raw->count; at += WIDE) {
        const wide_i mask = timed_at(look, at, &t, &inside);
        points -= inside;
        timed -= mask;
        low = wide_select(mask & (t < low), t, low);
        high = wide_select(mask & (t > high), t, high);
    }
    *out = (struct ndt_told_times){.first_s = low[0], .last_s = high[0]};
    for (int i = 0; i < WIDE; i++) {
        out->first_s = low[i] < out->first_s ? low[i] : out->first_s;
        out->last_s = high[i] > out->last_s ? high[i] : out->last_s;
        out->points += (uint32_t)points[i];
        out->strays += (uint32_t)(points[i] - timed[i]);
    }
}

/* The order of unsigned numbers is that of the floats. */
static uint32_t key_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float value_of(uint32_t key)
{
    const uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* The element of a rank, digit by digit. */
struct selection {
    size_t rank; /* among the keys that begin with `prefix` */
    uint32_t prefix, known;
    uint32_t counts[DIGITS];
};

static void count_digits(const struct time_look *look, int shift, struct selection select[2])
{
    wide_f t;
    wide_i inside;
    for (size_t at = 0; at < look->raw->count; at += WIDE) {
        const wide_i mask = timed_at(look, at, &t, &inside);
        for (int lane = 0; lane < WIDE; lane++) {
            const uint32_t key = key_of(t[lane]);
            for (int q = 0; mask[lane] && q < 2; q++)
                if ((key & select[q].known) == select[q].prefix)
                    select[q].counts[key >> shift & (DIGITS - 1)]++;
        }
    }
}

static void take_digit(struct selection *select, int shift)
{
    uint32_t digit = 0;
    while (select->rank >= select->counts[digit])
        select->rank -= select->counts[digit++];
    select->prefix |= digit << shift;
    select->known |= (uint32_t)(DIGITS - 1) << shift;
}

/* Exact quantiles by radix selection: no order of the points, no memory, no rounding. */
static void find_quantiles(const struct time_look *look, size_t timed, float quantiles[2])
{
    static const int SHIFTS[] = {21, 10, 0}; /* the last digit overlaps the one before it by a known bit */
    struct selection select[2];
    for (int q = 0; q < 2; q++)
        select[q] = (struct selection){.rank = q ? timed - 1 - timed / 10 : timed / 10};
    for (int i = 0; i < 3; i++) {
        for (int q = 0; q < 2; q++)
            memset(select[q].counts, 0, sizeof(select[q].counts));
        count_digits(look, SHIFTS[i], select);
        for (int q = 0; q < 2; q++)
            take_digit(&select[q], SHIFTS[i]);
    }
    for (int q = 0; q < 2; q++)
        quantiles[q] = value_of(select[q].prefix);
}

void ndt_preprocess_told_times(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw,
                               double limit_s, struct ndt_told_times *out)
{
    struct time_look look = look_at(params, raw, limit_s);
    float quantiles[2];
    find_range(&look, out);
    if (!((double)out->last_s - (double)out->first_s > 2 * params->sweep_s))
        return;
    find_quantiles(&look, out->points - out->strays, quantiles);
    const double reach_s = (double)quantiles[1] - (double)quantiles[0] + params->sweep_s;
    look.low_s = wide_set((float)fmax((double)quantiles[0] - reach_s, -(double)FLT_MAX));
    look.high_s = wide_set((float)fmin((double)quantiles[1] + reach_s, (double)FLT_MAX));
    find_range(&look, out);
}

/* The whole microsecond in the middle: shifted exactly like both ends when the stamp is another one. */
static struct ndt_sweep sweep_between(float first_s, float last_s)
{
    const double first_us = (double)ndt_preprocess_microseconds(first_s, 0),
                 last_us = (double)ndt_preprocess_microseconds(last_s, 0);
    const double reference_us = floor((first_us + last_us) / 2);
    return (struct ndt_sweep){.reference_s = reference_us / 1e6 + 0.0, /* no -0 */
                              .begin_s = (double)ndt_preprocess_since_reference(first_s, (float)reference_us),
                              .end_s = (double)ndt_preprocess_since_reference(last_s, (float)reference_us)};
}

/* A turn that starts and ends at mid-sweep -+ sweep_s / 2. */
static struct ndt_sweep sweep_of_turn(const struct ndt_preprocess_params *params)
{
    const double half_s = params->sweep_s / 2, to_middle_s = rint(half_s * 1e6) / 1e6;
    struct ndt_sweep sweep = {.begin_s = -half_s, .end_s = half_s};
    if (params->sweep_stamp != NDT_STAMP_MIDDLE)
        sweep.reference_s = params->sweep_stamp == NDT_STAMP_BEGIN ? to_middle_s : -to_middle_s;
    return sweep;
}

enum ndt_status ndt_preprocess_sweep(const struct ndt_preprocess_params *params, const struct ndt_cloud *raw,
                                     struct ndt_sweep *sweep, struct ndt_error *err)
{
    enum ndt_status status = ndt_crop_check(params, raw, err);
    *sweep = (struct ndt_sweep){0};
    if (status != NDT_OK || params->deskew == NDT_DESKEW_OFF)
        return status;
    if (params->deskew != NDT_DESKEW_TIME) {
        *sweep = sweep_of_turn(params);
        return NDT_OK;
    }
    struct ndt_told_times told;
    ndt_preprocess_told_times(params, raw, NDT_PREPROCESS_TIME_LIMIT_S, &told);
    if (told.first_s <= told.last_s)
        *sweep = sweep_between(told.first_s, told.last_s);
    else if (told.points > 0)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "no point has a time within %d s of the stamp, but preprocess.deskew is 'time'",
                        NDT_PREPROCESS_TIME_LIMIT_S);
    else
        *sweep = (struct ndt_sweep){.begin_s = -params->sweep_s / 2, .end_s = params->sweep_s / 2};
    sweep->points = told.points;
    sweep->strays = told.strays;
    return NDT_OK;
}
