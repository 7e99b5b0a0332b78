#include "ndt_proto/message.h"

#include <stdio.h>
#include <string.h>

#include "wire_reader.h"

/* Every message there is; SCHEMA.md says what is in them. */
static const struct {
    enum ndt_message_type type;
    const char *name;
} messages[] = {
    {NDT_MESSAGE_SCAN, "scan"},         {NDT_MESSAGE_INITIAL_POSE, "initial_pose"},
    {NDT_MESSAGE_ODOMETRY, "odometry"}, {NDT_MESSAGE_TRUTH, "truth"},
    {NDT_MESSAGE_RESULT, "result"},     {NDT_MESSAGE_GNSS, "gnss"},
    {NDT_MESSAGE_REQUEST, "request"},   {NDT_MESSAGE_REPLY, "reply"},
};
enum { MESSAGE_COUNT = sizeof(messages) / sizeof(messages[0]) };

const char *ndt_message_name(enum ndt_message_type type)
{
    for (size_t i = 0; i < MESSAGE_COUNT; i++)
        if (messages[i].type == type)
            return messages[i].name;
    return "unknown";
}

static enum ndt_status read_version(struct ndt_wire_reader *reader)
{
    uint64_t version;
    const enum ndt_status status = ndt_wire_read_uint(reader, UINT64_MAX, &version);
    if (status != NDT_OK)
        return ndt_fail_prefix(reader->err, status, "field 'v'");
    if (version != NDT_PROTO_VERSION)
        return ndt_fail(reader->err, NDT_ERR_UNSUPPORTED,
                        "the message has version %llu, only version %d is understood", (unsigned long long)version,
                        NDT_PROTO_VERSION);
    return NDT_OK;
}

static enum ndt_status unknown_type(const char *name, struct ndt_error *err)
{
    char known[128] = "";
    for (size_t i = 0, used = 0; i < MESSAGE_COUNT && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", messages[i].name);
    return ndt_fail(err, NDT_ERR_UNSUPPORTED, "unknown message type '%s'; there are: %s", name, known);
}

static enum ndt_status read_type(struct ndt_wire_reader *reader, enum ndt_message_type *type)
{
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = ndt_wire_read_name(reader, name, sizeof(name));
    if (status != NDT_OK)
        return ndt_fail_prefix(reader->err, status, "field 'type'");
    for (size_t i = 0; i < MESSAGE_COUNT; i++) {
        if (strcmp(messages[i].name, name) == 0) {
            *type = messages[i].type;
            return NDT_OK;
        }
    }
    return unknown_type(name, reader->err);
}

enum ndt_status ndt_message_peek(const uint8_t *data, size_t size, enum ndt_message_type *type,
                                 struct ndt_error *err)
{
    struct ndt_wire_reader reader;
    size_t pairs = 0;
    enum ndt_status status = ndt_wire_open(&reader, data, size, err);
    if (status == NDT_OK)
        status = ndt_wire_read_map(&reader, &pairs);
    int has_version = 0, has_type = 0;
    for (size_t i = 0; status == NDT_OK && i < pairs && !(has_version && has_type); i++) {
        const char *key = NULL;
        size_t length = 0;
        status = ndt_wire_read_text(&reader, NDT_PROTO_MAX_FRAME, &key, &length);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "key");
        if (length == 1 && key[0] == 'v') {
            status = read_version(&reader);
            has_version = 1;
        } else if (length == 4 && memcmp(key, "type", 4) == 0) {
            status = read_type(&reader, type);
            has_type = 1;
        } else {
            status = ndt_wire_skip(&reader);
        }
    }
    if (status == NDT_OK && !(has_version && has_type))
        return ndt_fail(err, NDT_ERR_FORMAT, "field '%s' is missing", has_version ? "type" : "v");
    return status;
}
