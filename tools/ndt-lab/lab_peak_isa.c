/* See lab_peak.h; compiled with LAB_KIND fused (contraction allowed) and apart. */
#include "cpu/wide.h"
#include "ndt/clock.h"

#define PASTE3(a, b, c) a##b##_##c
#define NAME3(a, b, c)  PASTE3(a, b, c)
enum { CHAINS = 12 };

double NAME3(lab_peak_, LAB_KIND, LAB_ISA)(size_t rounds);
double NAME3(lab_peak_, LAB_KIND, LAB_ISA)(size_t rounds)
{
#if defined(LAB_WANTS_FMA) && !defined(__FMA__) && !defined(__aarch64__)
    (void)rounds;
    return 0;
#endif
    wide_f chain[CHAINS], a = wide_set(0.999999f), b = wide_set(1e-7f);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = wide_set((float)i);
    __asm__ volatile("" : "+m"(a), "+m"(b));
    const double start_us = ndt_clock_us();
    for (size_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++)
            chain[i] = chain[i] * a + b;
    }
    __asm__ volatile("" : : "m"(chain) : "memory");
    return 2.0 * WIDE * CHAINS * (double)rounds / (ndt_clock_us() - start_us);
}

#if !defined(LAB_WANTS_FMA)
double NAME3(lab_peak_, read, LAB_ISA)(const float *from, size_t count, size_t rounds);
double NAME3(lab_peak_, read, LAB_ISA)(const float *from, size_t count, size_t rounds)
{
    wide_i sums[8] = {{0}};
    const double start_us = ndt_clock_us();
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < count; i += 8 * WIDE)
            for (size_t k = 0; k < 8; k++)
                sums[k] |= (wide_i)wide_load(from + i + k * WIDE);
        __asm__ volatile("" : : "m"(sums) : "memory");
    }
    return 4.0 * (double)count * (double)rounds / (ndt_clock_us() - start_us);
}
#endif
