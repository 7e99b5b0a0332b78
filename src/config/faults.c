#include "ndtd/faults.h"

#include <stdarg.h>

void ndtd_faults_add(struct ndtd_faults *faults, const char *format, ...)
{
    char text[sizeof(faults->lines[0].text)];
    va_list args;
    if (faults->count++ >= NDTD_FAULTS_KEPT)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)ndt_fail(&faults->lines[faults->count - 1], NDT_ERR_ARGUMENT, "%s", text);
}

enum ndt_status ndtd_faults_status(const struct ndtd_faults *faults, struct ndt_error *err)
{
    enum { TAIL = 32 }; /* room for the count */
    const char *first = faults->lines[0].text;
    if (faults->count == 0)
        return NDT_OK;
    if (faults->count == 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s", first);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%.*s (and %zu more)", (int)sizeof(err->text) - TAIL, first,
                    faults->count - 1);
}

void ndtd_faults_print(const struct ndtd_faults *faults, FILE *file)
{
    for (size_t i = 0; i < faults->count && i < NDTD_FAULTS_KEPT; i++)
        fprintf(file, "ndtd: %s\n", faults->lines[i].text);
    if (faults->count > NDTD_FAULTS_KEPT)
        fprintf(file, "ndtd: and %zu more\n", faults->count - NDTD_FAULTS_KEPT);
}
