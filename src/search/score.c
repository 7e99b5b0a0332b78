/* The dense score in plain C, and the choice of a variant. */
#include "score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/backend.h"
#include "ndt_search/search.h"

void ndt_score_unit_plain(const uint8_t *cells, ptrdiff_t stride, const struct ndt_score_points *points,
                          const uint8_t *allowed, ptrdiff_t allowed_stride, uint8_t sums[NDT_UNIT_CELLS],
                          uint8_t peaks[NDT_UNIT_BLOCKS])
{
    memset(peaks, 0, NDT_UNIT_BLOCKS);
    for (int y = 0; y < NDT_UNIT_Y; y++)
        for (int x = 0; x < NDT_UNIT_X; x++) {
            uint8_t sum = 0, *peak = &peaks[x / NDT_BLOCK];
            for (uint32_t i = 0; i < points->count; i++)
                sum = (uint8_t)(sum + ((cells[y * stride + x + points->offset[i]] & points->mask[i]) != 0));
            sum = allowed[y * allowed_stride + x] ? sum : 0;
            sums[y * NDT_UNIT_X + x] = sum;
            *peak = sum > *peak ? sum : *peak;
        }
}

/* Variants, best first. */
static const struct {
    const char *name;
    ndt_score_unit *unit;
} variants[] = {
#if defined(NDT_HAVE_avx512)
    {"avx512", ndt_score_unit_avx512},
#endif
#if defined(NDT_HAVE_avx2)
    {"avx2", ndt_score_unit_avx2},
#endif
#if defined(NDT_HAVE_neon)
    {"neon", ndt_score_unit_neon},
#endif
#if defined(NDT_HAVE_baseline)
    {"baseline", ndt_score_unit_baseline},
#endif
    {"plain", ndt_score_unit_plain},
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

/* Whether a variant runs here, as the core knows. */
static int runs_here(const char *name)
{
    char here[128], *rest = here;
    if (strcmp(name, "plain") == 0)
        return 1;
    ndt_cpu_variants(here, sizeof(here));
    for (const char *word = strtok_r(here, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (strcmp(word, name) == 0)
            return 1;
    return 0;
}

void ndt_search_variants(char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = VARIANTS; i-- > 0;)
        if (runs_here(variants[i].name)) {
            const size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", used ? "," : "", variants[i].name);
        }
}

enum ndt_status ndt_score_choose(ndt_score_unit **out, const char *isa, struct ndt_error *err)
{
    if (!isa || strcmp(isa, "auto") == 0)
        isa = getenv("NDT_CPU_ISA");
    const int any = !isa || isa[0] == '\0' || strcmp(isa, "auto") == 0;
    for (size_t i = 0; i < VARIANTS; i++)
        if ((any || strcmp(isa, variants[i].name) == 0) && runs_here(variants[i].name)) {
            *out = variants[i].unit;
            return NDT_OK;
        }
    char names[128];
    ndt_search_variants(names, sizeof(names));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "CPU variant '%s' does not run here; there are: auto,%s", isa, names);
}

const char *ndt_score_name(ndt_score_unit *unit)
{
    size_t i = 0;
    while (i < VARIANTS - 1 && variants[i].unit != unit)
        i++;
    return variants[i].name;
}
