#include "ndtd/backend_list.h"

#include <string.h>

#include "backends.h"

/* The lines of a plan, moved in under their backend. */
static void print_plan(FILE *file, const struct ndt_backend_ops *ops, const struct ndt_backend_config *config)
{
    char text[2000] = "";
    if (!ops->plan)
        return;
    ops->plan(config, text, sizeof(text));
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        fprintf(file, "           %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

void ndtd_backends_print(FILE *file, const struct ndt_backend_config *plan_for)
{
    char isas[128];
    for (size_t i = 0; ndt_backend_at(i); i++) {
        const struct ndt_backend_ops *ops = ndt_backend_at(i);
        struct ndt_error why = {""};
        const int works = ops->probe(&why) == NDT_OK;
        fprintf(file, "%-10s %s%s%s\n", ops->name, ops->about, works ? "" : "; not here: ", works ? "" : why.text);
        if (plan_for)
            print_plan(file, ops, plan_for);
    }
    ndt_cpu_variants(isas, sizeof(isas));
    fprintf(file, "CPU instruction sets (cpu.isa) that run here: %s\n", isas);
}
