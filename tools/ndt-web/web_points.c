#include "web_points.h"

#include <inttypes.h>

#include "web_json.h"
#include "web_scans.h"

/* Bytes of a message: of a point at most, and of everything else. Events wait in the queues of readers. */
enum { POINT_MAX_BYTES = 64, REST_MAX_BYTES = 131072 };

void web_points_open(struct web_points *points)
{
    ndt_cloud_init(&points->cloud);
}

void web_points_close(struct web_points *points)
{
    ndt_cloud_free(&points->cloud);
}

/* The message without its points; their number is that of the packed ones. */
static struct web_blob *make_event(const uint8_t *data, size_t size, uint32_t count, struct ndt_error *err)
{
    struct web_writer plain, safe;
    struct web_blob *event = NULL;
    enum ndt_status status = NDT_OK;
    web_writer_open(&plain);
    if (plain.file) {
        fprintf(plain.file, "{\"count\":%" PRIu32 ",", count);
        status = ndt_points_print_json(plain.file, data, size, err);
        fputc('}', plain.file);
    }
    struct web_blob *text = web_writer_finish(&plain);
    if (text && status == NDT_OK) {
        web_writer_open(&safe);
        if (safe.file)
            web_json_copy(safe.file, (const char *)text->data, text->size);
        event = web_writer_finish(&safe);
    }
    web_blob_drop(text);
    return event;
}

enum ndt_status web_points_read(struct web_points *points, const uint8_t *data, size_t size, size_t most,
                                struct web_blob **packed, struct web_blob **event, struct ndt_error *err)
{
    const enum ndt_status status = ndt_points_decode(data, size, &points->message, &points->cloud, err);
    if (status != NDT_OK)
        return status;
    if (size > POINT_MAX_BYTES * points->cloud.count + REST_MAX_BYTES)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d bytes besides the points", REST_MAX_BYTES);
    struct web_blob *made = web_scan_pack(points->message.seq, points->message.stamp_ns, &points->cloud, most);
    struct web_blob *told = made && event ? make_event(data, size, web_scan_count(made), err) : NULL;
    if (!made || (event && !told)) {
        web_blob_drop(made);
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    }
    if (event)
        *event = told;
    if (packed)
        *packed = made;
    else
        web_blob_drop(made);
    return NDT_OK;
}
