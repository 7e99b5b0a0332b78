#include "ndt/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ndt_status_name(enum ndt_status status)
{
    static const char *const names[] = {"ok",    "end",         "argument", "memory", "input/output",
                                        "format", "limit", "unsupported", "device"};
    return (unsigned)status < sizeof(names) / sizeof(names[0]) ? names[status] : "unknown";
}

enum ndt_status ndt_fail(struct ndt_error *err, enum ndt_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return status;
}

enum ndt_status ndt_fail_prefix(struct ndt_error *err, enum ndt_status status, const char *format, ...)
{
    if (!err)
        return status;
    char text[sizeof(err->text)];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof(text) - 2)
        return status;
    snprintf(text + used, sizeof(text) - (size_t)used, ": %s", err->text);
    memcpy(err->text, text, sizeof(text));
    return status;
}
