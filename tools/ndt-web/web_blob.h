/** @file
 * @brief Bytes that several threads and connections share: counted references, never changed once shared. */
#ifndef WEB_BLOB_H
#define WEB_BLOB_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Made by web_blob_make or web_blob_close; `data` is followed by a zero byte that `size` does not count. */
struct web_blob {
    size_t size;
    uint8_t *data;
};

/** A blob of `size` bytes with one reference, filled by the caller before it is shared. NULL: no memory. */
struct web_blob *web_blob_make(size_t size);
/** Adds a reference, by any thread that holds one; NULL gives NULL. */
struct web_blob *web_blob_share(struct web_blob *blob);
/** Gives one reference back; the last one frees the blob. NULL is allowed. Also what libmicrohttpd calls. */
void web_blob_drop(void *blob);
/** Number of references; for tests. */
int web_blob_references(const struct web_blob *blob);

/** A stream whose bytes become a blob. */
struct web_writer {
    FILE *file; /**< NULL: no memory */
    char *text;
    size_t size;
};
/** Opens the stream; without memory `file` is NULL. */
void web_writer_open(struct web_writer *writer);
/** Closes it. Returns what was written, NULL without memory. */
struct web_blob *web_writer_finish(struct web_writer *writer);

#endif
