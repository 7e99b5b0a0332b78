#include "web_metrics.h"

#include <stdlib.h>

struct web_metrics {
    int unused;
};

enum ndt_status web_metrics_open(struct web_metrics **out, struct ndt_error *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory");
}

void web_metrics_close(struct web_metrics *metrics)
{
    free(metrics);
}

void web_metrics_add(struct web_metrics *metrics, const struct ndt_result_message *message)
{
    (void)metrics;
    (void)message;
}

void web_metrics_set_status(struct web_metrics *metrics, const struct reply_view *status)
{
    (void)metrics;
    (void)status;
}

void web_metrics_write(struct web_metrics *metrics, const struct web_metrics_server *server, FILE *file)
{
    (void)metrics;
    (void)server;
    (void)file;
}
