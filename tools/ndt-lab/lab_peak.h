/* What the machine can do at most: additions and multiplications from registers, reads from each level of memory.
 * Compiled once per CPU variant. */
#ifndef LAB_PEAK_H
#define LAB_PEAK_H

#include <stddef.h>

struct lab_peak {
    const char *name;
    double (*fused)(size_t rounds); /* floating-point operations per us; 0: the variant has no fused multiply-add */
    double (*apart)(size_t rounds); /* the same with multiplication and addition as two instructions */
    double (*read)(const float *from, size_t count, size_t rounds); /* bytes per us; count: a multiple of 128 */
};
/* As many as lab_isas counts, in the same order. */
const struct lab_peak *lab_peaks(void);

#endif
