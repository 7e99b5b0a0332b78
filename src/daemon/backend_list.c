#include "ndtd/backend_list.h"

#include "backends.h"

void ndtd_backends_print(FILE *file)
{
    char isas[128];
    for (size_t i = 0; ndt_backend_at(i); i++) {
        const struct ndt_backend_ops *ops = ndt_backend_at(i);
        struct ndt_error why = {""};
        const int works = ops->probe(&why) == NDT_OK;
        fprintf(file, "%-10s %s%s%s\n", ops->name, ops->about, works ? "" : "; not here: ", works ? "" : why.text);
    }
    ndt_cpu_variants(isas, sizeof(isas));
    fprintf(file, "CPU instruction sets (cpu.isa) that run here: %s\n", isas);
}
