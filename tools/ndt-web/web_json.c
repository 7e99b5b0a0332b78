#include "web_json.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_NUMBER = 64 };

struct cursor {
    const char *begin, *at, *end;
    struct ndt_error *err;
};

static enum ndt_status fail(const struct cursor *cursor, const char *expected)
{
    return ndt_fail(cursor->err, NDT_ERR_FORMAT, "JSON: byte %zu: expected %s",
                    (size_t)(cursor->at - cursor->begin), expected);
}

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && memchr(" \t\r\n", *cursor->at, 4))
        cursor->at++;
}

/* Skips space and then the character, if it is the next one. */
static int takes(struct cursor *cursor, char c)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != c)
        return 0;
    cursor->at++;
    return 1;
}

/* ---- values ---- */

/* The character behind a backslash; 0: none. \u is read for ASCII only, other characters become '?'. */
static char read_escape(struct cursor *cursor)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (cursor->at == cursor->end)
        return 0;
    const char c = *cursor->at++;
    const char *known = c ? strchr(names, c) : NULL;
    if (known)
        return values[known - names];
    if (c != 'u' || cursor->end - cursor->at < 4)
        return 0;
    char digits[5] = {cursor->at[0], cursor->at[1], cursor->at[2], cursor->at[3], 0};
    if (strspn(digits, "0123456789abcdefABCDEF") != 4)
        return 0;
    cursor->at += 4;
    const long code = strtol(digits, NULL, 16);
    return (char)(code > 0 && code < 0x80 ? code : '?');
}

/* out: its text, cut to `size` with the final zero; NULL with size 0: skipped. */
static enum ndt_status read_string(struct cursor *cursor, char *out, size_t size, int *is_cut)
{
    size_t used = 0;
    if (!takes(cursor, '"'))
        return fail(cursor, "a string");
    while (cursor->at < cursor->end && *cursor->at != '"') {
        char c = *cursor->at++;
        if ((unsigned char)c < 0x20)
            return fail(cursor, "no control character in a string");
        if (c == '\\' && !(c = read_escape(cursor)))
            return fail(cursor, "an escape such as \\n or \\u0020");
        if (used + 1 < size)
            out[used] = c;
        used++;
    }
    if (cursor->at == cursor->end)
        return fail(cursor, "the end of a string");
    cursor->at++;
    if (size)
        out[used < size ? used : size - 1] = '\0';
    if (is_cut)
        *is_cut = used >= size;
    return NDT_OK;
}

static size_t count_digits(const struct cursor *cursor)
{
    size_t count = 0;
    while (cursor->at + count < cursor->end && isdigit((unsigned char)cursor->at[count]))
        count++;
    return count;
}

/* Moves behind a number; `is_whole` tells that it has neither fraction nor exponent. */
static int skip_number(struct cursor *cursor, int *is_whole)
{
    *is_whole = 1;
    if (cursor->at < cursor->end && *cursor->at == '-')
        cursor->at++;
    const size_t digits = count_digits(cursor);
    if (digits == 0 || (digits > 1 && *cursor->at == '0'))
        return 0;
    cursor->at += digits;
    if (cursor->at < cursor->end && *cursor->at == '.') {
        cursor->at++;
        *is_whole = 0;
        const size_t fraction = count_digits(cursor);
        if (fraction == 0)
            return 0;
        cursor->at += fraction;
    }
    if (cursor->at < cursor->end && (*cursor->at == 'e' || *cursor->at == 'E')) {
        cursor->at++;
        *is_whole = 0;
        if (cursor->at < cursor->end && (*cursor->at == '+' || *cursor->at == '-'))
            cursor->at++;
        const size_t exponent = count_digits(cursor);
        if (exponent == 0)
            return 0;
        cursor->at += exponent;
    }
    return 1;
}

static enum ndt_status read_number(struct cursor *cursor, double *out)
{
    char text[MAX_NUMBER];
    int is_whole;
    skip_space(cursor);
    const char *begin = cursor->at;
    if (!skip_number(cursor, &is_whole))
        return fail(cursor, "a number");
    const size_t length = (size_t)(cursor->at - begin);
    if (length >= sizeof(text))
        return fail(cursor, "a number of at most 63 characters");
    memcpy(text, begin, length);
    text[length] = '\0';
    *out = strtod(text, NULL);
    return isfinite(*out) ? NDT_OK : fail(cursor, "a number below 1.8e308");
}

static int takes_word(struct cursor *cursor, const char *word)
{
    const size_t length = strlen(word);
    skip_space(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return 0;
    cursor->at += length;
    return 1;
}

/* Calls itself for what arrays and objects hold, at most MAX_DEPTH deep. */
static enum ndt_status check_value(struct cursor *cursor, int depth)
{
    int is_whole;
    skip_space(cursor);
    const char first = (char)(cursor->at < cursor->end ? *cursor->at : 0);
    if (first == '"')
        return read_string(cursor, NULL, 0, NULL);
    if (first == '-' || isdigit((unsigned char)first))
        return skip_number(cursor, &is_whole) ? NDT_OK : fail(cursor, "a number");
    if (first != '[' && first != '{')
        return takes_word(cursor, "true") || takes_word(cursor, "false") || takes_word(cursor, "null")
                   ? NDT_OK
                   : fail(cursor, "a value");
    const char last = (char)(first == '[' ? ']' : '}');
    if (depth == MAX_DEPTH)
        return fail(cursor, "at most 16 levels");
    cursor->at++;
    if (takes(cursor, last))
        return NDT_OK;
    do {
        if (first == '{' && (read_string(cursor, NULL, 0, NULL) != NDT_OK || !takes(cursor, ':')))
            return fail(cursor, "\"key\":");
        const enum ndt_status status = check_value(cursor, depth + 1);
        if (status != NDT_OK)
            return status;
    } while (takes(cursor, ','));
    return takes(cursor, last) ? NDT_OK : fail(cursor, first == '[' ? ", or ]" : ", or }");
}

enum ndt_status web_json_check(const char *text, size_t size, struct ndt_error *err)
{
    struct cursor cursor = {text, text, text + size, err};
    const enum ndt_status status = check_value(&cursor, 0);
    if (status != NDT_OK)
        return status;
    skip_space(&cursor);
    return cursor.at == cursor.end ? NDT_OK : fail(&cursor, "nothing behind the value");
}

/* ---- values by their key ---- */

/* Moves to the value of a key of the outermost object. */
static int find_value(struct cursor *cursor, const char *wanted)
{
    char key[64];
    if (!takes(cursor, '{') || takes(cursor, '}'))
        return 0;
    do {
        if (read_string(cursor, key, sizeof(key), NULL) != NDT_OK || !takes(cursor, ':'))
            return 0;
        skip_space(cursor);
        if (strcmp(key, wanted) == 0)
            return 1;
        if (check_value(cursor, 0) != NDT_OK)
            return 0;
    } while (takes(cursor, ','));
    return 0;
}

int web_json_integer(const char *text, size_t size, const char *key, int64_t *out)
{
    struct cursor cursor = {text, text, text + size, NULL};
    char digits[24] = "";
    int is_whole;
    if (!find_value(&cursor, key))
        return 0;
    const char *begin = cursor.at;
    if (!skip_number(&cursor, &is_whole) || !is_whole || (size_t)(cursor.at - begin) >= sizeof(digits))
        return 0;
    memcpy(digits, begin, (size_t)(cursor.at - begin));
    *out = strtoll(digits, NULL, 10);
    return 1;
}

int web_json_text(const char *text, size_t size, const char *key, char *out, size_t out_size)
{
    struct cursor cursor = {text, text, text + size, NULL};
    return find_value(&cursor, key) && cursor.at < cursor.end && *cursor.at == '"' &&
           read_string(&cursor, out, out_size, NULL) == NDT_OK;
}

/* ---- integers ---- */

static int is_large(const char *digits, size_t length)
{
    static const char limit[] = "9007199254740992"; /* 2^53 */
    return length > sizeof(limit) - 1 || (length == sizeof(limit) - 1 && memcmp(digits, limit, length) > 0);
}

/* Whether the key that ends at `end` (its quote) is that of a stamp. */
static int is_stamp(const char *begin, const char *end)
{
    return end - begin >= 4 && memcmp(end - 3, "_ns", 3) == 0;
}

void web_json_copy(FILE *file, const char *text, size_t size)
{
    struct cursor cursor = {text, text, text + size, NULL};
    int keeps = 0, is_whole; /* keeps: the last key is that of a stamp */
    while (cursor.at < cursor.end) {
        const char *begin = cursor.at;
        if (*begin == '"') {
            if (read_string(&cursor, NULL, 0, NULL) != NDT_OK)
                return;
            if (cursor.at < cursor.end && *cursor.at == ':')
                keeps = is_stamp(begin, cursor.at - 1);
        } else if (*begin == '-' || isdigit((unsigned char)*begin)) {
            if (!skip_number(&cursor, &is_whole))
                return;
            const size_t sign = *begin == '-';
            const int quotes = is_whole && !keeps && is_large(begin + sign, (size_t)(cursor.at - begin) - sign);
            if (quotes)
                fprintf(file, "\"%.*s\"", (int)(cursor.at - begin), begin);
            if (quotes)
                continue;
        } else
            cursor.at++;
        fwrite(begin, 1, (size_t)(cursor.at - begin), file);
    }
}

struct web_blob *web_json_message(const uint8_t *data, size_t size, struct ndt_error *err)
{
    struct web_writer plain, safe;
    struct web_blob *json = NULL;
    enum ndt_status status = NDT_ERR_MEMORY;
    web_writer_open(&plain);
    if (plain.file) {
        fputc('{', plain.file);
        status = ndt_message_print_json(plain.file, data, size, err);
        fputc('}', plain.file);
    }
    struct web_blob *text = web_writer_finish(&plain);
    if (status == NDT_OK && text) {
        web_writer_open(&safe);
        if (safe.file)
            web_json_copy(safe.file, (const char *)text->data, text->size);
        json = web_writer_finish(&safe);
    }
    web_blob_drop(text);
    if (!json && (status == NDT_OK || status == NDT_ERR_MEMORY))
        (void)ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    return json;
}

/* ---- requests ---- */

enum kind { OPERATION, TEXT, NUMBERS, STAMP, FLAG };
struct row {
    const char *key;
    enum kind kind;
    size_t at, size; /* offset and size of the member; NUMBERS: their number; 1 is a plain number */
    size_t has_at;   /* offset of an int that becomes 1; 0: none */
};

#define AT(member) offsetof(struct ndt_request_message, member)
static const struct row rows[] = {
    {"op", OPERATION, AT(op), 0, 0},
    {"path", TEXT, AT(path), NDT_PROTO_MAX_PATH + 1, 0},
    {"stamp_ns", STAMP, AT(pose.stamp_ns), 0, 0},
    {"frame_id", TEXT, AT(pose.frame_id), NDT_PROTO_MAX_NAME + 1, 0},
    {"pose", NUMBERS, AT(pose.pose), 7, AT(pose.has_pose)},
    {"twist", NUMBERS, AT(pose.twist), 6, AT(pose.has_twist)},
    {"covariance", NUMBERS, AT(pose.covariance), 36, AT(pose.has_covariance)},
    {"position", NUMBERS, AT(hint.position_m), 3, AT(hint.has_position)},
    {"deviation", NUMBERS, AT(hint.deviation_m), 3, AT(hint.has_deviation)},
    {"heading", NUMBERS, AT(hint.heading_rad), 1, AT(hint.has_heading)},
    {"heading_deviation", NUMBERS, AT(hint.heading_deviation_rad), 1, AT(hint.has_heading_deviation)},
    {"apply", FLAG, AT(hint.apply), 0, 0},
};
#undef AT
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static enum ndt_status read_numbers(struct cursor *cursor, double *out, size_t count)
{
    if (count > 1 && !takes(cursor, '['))
        return fail(cursor, "an array of numbers");
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !takes(cursor, ','))
            return ndt_fail(cursor->err, NDT_ERR_FORMAT, "%zu numbers, %zu are expected", i, count);
        const enum ndt_status status = read_number(cursor, out + i);
        if (status != NDT_OK)
            return status;
    }
    return count == 1 || takes(cursor, ']') ? NDT_OK : fail(cursor, "the end of the array");
}

static enum ndt_status read_operation(struct cursor *cursor, enum ndt_operation *out)
{
    char name[NDT_PROTO_MAX_NAME + 1];
    const enum ndt_status status = read_string(cursor, name, sizeof(name), NULL);
    for (int i = 0; status == NDT_OK && i < NDT_OP_COUNT; i++) {
        if (strcmp(name, ndt_operation_name((enum ndt_operation)i)) == 0) {
            *out = (enum ndt_operation)i;
            return NDT_OK;
        }
    }
    return status != NDT_OK ? status : ndt_fail(cursor->err, NDT_ERR_FORMAT, "'%s' is not an operation", name);
}

/* A number or, because JavaScript would round it, a string of digits. */
static enum ndt_status read_stamp(struct cursor *cursor, int64_t *out)
{
    char text[24];
    double value = 0;
    int is_cut = 0;
    char *end = NULL;
    skip_space(cursor);
    if (cursor->at < cursor->end && *cursor->at != '"') {
        const enum ndt_status status = read_number(cursor, &value);
        if (status != NDT_OK)
            return status;
        if (!(fabs(value) < 9.2e18))
            return fail(cursor, "a stamp below 9.2e18 ns");
        *out = (int64_t)value;
        return NDT_OK;
    }
    const enum ndt_status status = read_string(cursor, text, sizeof(text), &is_cut);
    if (status != NDT_OK)
        return status;
    *out = strtoll(text, &end, 10);
    return is_cut || end == text || *end || text[strspn(text, "-0123456789")] ? fail(cursor, "a stamp") : NDT_OK;
}

static enum ndt_status read_member(struct cursor *cursor, const struct row *row, struct ndt_request_message *out)
{
    char *member = (char *)out + row->at;
    int is_cut = 0;
    enum ndt_status status = NDT_OK;
    switch (row->kind) {
    case OPERATION:
        status = read_operation(cursor, (enum ndt_operation *)(void *)member);
        break;
    case TEXT:
        status = read_string(cursor, member, row->size, &is_cut);
        if (status == NDT_OK && is_cut)
            status = ndt_fail(cursor->err, NDT_ERR_LIMIT, "more than %zu bytes", row->size - 1);
        break;
    case NUMBERS:
        status = read_numbers(cursor, (double *)(void *)member, row->size);
        break;
    case STAMP:
        status = read_stamp(cursor, (int64_t *)(void *)member);
        break;
    case FLAG:
        *(int *)(void *)member = takes_word(cursor, "true");
        if (!*(int *)(void *)member && !takes_word(cursor, "false"))
            status = fail(cursor, "true or false");
        break;
    }
    if (row->has_at)
        *(int *)(void *)((char *)out + row->has_at) = 1;
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(cursor->err, status, "'%s'", row->key);
}

enum ndt_status web_json_request(const char *text, size_t size, struct ndt_request_message *out,
                                 struct ndt_error *err)
{
    struct cursor cursor = {text, text, text + size, err};
    struct ndt_request_message request = {.hint.apply = 1, .pose.frame_id = "map"};
    int seen[ROW_COUNT] = {0};
    enum ndt_status status = web_json_check(text, size, err);
    if (status != NDT_OK)
        return status;
    if (!takes(&cursor, '{'))
        return fail(&cursor, "an object");
    if (takes(&cursor, '}'))
        return ndt_fail(err, NDT_ERR_FORMAT, "'op' is missing");
    do {
        char key[32];
        size_t i = 0;
        status = read_string(&cursor, key, sizeof(key), NULL);
        while (status == NDT_OK && i < ROW_COUNT && strcmp(rows[i].key, key) != 0)
            i++;
        if (status != NDT_OK || !takes(&cursor, ':'))
            return fail(&cursor, "\"key\":");
        if (i == ROW_COUNT || seen[i]++)
            return ndt_fail(err, NDT_ERR_FORMAT, "'%s' %s", key,
                            i == ROW_COUNT ? "is not an argument" : "occurs twice");
        status = read_member(&cursor, &rows[i], &request);
        if (status != NDT_OK)
            return status;
    } while (takes(&cursor, ','));
    if (!seen[0])
        return ndt_fail(err, NDT_ERR_FORMAT, "'op' is missing");
    *out = request;
    return NDT_OK;
}
