/* Which of the lab's compiled variants run here. */
#include "lab_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "ndt/backend.h"

#define DECLARE(isa)                                                                                               \
    lab_chunk_fn ndt_eval_chunk_lab_whole_##isa, ndt_eval_chunk_lab_unfetched_##isa,                               \
        ndt_eval_chunk_lab_apart_##isa, ndt_eval_chunk_lab_without_exp_##isa;                                      \
    lab_part_fn lab_part_##isa;
#define ROW(isa, wide)                                                                                             \
    {                                                                                                              \
#isa, wide, ndt_eval_chunk_lab_whole_##isa, ndt_eval_chunk_lab_unfetched_##isa,                            \
            ndt_eval_chunk_lab_apart_##isa, ndt_eval_chunk_lab_without_exp_##isa, lab_part_##isa                   \
    }

#if defined(__x86_64__)
DECLARE(baseline)
DECLARE(avx2)
DECLARE(avx512)
static const struct lab_isa all[] = {ROW(baseline, 4), ROW(avx2, 8), ROW(avx512, 16)};
#elif defined(__aarch64__)
DECLARE(neon)
static const struct lab_isa all[] = {ROW(neon, 4)};
#else
DECLARE(baseline)
static const struct lab_isa all[] = {ROW(baseline, 4)};
#endif

const struct lab_isa *lab_isas(size_t *count)
{
    char here[128];
    ndt_cpu_variants(here, sizeof(here)); /* from plain to best, as the table above */
    *count = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        *count += strstr(here, all[i].name) != NULL;
    return all;
}

const struct lab_isa *lab_isa_best(void)
{
    size_t count;
    const struct lab_isa *isas = lab_isas(&count);
    const char *wanted = getenv("NDT_CPU_ISA");
    for (size_t i = count; i-- > 0;)
        if (!wanted || !*wanted || strcmp(wanted, "auto") == 0 || strcmp(wanted, isas[i].name) == 0)
            return &isas[i];
    return NULL;
}
