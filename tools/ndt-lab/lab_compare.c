#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab.h"

/* splitmix64 */
uint64_t lab_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double lab_uniform(uint64_t *state)
{
    return (double)(lab_random(state) >> 11) * 0x1p-53;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lab_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), ascending);
    return count == 0 ? 0 : 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

void lab_print(const char *experiment, const char *what, const char *variant, const char *role, const char *unit,
               const double *samples, int count)
{
    printf("%s,%s,%s,%s,%s,", experiment, what, variant, role, unit);
    for (int i = 0; i < count; i++)
        printf("%s%.5g", i ? " " : "", samples[i]);
    printf("\n");
    fflush(stdout);
}

void lab_fact(const char *experiment, const char *what, const char *name, const char *unit, double value)
{
    lab_print(experiment, what, name, "fact", unit, &value, 1);
}

static void shuffle(int *order, int count, uint64_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        const int k = (int)(lab_random(state) % (uint64_t)(i + 1)), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
}

void lab_compare(const struct lab *lab, const struct lab_comparison *it)
{
    static double samples[LAB_MAX_VARIANTS][LAB_MAX_REPETITIONS];
    int order[LAB_MAX_VARIANTS], missing[LAB_MAX_VARIANTS] = {0};
    uint64_t state = lab->seed;
    for (int v = 0; v < it->count; v++) {
        order[v] = v;
        missing[v] = it->measure(it->context, v, 0) < 0;
    }
    for (int r = 0; r < lab->repetitions; r++) {
        shuffle(order, it->count, &state);
        for (int i = 0; i < it->count; i++)
            if (!missing[order[i]]) {
                samples[order[i]][r] = it->measure(it->context, order[i], r);
                missing[order[i]] = samples[order[i]][r] < 0;
            }
    }
    for (int v = 0; v < it->count && !missing[0]; v++)
        if (!missing[v])
            lab_print(it->experiment, it->what, it->names[v], v ? "variant" : "base", it->unit, samples[v],
                      lab->repetitions);
}
