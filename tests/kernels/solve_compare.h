/* Whether two searches came out the same: bit for bit, or within what another way to round may change.
 *
 * The tolerance. A device may round sines, square roots and products that are added at once differently in the last
 * digit of a double. Kernels take the pose as floats (translation within a cell, sines and cosines), so the same
 * float comes out but once in some hundred thousand evaluations, and then sums have the same bits. Where one does
 * change, by an ulp at 4 m or of a sine, it stands for a pose that is 5e-7 m or 6e-8 rad beside (2e-6 m at 30 m),
 * and the next step leads as much beside. So: 5e-6 m, 5e-7 rad for poses and steps, and for sums what such a shift
 * makes of them by their own gradient and Hessian, plus 1e-5 of the score. Counts, levels, reasons have to be
 * equal. */
#ifndef SOLVE_COMPARE_H
#define SOLVE_COMPARE_H

#include "solve_host.h"

/* Where it differs, in words; empty when it does not. */
struct solve_difference {
    char text[240];
};

/* What a search answers, compared bit for bit: pose, sums, counts, reasons, weak directions, coverage, and of the
 * rows that were kept (`rows`, at most) everything but took_us. 1: equal. */
int solve_same_bits(const struct solve_result *is, const struct solve_result *wanted, int rows,
                    struct solve_difference *out);
/* The same within the tolerance above. */
int solve_close(const struct solve_result *is, const struct solve_result *wanted, int rows,
                struct solve_difference *out);
/* Sums at one place, by a float backend and in double. */
int solve_sums_close(const struct ndt_eval *is, const struct ndt_eval *wanted, struct solve_difference *out);
/* What no search may be, whatever it was asked: unfinished, not finite, with rows open. */
int solve_is_sound(const struct solve_result *is, const struct ndt_newton *start, int rows,
                   struct solve_difference *out);

#endif
