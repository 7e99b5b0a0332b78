/** @file
 * @brief ndt-ctl: one request and its reply. */
#include "ctl.h"

#include <stdarg.h>
#include <time.h>

#include "reply_view.h"

enum { POLL_MS = 50 };

struct ctl ctl = {.control = "", .timeout_ns = 5000000000};

enum ndt_status ctl_open(struct control_client **client, struct ndt_error *err)
{
    return control_open(client, ctl.control, &ctl.keys, ctl.timeout_ns, err);
}

enum ndt_status ctl_print(struct control_client *client, struct ndt_error *err)
{
    struct reply_view *view;
    size_t size;
    const uint8_t *data = control_reply(client, &size);
    if (ctl.json)
        return control_print_json(client, stdout, err);
    const enum ndt_status status = reply_view_read(&view, data, size, err);
    if (status != NDT_OK)
        return status;
    reply_view_print(view, stdout);
    reply_view_free(view);
    return NDT_OK;
}

enum ndt_status ctl_request(const struct ndt_request_message *request, struct ndt_error *err)
{
    struct control_client *client;
    enum ndt_status status = ctl_open(&client, err);
    if (status == NDT_OK)
        status = control_ask(client, request, err);
    if (status == NDT_OK)
        status = ctl_print(client, err);
    control_close(client);
    return status;
}

void ctl_say_no(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("ndt-ctl: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    ctl.is_no = 1;
}

void ctl_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
}
