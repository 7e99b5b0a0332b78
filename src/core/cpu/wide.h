/* Private to the CPU backend: one wide type per instruction set, and the few operations that plain
 * operators on vectors cannot say. Everything else in eval_wide.c is written once.
 *
 * Every variant performs the same float operations in the same order on each lane, without fused
 * multiply-add, so their results are bit-equal: a drive replayed on another processor gives the same
 * trajectory. (Fusing was measured: see "One result on every processor" in the README.) */
#ifndef NDT_WIDE_H
#define NDT_WIDE_H

#include <stdint.h>
#include <string.h>

#if defined(NDT_ISA_avx512) || defined(NDT_ISA_avx2)
#include <immintrin.h>
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
    return wide_select(a > b, a, b);
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

/* e^x for x <= about 0, to 2 ulp; below -80 it stays at e^-80. Range reduction by ln 2 in two parts, then the
 * polynomial of degree 7 of the Cephes library (S. Moshier). */
static inline wide_f wide_exp(wide_f x)
{
    const wide_f magic = wide_set(12582912.0f); /* 1.5 * 2^23: adding it rounds to whole numbers */
    x = wide_max(x, wide_set(-80.0f));
    const wide_f shifted = x * 1.44269504088896341f + magic;
    const wide_f n = shifted - magic;
    const wide_f r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const wide_f r2 = r * r; /* in pairs (Estrin): half as long a chain as Horner's */
    const wide_f high = (r * 1.9875691500e-4f + 1.3981999507e-3f) * r2 + (r * 8.3334519073e-3f + 4.1665795894e-2f);
    const wide_f p = (high * r2 + (r * 1.6666665459e-1f + 5.0000001201e-1f)) * r2 + (r + 1.0f);
    const wide_i exponent = ((wide_i)shifted - (wide_i)magic) << 23;
    return (wide_f)((wide_i)p + exponent);
}

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
    const wide_f a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
    const wide_f b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const wide_f c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    const wide_f d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#endif
}

/* Words 4 c .. 4 c + 3 of the records whose addresses stand in `record`: r[i] gets those of records
 * i, 4 + i, 8 + i ... in its groups of four lanes. Loads only, no gathers: a gather costs one load per
 * word, this one load per four. */
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

/* Which of a neighbour list's voxels have their mean within sqrt(r2) of the point p; their numbers go to `out`
 * in list order. Reads whole blocks of 8, `out` needs room for 16 more than are found. */
static inline uint32_t wide_within(const float *list, uint32_t padded, const float p_m[3], float r2, uint32_t *out)
{
    uint32_t found = 0;
#if defined(NDT_ISA_avx512)
    const __m512 x = _mm512_set1_ps(p_m[0]), y = _mm512_set1_ps(p_m[1]), z = _mm512_set1_ps(p_m[2]);
    for (uint32_t i = 0; i < padded; i += 16) {
        const __mmask16 there = padded - i >= 16 ? 0xffff : 0x00ff;
        const __m512 dx = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, list + i), x);
        const __m512 dy = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, list + padded + i), y);
        const __m512 dz = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, list + 2 * padded + i), z);
        const __m512 d2 =
            _mm512_add_ps(_mm512_add_ps(_mm512_mul_ps(dx, dx), _mm512_mul_ps(dy, dy)), _mm512_mul_ps(dz, dz));
        const __mmask16 near = _mm512_mask_cmp_ps_mask(there, d2, _mm512_set1_ps(r2), _CMP_LE_OQ);
        const __m512i ids = _mm512_maskz_loadu_epi32(there, list + 3 * padded + i);
        _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi32(near, ids));
        found += (uint32_t)_mm_popcnt_u32(near);
    }
#else
    const uint32_t *ids = (const uint32_t *)list + 3 * padded;
    for (uint32_t i = 0; i < padded; i += WIDE) {
        const wide_f dx = wide_load(list + i) - p_m[0];
        const wide_f dy = wide_load(list + padded + i) - p_m[1];
        const wide_f dz = wide_load(list + 2 * padded + i) - p_m[2];
        const wide_i near = ((dx * dx + dy * dy) + dz * dz) <= wide_set(r2);
        for (uint32_t k = 0; k < WIDE; k++) { /* no branch on what cannot be predicted */
            out[found] = ids[i + k];
            found += (uint32_t)-near[k];
        }
    }
#endif
    return found;
}

#endif
