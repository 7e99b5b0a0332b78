#include "web_blob.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct counted {
    struct web_blob blob; /* first: a blob is its counted */
    atomic_int references;
    uint8_t bytes[];
};

struct web_blob *web_blob_make(size_t size)
{
    struct counted *counted = malloc(sizeof(*counted) + size + 1);
    if (!counted)
        return NULL;
    counted->blob = (struct web_blob){size, counted->bytes};
    counted->bytes[size] = '\0';
    atomic_init(&counted->references, 1);
    return &counted->blob;
}

struct web_blob *web_blob_share(struct web_blob *blob)
{
    if (blob)
        atomic_fetch_add_explicit(&((struct counted *)blob)->references, 1, memory_order_relaxed);
    return blob;
}

void web_blob_drop(void *blob)
{
    struct counted *counted = blob;
    if (counted && atomic_fetch_sub_explicit(&counted->references, 1, memory_order_acq_rel) == 1)
        free(counted);
}

int web_blob_references(const struct web_blob *blob)
{
    return atomic_load(&((const struct counted *)blob)->references);
}

void web_writer_open(struct web_writer *writer)
{
    *writer = (struct web_writer){NULL, NULL, 0};
    writer->file = open_memstream(&writer->text, &writer->size);
}

struct web_blob *web_writer_finish(struct web_writer *writer)
{
    struct web_blob *blob = NULL;
    if (writer->file && fclose(writer->file) == 0)
        blob = web_blob_make(writer->size);
    if (blob && writer->size)
        memcpy(blob->data, writer->text, writer->size);
    free(writer->text);
    *writer = (struct web_writer){NULL, NULL, 0};
    return blob;
}
