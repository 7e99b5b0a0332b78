/** @file
 * @brief Common parts of all messages: version, type, and the codec driven by a table of fields. */
#include "wire.h"

#include <stdio.h>
#include <string.h>

/* All messages; SCHEMA.md describes their contents. */
static const struct {
    enum ndt_message_type type;
    const char *name;
} messages[] = {
    {NDT_MESSAGE_SCAN, "scan"},         {NDT_MESSAGE_INITIAL_POSE, "initial_pose"},
    {NDT_MESSAGE_ODOMETRY, "odometry"}, {NDT_MESSAGE_TRUTH, "truth"},
    {NDT_MESSAGE_RESULT, "result"},     {NDT_MESSAGE_GNSS, "gnss"},
    {NDT_MESSAGE_REQUEST, "request"},   {NDT_MESSAGE_REPLY, "reply"},
    {NDT_MESSAGE_IMU, "imu"},           {NDT_MESSAGE_TRANSFORM, "transform"},
    {NDT_MESSAGE_POINTS, "points"},     {NDT_MESSAGE_POSE, "pose"},
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

static int is_key(const char *key, const char *text, size_t length)
{
    return strlen(key) == length && memcmp(key, text, length) == 0;
}

/* The head of a message: its version and type. */
struct head {
    enum ndt_message_type type;
    struct ndt_wire_reader reader; /* reader after the last pair that was read */
    size_t pairs;                  /* number of pairs in the message */
    size_t pairs_read;
    size_t first_pair; /* offset of the first pair */
};

/* Reads pairs until "v" and "type" were found. */
static enum ndt_status read_head(const uint8_t *data, size_t size, struct head *head, struct ndt_error *err)
{
    struct ndt_wire_reader *reader = &head->reader;
    int has_version = 0, has_type = 0;
    head->pairs = 0;
    enum ndt_status status = ndt_wire_open(reader, data, size, err);
    if (status == NDT_OK)
        status = ndt_wire_read_map(reader, &head->pairs);
    head->first_pair = reader->at;
    size_t i = 0;
    for (; status == NDT_OK && i < head->pairs && !(has_version && has_type); i++) {
        const char *key = NULL;
        size_t length = 0;
        status = ndt_wire_read_text(reader, NDT_PROTO_MAX_FRAME, &key, &length);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "key");
        if (is_key("v", key, length)) {
            status = read_version(reader);
            has_version = 1;
        } else if (is_key("type", key, length)) {
            status = read_type(reader, &head->type);
            has_type = 1;
        } else {
            status = ndt_wire_skip(reader);
        }
    }
    head->pairs_read = i;
    if (status == NDT_OK && !(has_version && has_type))
        return ndt_fail(err, NDT_ERR_FORMAT, "field '%s' is missing", has_version ? "type" : "v");
    return status;
}

enum ndt_status ndt_message_peek(const uint8_t *data, size_t size, enum ndt_message_type *type,
                                 struct ndt_error *err)
{
    struct head head;
    const enum ndt_status status = read_head(data, size, &head, err);
    if (status == NDT_OK)
        *type = head.type;
    return status;
}

/* Rows in the set of seen keys: "v" and "type" are rows 0 and 1. */
enum { ROW_VERSION, ROW_TYPE, ROW_FIRST, ROW_UNKNOWN = NDT_WIRE_MAX_ROWS + ROW_FIRST };

static size_t find_row(const struct ndt_wire_field *rows, size_t row_count, const char *text, size_t length)
{
    if (is_key("v", text, length))
        return ROW_VERSION;
    if (is_key("type", text, length))
        return ROW_TYPE;
    for (size_t i = 0; i < row_count; i++)
        if (is_key(rows[i].key, text, length))
            return i + ROW_FIRST;
    return ROW_UNKNOWN;
}

static enum ndt_status read_count(struct ndt_wire_reader *reader, void *value)
{
    uint64_t count;
    const enum ndt_status status = ndt_wire_read_uint(reader, INT32_MAX, &count);
    if (status == NDT_OK)
        *(int32_t *)value = (int32_t)count;
    return status;
}

static enum ndt_status read_uint32(struct ndt_wire_reader *reader, void *value)
{
    uint64_t number;
    const enum ndt_status status = ndt_wire_read_uint(reader, UINT32_MAX, &number);
    if (status == NDT_OK)
        *(uint32_t *)value = (uint32_t)number;
    return status;
}

static enum ndt_status read_stamp(struct ndt_wire_reader *reader, void *value)
{
    int64_t stamp_ns;
    enum ndt_status status = ndt_wire_read_int(reader, &stamp_ns);
    if (status == NDT_OK)
        status = ndt_wire_check_stamp(stamp_ns, reader->err);
    if (status == NDT_OK)
        *(int64_t *)value = stamp_ns;
    return status;
}

static enum ndt_status read_value(struct ndt_wire_reader *reader, const struct ndt_wire_field *row, void *message)
{
    char *value = (char *)message + row->offset;
    switch (row->type) {
    case NDT_WIRE_UINT64:
        return ndt_wire_read_uint(reader, UINT64_MAX, (uint64_t *)(void *)value);
    case NDT_WIRE_INT64:
        return ndt_wire_read_int(reader, (int64_t *)(void *)value);
    case NDT_WIRE_STAMP:
        return read_stamp(reader, value);
    case NDT_WIRE_UINT32:
        return read_uint32(reader, value);
    case NDT_WIRE_COUNT:
        return read_count(reader, value);
    case NDT_WIRE_NUMBER:
        return ndt_wire_read_number(reader, (double *)(void *)value);
    case NDT_WIRE_NUMBERS:
        return ndt_wire_read_numbers(reader, (double *)(void *)value, row->size);
    case NDT_WIRE_NAME:
        return ndt_wire_read_name(reader, value, row->size);
    case NDT_WIRE_BOOL:
        return ndt_wire_read_bool(reader, (int *)(void *)value);
    default:
        return row->read(reader, message);
    }
}

static enum ndt_status read_row(struct ndt_wire_reader *reader, const struct ndt_wire_field *row, void *message)
{
    const enum ndt_status status = read_value(reader, row, message);
    if (status != NDT_OK)
        return ndt_fail_prefix(reader->err, status, "field '%s'", row->key);
    if (row->present != NDT_WIRE_REQUIRED)
        *(int *)(void *)((char *)message + row->present) = 1;
    return NDT_OK;
}

static enum ndt_status read_pair(struct ndt_wire_reader *reader, const struct ndt_wire_field *rows,
                                 size_t row_count, uint64_t *seen, void *message)
{
    const char *key;
    size_t length;
    const size_t at = reader->at;
    const enum ndt_status status = ndt_wire_read_text(reader, NDT_PROTO_MAX_FRAME, &key, &length);
    if (status != NDT_OK)
        return ndt_fail_prefix(reader->err, status, "key");
    const size_t row = find_row(rows, row_count, key, length);
    if (row == ROW_UNKNOWN)
        return ndt_wire_skip(reader);
    if (*seen & (uint64_t)1 << row)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "field '%.*s' appears a second time at byte %zu", (int)length,
                        key, at);
    *seen |= (uint64_t)1 << row;
    return row < ROW_FIRST ? ndt_wire_skip(reader) : read_row(reader, &rows[row - ROW_FIRST], message);
}

/* The first required row that was not seen; NULL: all were seen. */
static const struct ndt_wire_field *find_missing(const struct ndt_wire_field *rows, size_t row_count, uint64_t seen)
{
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].present == NDT_WIRE_REQUIRED && !(seen & (uint64_t)1 << (i + ROW_FIRST)))
            return &rows[i];
    return NULL;
}

static enum ndt_status check_missing(const struct ndt_wire_reader *reader, const struct ndt_wire_field *rows,
                                     size_t row_count, uint64_t seen)
{
    const struct ndt_wire_field *missing = find_missing(rows, row_count, seen);
    return missing ? ndt_fail(reader->err, NDT_ERR_FORMAT, "field '%s' is missing", missing->key) : NDT_OK;
}

static enum ndt_status check_end(const struct ndt_wire_reader *reader)
{
    if (reader->at != reader->size)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "the message ends at byte %zu, but %zu more bytes follow",
                        reader->at, reader->size - reader->at);
    return NDT_OK;
}

/* Extent of a message that is decoded. */
enum extent { WHOLE_MESSAGE, UNTIL_ALL_ROWS };

static enum ndt_status read_message(struct head *head, const struct ndt_wire_field *rows, size_t row_count,
                                    void *message, enum extent extent)
{
    struct ndt_wire_reader *reader = &head->reader;
    enum ndt_status status = NDT_OK;
    uint64_t seen = 1u << ROW_VERSION | 1u << ROW_TYPE;
    size_t i = head->pairs_read;
    if (i != ROW_FIRST) { /* "v" and "type" are not first, so the skipped keys are needed */
        reader->at = head->first_pair;
        seen = 0;
        i = 0;
    }
    for (; status == NDT_OK && i < head->pairs; i++) {
        if (extent == UNTIL_ALL_ROWS && !find_missing(rows, row_count, seen))
            break;
        status = read_pair(reader, rows, row_count, &seen, message);
    }
    if (status == NDT_OK)
        status = check_missing(reader, rows, row_count, seen);
    return status == NDT_OK && extent == WHOLE_MESSAGE ? check_end(reader) : status;
}

enum ndt_status ndt_wire_read_fields(struct ndt_wire_reader *reader, const struct ndt_wire_field *rows,
                                     size_t row_count, void *values)
{
    uint64_t seen = 0;
    size_t pairs = 0;
    enum ndt_status status = ndt_wire_read_map(reader, &pairs);
    for (size_t i = 0; status == NDT_OK && i < pairs; i++)
        status = read_pair(reader, rows, row_count, &seen, values);
    return status == NDT_OK ? check_missing(reader, rows, row_count, seen) : status;
}

static enum ndt_status decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                              const struct ndt_wire_field *rows, size_t row_count, void *message,
                              enum extent extent, struct ndt_error *err)
{
    struct head head;
    enum ndt_status status = read_head(data, size, &head, err);
    if (status == NDT_OK && head.type != type)
        status = ndt_fail(err, NDT_ERR_FORMAT, "the message is of type '%s'", ndt_message_name(head.type));
    if (status == NDT_OK)
        status = read_message(&head, rows, row_count, message, extent);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "%s message", ndt_message_name(type));
}

enum ndt_status ndt_wire_decode(const uint8_t *data, size_t size, enum ndt_message_type type,
                                const struct ndt_wire_field *rows, size_t row_count, void *message,
                                struct ndt_error *err)
{
    return decode(data, size, type, rows, row_count, message, WHOLE_MESSAGE, err);
}

enum ndt_status ndt_wire_decode_head(const uint8_t *data, size_t size, enum ndt_message_type type,
                                     const struct ndt_wire_field *rows, size_t row_count, void *message,
                                     struct ndt_error *err)
{
    return decode(data, size, type, rows, row_count, message, UNTIL_ALL_ROWS, err);
}

static int is_present(const struct ndt_wire_field *row, const void *message)
{
    return row->present == NDT_WIRE_REQUIRED || *(const int *)(const void *)((const char *)message + row->present);
}

static void write_name(struct ndt_wire_writer *writer, const char *name, size_t size)
{
    size_t length = 0;
    while (length < size && name[length] >= 0x20 && name[length] <= 0x7e)
        length++;
    if (length < size && name[length] == '\0')
        ndt_wire_put_text(writer, name);
    else if (writer->status == NDT_OK)
        writer->status =
            ndt_fail(writer->err, NDT_ERR_ARGUMENT,
                     "character %zu is not printable ASCII, or the limit of %zu is passed", length, size - 1);
}

static void write_count(struct ndt_wire_writer *writer, int32_t count)
{
    if (count < 0 && writer->status == NDT_OK)
        writer->status = ndt_fail(writer->err, NDT_ERR_ARGUMENT, "%d is below 0", count);
    ndt_wire_put_int(writer, count);
}

static void write_stamp(struct ndt_wire_writer *writer, int64_t stamp_ns)
{
    if (writer->status == NDT_OK && ndt_wire_check_stamp(stamp_ns, writer->err) != NDT_OK)
        writer->status = NDT_ERR_ARGUMENT;
    ndt_wire_put_int(writer, stamp_ns);
}

static void write_value(struct ndt_wire_writer *writer, const struct ndt_wire_field *row, const void *message)
{
    const void *value = (const char *)message + row->offset;
    switch (row->type) {
    case NDT_WIRE_UINT64:
        ndt_wire_put_uint(writer, *(const uint64_t *)value);
        break;
    case NDT_WIRE_INT64:
        ndt_wire_put_int(writer, *(const int64_t *)value);
        break;
    case NDT_WIRE_STAMP:
        write_stamp(writer, *(const int64_t *)value);
        break;
    case NDT_WIRE_UINT32:
        ndt_wire_put_uint(writer, *(const uint32_t *)value);
        break;
    case NDT_WIRE_COUNT:
        write_count(writer, *(const int32_t *)value);
        break;
    case NDT_WIRE_NUMBER:
        ndt_wire_put_number(writer, *(const double *)value);
        break;
    case NDT_WIRE_NUMBERS:
        ndt_wire_put_numbers(writer, value, row->size);
        break;
    case NDT_WIRE_NAME:
        write_name(writer, value, row->size);
        break;
    case NDT_WIRE_BOOL:
        ndt_wire_put_bool(writer, *(const int *)value);
        break;
    default:
        row->write(writer, message);
    }
}

static void write_row(struct ndt_wire_writer *writer, const struct ndt_wire_field *row, const void *message)
{
    if (writer->status != NDT_OK || !is_present(row, message))
        return;
    ndt_wire_put_text(writer, row->key);
    write_value(writer, row, message);
    if (writer->status != NDT_OK)
        (void)ndt_fail_prefix(writer->err, writer->status, "field '%s'", row->key);
}

static size_t count_pairs(const struct ndt_wire_field *rows, size_t row_count, const void *message)
{
    size_t pairs = 0;
    for (size_t i = 0; i < row_count; i++)
        pairs += is_present(&rows[i], message) ? 1 : 0;
    return pairs;
}

void ndt_wire_put_fields(struct ndt_wire_writer *writer, const struct ndt_wire_field *rows, size_t row_count,
                         const void *values)
{
    ndt_wire_put_map(writer, count_pairs(rows, row_count, values));
    for (size_t i = 0; i < row_count; i++)
        write_row(writer, &rows[i], values);
}

enum ndt_status ndt_wire_encode(struct ndt_buffer *frame, enum ndt_message_type type,
                                const struct ndt_wire_field *rows, size_t row_count, const void *message,
                                struct ndt_error *err)
{
    struct ndt_wire_writer writer;
    ndt_wire_begin(&writer, frame, err);
    ndt_wire_put_map(&writer, ROW_FIRST + count_pairs(rows, row_count, message));
    ndt_wire_put_text(&writer, "v");
    ndt_wire_put_uint(&writer, NDT_PROTO_VERSION);
    ndt_wire_put_text(&writer, "type");
    ndt_wire_put_text(&writer, ndt_message_name(type));
    for (size_t i = 0; i < row_count; i++)
        write_row(&writer, &rows[i], message);
    const enum ndt_status status = ndt_wire_end(&writer);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "%s message", ndt_message_name(type));
}
