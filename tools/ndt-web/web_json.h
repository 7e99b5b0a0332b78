/** @file
 * @brief JSON for the page: reading what a browser or a file gives, and integers that JavaScript can hold. */
#ifndef WEB_JSON_H
#define WEB_JSON_H

#include <stdio.h>

#include "ndt/status.h"
#include "ndt_proto/control_message.h"
#include "web_blob.h"

/** Whether the text is one JSON value (RFC 8259), nested at most 16 deep. NDT_ERR_FORMAT with one line. */
NDT_MUST_CHECK enum ndt_status web_json_check(const char *text, size_t size, struct ndt_error *err);

/** The value of a key of the outermost object, in JSON that web_json_check accepts: an integer, a text (cut to
 * `size`). Whether it is there with this type. */
int web_json_integer(const char *text, size_t size, const char *key, int64_t *out);
int web_json_text(const char *text, size_t size, const char *key, char *out, size_t out_size);

/** Copies JSON that web_json_check accepts. Integers beyond 2^53, which JavaScript would round, become strings of
 * their digits, except stamps (keys that end in _ns): those stay numbers, and a browser has them to 256 ns. */
void web_json_copy(FILE *file, const char *text, size_t size);

/** A wire message as a JSON object, as ndt_message_print_json writes it, with the integers of web_json_copy. NULL:
 * it cannot be decoded, or no memory; err tells. */
struct web_blob *web_json_message(const uint8_t *data, size_t size, struct ndt_error *err);

/** Reads a request to the daemon: a flat JSON object of `op` and its arguments as in SCHEMA.md; unknown keys, keys
 * that occur twice and other types are refused. The values are checked by ndt_request_encode. */
NDT_MUST_CHECK enum ndt_status web_json_request(const char *text, size_t size, struct ndt_request_message *out,
                                                struct ndt_error *err);

#endif
