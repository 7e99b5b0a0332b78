#include "ndt/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ndt_status_name(enum ndt_status status)
{
    static const char *const names[] = {"ok",     "end",   "argument",    "memory", "input/output",
                                        "format", "limit", "unsupported", "device", "cancelled"};
    return (unsigned)status < sizeof(names) / sizeof(names[0]) ? names[status] : "unknown";
}

/* Texts may quote what a file or a message holds, and an error is one line. */
static void make_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

enum ndt_status ndt_fail(struct ndt_error *err, enum ndt_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
        make_one_line(err->text);
    }
    return status;
}

enum ndt_status ndt_fail_prefix(struct ndt_error *err, enum ndt_status status, const char *format, ...)
{
    if (!err)
        return status;
    const struct ndt_error cause = *err;
    va_list args;
    va_start(args, format);
    const int used = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    make_one_line(err->text);
    const size_t at = used < 0 ? 0 : (size_t)used < sizeof(err->text) - 3 ? (size_t)used : sizeof(err->text) - 3;
    const int room = (int)(sizeof(err->text) - at - 3);
    snprintf(err->text + at, sizeof(err->text) - at, ": %.*s", room, cause.text);
    return status;
}
