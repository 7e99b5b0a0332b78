/* Private to the core: one vector type per instruction set, and the few operations that plain operators on vectors
 * do not provide. Code that uses them is written once.
 *
 * Every variant performs the same float operations in the same order on each lane, so their results are bit-equal:
 * a drive replayed on another processor gives the same trajectory. Multiplications and additions are fused in
 * wide_fma only, in all variants; the compiler does not contract. */
#ifndef NDT_WIDE_H
#define NDT_WIDE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(NDT_ISA_avx512) || defined(NDT_ISA_avx2)
#include <immintrin.h>
#elif defined(NDT_ISA_neon)
#include <arm_neon.h>
#endif

#if defined(NDT_ISA_avx512)
enum { WIDE = 16 };
#elif defined(NDT_ISA_avx2)
enum { WIDE = 8 };
#else
enum { WIDE = 4 };
#endif

typedef float wide_f __attribute__((vector_size(sizeof(float) * WIDE)));
typedef float quad_f __attribute__((vector_size(16)));
typedef int32_t wide_i __attribute__((vector_size(sizeof(int32_t) * WIDE)));
/* For sums that may wrap around in lanes that are not used. */
typedef uint32_t wide_u __attribute__((vector_size(sizeof(uint32_t) * WIDE)));

#if defined(__clang__) || __GNUC__ >= 12
#define NDT_HAS_SHUFFLEVECTOR /* gcc 11 does not */
#endif

static inline wide_f wide_set(float value)
{
    return value - (wide_f){0};
}

static inline wide_i wide_set_i(int32_t value)
{
    return value - (wide_i){0};
}

static inline wide_f wide_load(const float *p)
{
    wide_f v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void wide_store(float *p, wide_f v)
{
    memcpy(p, &v, sizeof(v));
}

static inline wide_i wide_load_i(const int32_t *p)
{
    wide_i v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void wide_store_i(int32_t *p, wide_i v)
{
    memcpy(p, &v, sizeof(v));
}

/* mask lanes are all ones or all zeros */
static inline wide_f wide_select(wide_i mask, wide_f yes, wide_f no)
{
    return (wide_f)(((wide_i)yes & mask) | ((wide_i)no & ~mask));
}

static inline wide_f wide_max(wide_f a, wide_f b)
{
#if defined(NDT_ISA_avx512)
    return (wide_f)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(NDT_ISA_avx2)
    return (wide_f)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return wide_select(a > b, a, b);
#endif
}

/* b where a is NaN, as fminf. */
static inline wide_f wide_min(wide_f a, wide_f b)
{
#if defined(NDT_ISA_avx512)
    return (wide_f)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(NDT_ISA_avx2)
    return (wide_f)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return wide_select(a < b, a, b);
#endif
}

static inline wide_f wide_root(wide_f v)
{
#if defined(NDT_ISA_avx512)
    return (wide_f)_mm512_sqrt_ps((__m512)v);
#elif defined(NDT_ISA_avx2)
    return (wide_f)_mm256_sqrt_ps((__m256)v);
#elif defined(NDT_ISA_neon)
    return (wide_f)vsqrtq_f32((float32x4_t)v);
#else
    for (int i = 0; i < WIDE; i++)
        v[i] = sqrtf(v[i]);
    return v;
#endif
}

static inline wide_f wide_abs(wide_f v)
{
    return (wide_f)((wide_i)v & wide_set_i(INT32_MAX));
}

static inline wide_f wide_to_float(wide_i v)
{
    return __builtin_convertvector(v, wide_f);
}

/* floor for |v| < 2^31 */
static inline wide_i wide_floor(wide_f v)
{
    const wide_i truncated = __builtin_convertvector(v, wide_i);
    return truncated + (wide_to_float(truncated) > v);
}

/* Whether a mask has any lane, or every one. */
static inline int wide_any(wide_i mask)
{
    uint64_t halves[sizeof(mask) / 8], all = 0;
    memcpy(halves, &mask, sizeof(mask));
    for (size_t i = 0; i < sizeof(mask) / 8; i++)
        all |= halves[i];
    return all != 0;
}

static inline int wide_all(wide_i mask)
{
    return !wide_any(~mask);
}

/* The mask of lanes 0 .. count - 1. */
static inline wide_i wide_first(size_t count)
{
    wide_i lane;
    for (int i = 0; i < WIDE; i++)
        lane[i] = i;
    return lane < wide_set_i((int32_t)count);
}

#if defined(NDT_ISA_avx512) || defined(NDT_ISA_avx2) || defined(NDT_ISA_neon)
/* a * b + c, rounded once. */
static inline wide_f wide_fma(wide_f a, wide_f b, wide_f c)
{
#if defined(NDT_ISA_avx512)
    return (wide_f)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(NDT_ISA_avx2)
    return (wide_f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return (wide_f)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
}
#else
typedef double pair_d __attribute__((vector_size(16)));
typedef float pair_f __attribute__((vector_size(8)));
typedef int64_t pair_l __attribute__((vector_size(16)));

static inline pair_d pair_low(wide_f v)
{
    pair_f low;
#ifdef NDT_HAS_SHUFFLEVECTOR
    low = __builtin_shufflevector(v, v, 0, 1);
#else
    memcpy(&low, &v, sizeof(low));
#endif
    return __builtin_convertvector(low, pair_d);
}

static inline pair_d pair_high(wide_f v)
{
    pair_f high;
#ifdef NDT_HAS_SHUFFLEVECTOR
    high = __builtin_shufflevector(v, v, 2, 3);
#else
    memcpy(&high, (const char *)&v + sizeof(high), sizeof(high));
#endif
    return __builtin_convertvector(high, pair_d);
}

static inline wide_f pair_join(pair_f low, pair_f high)
{
#ifdef NDT_HAS_SHUFFLEVECTOR
    return __builtin_shufflevector(low, high, 0, 1, 2, 3);
#else
    wide_f joined;
    memcpy(&joined, &low, sizeof(low));
    memcpy((char *)&joined + sizeof(low), &high, sizeof(high));
    return joined;
#endif
}

/* product + add, rounded to odd: towards zero, and a last bit of 1 wherever something was lost. */
static inline pair_d pair_add_odd(pair_d product, pair_d add)
{
    const pair_d sum = product + add, part = sum - product;
    const pair_d lost = (product - (sum - part)) + (add - part);
    const pair_l away = lost * sum < 0, inexact = lost != 0;
    return (pair_d)(((pair_l)sum + away) | (inexact & 1));
}

/* a * b + c, rounded once, for processors without FMA: the product is exact in double; the sum is rounded to odd,
 * so that rounding it again to float equals a single rounding (Boldo & Melquiond 2008). */
static inline wide_f wide_fma(wide_f a, wide_f b, wide_f c)
{
    const pair_d low = pair_add_odd(pair_low(a) * pair_low(b), pair_low(c));
    const pair_d high = pair_add_odd(pair_high(a) * pair_high(b), pair_high(c));
    return pair_join(__builtin_convertvector(low, pair_f), __builtin_convertvector(high, pair_f));
}
#endif

/* 2^x for x <= about 0, to 2e-7 of it; below -115 it stays at 2^-115. The polynomial of degree 5 is the one of
 * least relative error on [-1/2, 1/2] (Remez). */
static inline wide_f wide_exp2(wide_f x)
{
    const wide_f magic = wide_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to whole numbers */
    x = wide_max(x, wide_set(-115.0f));
    const wide_f shifted = x + magic, f = x - (shifted - magic), f2 = f * f;
    /* Estrin's scheme: half the dependency chain of Horner's */
    const wide_f low = wide_fma(f, wide_set(0.693146967f), wide_set(1.0f));
    const wide_f mid = wide_fma(f, wide_set(0.0555071327f), wide_set(0.240221197f));
    const wide_f high = wide_fma(f, wide_set(0.0013276472f), wide_set(0.00967554133f));
    const wide_f p = wide_fma(wide_fma(high, f2, mid), f2, low);
    const wide_i exponent = ((wide_i)shifted - (wide_i)magic) << 23;
    return (wide_f)((wide_i)p + exponent);
}

#if !defined(NDT_ISA_avx512) && !defined(NDT_ISA_avx2)
/* Four lanes of a, 0 to 3, and b, 4 to 7. */
#ifdef NDT_HAS_SHUFFLEVECTOR
#define WIDE_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define WIDE_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (wide_i){i, j, k, l})
#endif
#endif

/* Four words of WIDE records: r[i] holds, in each group of four lanes g, word i' = lane of record 4 g + i.
 * Afterwards r[j] holds word j of record l in lane l, once records were loaded by wide_load_quads. */
static inline void wide_transpose4(wide_f r[4])
{
#if defined(NDT_ISA_avx512)
    const __m512 a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
    const __m512 c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
    r[0] = (wide_f)_mm512_unpacklo_pd((__m512d)a, (__m512d)c);
    r[1] = (wide_f)_mm512_unpackhi_pd((__m512d)a, (__m512d)c);
    r[2] = (wide_f)_mm512_unpacklo_pd((__m512d)b, (__m512d)d);
    r[3] = (wide_f)_mm512_unpackhi_pd((__m512d)b, (__m512d)d);
#elif defined(NDT_ISA_avx2)
    const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
    r[0] = (wide_f)_mm256_unpacklo_pd((__m256d)a, (__m256d)c);
    r[1] = (wide_f)_mm256_unpackhi_pd((__m256d)a, (__m256d)c);
    r[2] = (wide_f)_mm256_unpacklo_pd((__m256d)b, (__m256d)d);
    r[3] = (wide_f)_mm256_unpackhi_pd((__m256d)b, (__m256d)d);
#else
    const wide_f a = WIDE_PICK(r[0], r[1], 0, 4, 1, 5);
    const wide_f b = WIDE_PICK(r[0], r[1], 2, 6, 3, 7);
    const wide_f c = WIDE_PICK(r[2], r[3], 0, 4, 1, 5);
    const wide_f d = WIDE_PICK(r[2], r[3], 2, 6, 3, 7);
    r[0] = WIDE_PICK(a, c, 0, 1, 4, 5);
    r[1] = WIDE_PICK(a, c, 2, 3, 6, 7);
    r[2] = WIDE_PICK(b, d, 0, 1, 4, 5);
    r[3] = WIDE_PICK(b, d, 2, 3, 6, 7);
#endif
}

/* Words 4 c .. 4 c + 3 of the records whose addresses are in `record`: r[i] gets those of records i, 4 + i, 8 + i
 * ... in its groups of four lanes. Loads only, no gathers: a gather costs one load per word, this one load per
 * four. */
static inline void wide_load_quads(const float *const record[WIDE], int c, wide_f r[4])
{
    for (int i = 0; i < 4; i++) {
#if defined(NDT_ISA_avx512)
        __m512 v = _mm512_castps128_ps512(_mm_load_ps(record[i] + 4 * c));
        v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_load_ps(record[4 + i] + 4 * c));
        v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_load_ps(record[8 + i] + 4 * c));
        v = _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_load_ps(record[12 + i] + 4 * c));
        r[i] = (wide_f)v;
#elif defined(NDT_ISA_avx2)
        const __m256 low = _mm256_castps128_ps256(_mm_load_ps(record[i] + 4 * c));
        r[i] = (wide_f)_mm256_insertf128_ps(low, _mm_load_ps(record[4 + i] + 4 * c), 1);
#else
        r[i] = wide_load(record[i] + 4 * c);
#endif
    }
    wide_transpose4(r);
}

/* 32 zeros. In a loop: gcc makes memset an instruction that takes longer than a whole list. */
static inline void wide_clear(uint32_t *out)
{
    for (int i = 0; i < 32; i += WIDE)
        wide_store_i((int32_t *)out + i, (wide_i){0});
}

/* Finds the voxels of a neighbour list whose mean is within sqrt(r2) of the point p: their numbers are written to
 * `out` in list order, followed by other numbers of the list or 0. A list has up to 27 voxels, padded to whole
 * blocks of 8; `out` has room for 32. */
static inline uint32_t wide_within(const float *list, uint32_t padded, const float p_m[3], float r2, uint32_t *out)
{
    uint32_t found = 0;
#if defined(NDT_ISA_avx512)
    const uint32_t there = _bzhi_u32(UINT32_MAX, padded);
    const __m512 x = _mm512_set1_ps(p_m[0]), y = _mm512_set1_ps(p_m[1]), z = _mm512_set1_ps(p_m[2]);
    _mm512_storeu_si512(out + 16, _mm512_setzero_si512());
    for (uint32_t i = 0; i < padded; i += 16) {
        const __mmask16 here = (__mmask16)(there >> i);
        const __m512 dx = _mm512_sub_ps(_mm512_maskz_loadu_ps(here, list + i), x);
        const __m512 dy = _mm512_sub_ps(_mm512_maskz_loadu_ps(here, list + padded + i), y);
        const __m512 dz = _mm512_sub_ps(_mm512_maskz_loadu_ps(here, list + 2 * padded + i), z);
        const __m512 d2 = _mm512_fmadd_ps(dz, dz, _mm512_fmadd_ps(dy, dy, _mm512_mul_ps(dx, dx)));
        const __mmask16 near = _mm512_mask_cmp_ps_mask(here, d2, _mm512_set1_ps(r2), _CMP_LE_OQ);
        const __m512i ids = _mm512_maskz_loadu_epi32(here, list + 3 * padded + i);
        _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(near, ids));
        found += (uint32_t)_mm_popcnt_u32(near);
    }
#else
    const uint32_t *ids = (const uint32_t *)list + 3 * padded;
    wide_clear(out);
    for (uint32_t i = 0; i < padded; i += WIDE) {
        const wide_f dx = wide_load(list + i) - p_m[0];
        const wide_f dy = wide_load(list + padded + i) - p_m[1];
        const wide_f dz = wide_load(list + 2 * padded + i) - p_m[2];
        const wide_i near = wide_fma(dz, dz, wide_fma(dy, dy, dx * dx)) <= wide_set(r2);
        for (uint32_t k = 0; k < WIDE; k++) { /* without branches: they could not be predicted */
            out[found] = ids[i + k];
            found += (uint32_t)-near[k];
        }
    }
#endif
    return found;
}

#endif
