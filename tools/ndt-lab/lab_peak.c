#include "lab_peak.h"

#define DECLARE(isa)                                                                                               \
    double lab_peak_fused_##isa(size_t rounds);                                                                    \
    double lab_peak_apart_##isa(size_t rounds);                                                                    \
    double lab_peak_read_##isa(const float *from, size_t count, size_t rounds);
#define ROW(isa)                                                                                                   \
    {                                                                                                              \
#isa, lab_peak_fused_##isa, lab_peak_apart_##isa, lab_peak_read_##isa                                      \
    }

#if defined(__x86_64__)
DECLARE(baseline)
DECLARE(avx2)
DECLARE(avx512)
static const struct lab_peak all[] = {ROW(baseline), ROW(avx2), ROW(avx512)};
#elif defined(__aarch64__)
DECLARE(neon)
static const struct lab_peak all[] = {ROW(neon)};
#else
DECLARE(baseline)
static const struct lab_peak all[] = {ROW(baseline)};
#endif

const struct lab_peak *lab_peaks(void)
{
    return all;
}
