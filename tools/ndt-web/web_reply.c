#include "web_reply.h"

#include <stdarg.h>
#include <string.h>

static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Server", "ndt-web"},
};

enum MHD_Result web_reply(struct web_request *request, unsigned status, const char *type, const char *caching,
                          struct MHD_Response *response)
{
    if (!response)
        return MHD_NO; /* no memory: the connection ends */
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, caching ? caching : "no-store");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->is_control ? "POST" : "GET, HEAD");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (request->ends_connection)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    request->status = status;
    const enum MHD_Result sent = MHD_queue_response(request->connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

enum MHD_Result web_reply_blob(struct web_request *request, unsigned status, const char *type,
                               struct web_blob *blob)
{
    if (!blob)
        return web_reply_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory");
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback_cls(blob->size, blob->data, web_blob_drop, blob);
    if (!response)
        web_blob_drop(blob);
    else
        request->bytes = blob->size;
    return web_reply(request, status, type, NULL, response);
}

enum MHD_Result web_reply_error(struct web_request *request, unsigned status, const char *format, ...)
{
    char text[512], json[1100] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    FILE *file = fmemopen(json, sizeof(json), "w");
    if (!file)
        return MHD_NO;
    fputs("{\"error\":\"", file);
    for (const char *at = text; *at; at++) {
        const char c = (char)(*at < 0x20 || *at > 0x7e ? '?' : *at);
        fprintf(file, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    fputs("\"}\n", file);
    fclose(file);
    request->bytes = strlen(json);
    return web_reply(request, status, "application/json", NULL,
                     MHD_create_response_from_buffer(strlen(json), json, MHD_RESPMEM_MUST_COPY));
}

const char *web_header(const struct web_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *web_parameter(const struct web_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}
