#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt_io/input_file.h"
#include "number_text.h"

enum ndt_status ndt_input_open(struct ndt_input *out, const char *path, struct ndt_error *err)
{
    *out = (struct ndt_input){.path = path};
    return ndt_input_file_open(&out->fd, &out->size, path, err);
}

void ndt_input_close(struct ndt_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
}

/* Bytes per read, some milliseconds, after which the reading can be cancelled. */
#define READ_SIZE ((size_t)8 << 20)

enum ndt_status ndt_input_read(const struct ndt_input *input, uint64_t offset, void *buffer, size_t size,
                               struct ndt_error *err)
{
    size_t done = 0;
    while (done < size) {
        enum ndt_status status = ndt_progress_check(input->progress, err);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "%s", input->path);
        const size_t part = size - done < READ_SIZE ? size - done : READ_SIZE;
        const ssize_t got = pread(input->fd, (char *)buffer + done, part, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ndt_fail(err, NDT_ERR_IO, "%s: cannot read at byte %" PRIu64 ": %s", input->path, offset + done,
                            strerror(errno));
        if (got == 0)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends at byte %" PRIu64 ", %zu bytes too early", input->path,
                            offset + done, size - done);
        done += (size_t)got;
        ndt_progress_set(input->progress, NDT_PROGRESS_BYTES, offset + done);
    }
    return NDT_OK;
}

/* ---- lines ---- */

enum { BUFFER_SIZE = 262144 };

enum ndt_status ndt_line_reader_open(struct ndt_line_reader *out, const struct ndt_input *input, uint64_t offset,
                                     size_t lines_before, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->input = input;
    out->offset = offset;
    out->number = lines_before;
    out->buffer = malloc(BUFFER_SIZE);
    if (!out->buffer)
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory for a read buffer", input->path);
    return NDT_OK;
}

void ndt_line_reader_close(struct ndt_line_reader *reader)
{
    free(reader->buffer);
    memset(reader, 0, sizeof(*reader));
}

/* Moves the rest of the buffer to its begin and reads on. *at_end: the buffer now holds the rest of the file. */
static enum ndt_status refill(struct ndt_line_reader *reader, int *at_end, struct ndt_error *err)
{
    const size_t kept = reader->end - reader->begin;
    const uint64_t file_at = reader->offset + kept;
    const uint64_t left = reader->input->size > file_at ? reader->input->size - file_at : 0;
    const size_t room = BUFFER_SIZE - kept;
    const size_t size = left < room ? (size_t)left : room;
    memmove(reader->buffer, reader->buffer + reader->begin, kept);
    reader->begin = 0;
    reader->end = kept + size;
    *at_end = size == left;
    return ndt_input_read(reader->input, file_at, reader->buffer + kept, size, err);
}

enum ndt_status ndt_line_next(struct ndt_line_reader *reader, const char **line, const char **line_end,
                              struct ndt_error *err)
{
    int at_end = 0;
    char *newline = memchr(reader->buffer + reader->begin, '\n', reader->end - reader->begin);
    if (!newline) {
        enum ndt_status status = refill(reader, &at_end, err);
        if (status != NDT_OK)
            return status;
        newline = memchr(reader->buffer, '\n', reader->end);
    }
    size_t left = reader->end - reader->begin;
    if (!newline && at_end && left == 0)
        return NDT_END;
    const char *begin = reader->buffer + reader->begin;
    const char *stop = newline ? newline : begin + left;
    reader->number++;
    if ((size_t)(stop - begin) > NDT_LINE_MAX)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu is longer than the limit of %zu bytes",
                        reader->input->path, reader->number, NDT_LINE_MAX);
    const size_t used = (size_t)(stop - begin) + (newline ? 1 : 0);
    reader->begin += used;
    reader->offset += used;
    *line = begin;
    *line_end = stop > begin && stop[-1] == '\r' ? stop - 1 : stop;
    return NDT_OK;
}

/* ---- headers ---- */

static enum ndt_status next_entry(struct ndt_line_reader *reader, struct ndt_entry *out, struct ndt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->path = reader->input->path;
    enum ndt_status status = ndt_line_next(reader, &out->at, &out->end, err);
    if (status != NDT_OK)
        return status;
    out->number = reader->number;
    if (!ndt_text_word(&out->at, out->end, &out->key, &out->key_length))
        out->key_length = 0;
    return NDT_OK;
}

enum ndt_status ndt_entry_fail(const struct ndt_entry *entry, const char *what, struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: %s", entry->path, entry->number, what);
}

enum ndt_status ndt_entry_amount(struct ndt_entry *entry, uint64_t *out, struct ndt_error *err)
{
    int64_t value;
    if (!ndt_text_whole(&entry->at, entry->end, &value) || value < 0 || !ndt_text_done(entry->at, entry->end))
        return ndt_entry_fail(entry, "a count must be one integer in 0 .. 2^63 - 1", err);
    *out = (uint64_t)value;
    return NDT_OK;
}

int ndt_entry_word(struct ndt_entry *entry, char word[NDT_WORD_SIZE])
{
    const char *begin;
    size_t length;
    if (!ndt_text_word(&entry->at, entry->end, &begin, &length) || length >= NDT_WORD_SIZE ||
        memchr(begin, '\0', length))
        return 0;
    memcpy(word, begin, length);
    word[length] = '\0';
    return 1;
}

static const struct ndt_header_key *find_key(const struct ndt_header_syntax *syntax, const struct ndt_entry *entry)
{
    for (size_t i = 0; i < syntax->key_count; i++)
        if (ndt_text_is(entry->key, entry->key_length, syntax->keys[i].name))
            return &syntax->keys[i];
    return NULL;
}

static enum ndt_status parse_entry(const struct ndt_header_syntax *syntax, void *header, struct ndt_entry *entry,
                                   struct ndt_error *err)
{
    if (entry->number == 1 && syntax->first)
        return ndt_text_is(entry->key, entry->key_length, syntax->first)
                   ? NDT_OK
                   : ndt_fail(err, NDT_ERR_FORMAT, "%s: line 1: a %s file begins with '%s'", entry->path,
                              syntax->format, syntax->first);
    if (entry->key_length == 0 || (syntax->comment && entry->key[0] == syntax->comment))
        return NDT_OK;
    const struct ndt_header_key *key = find_key(syntax, entry);
    if (key)
        return key->parse(header, entry, err);
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: line %zu: not a line of a %s header", entry->path, entry->number,
                    syntax->format);
}

static enum ndt_status read_entries(const struct ndt_header_syntax *syntax, struct ndt_line_reader *reader,
                                    void *header, struct ndt_error *err)
{
    for (;;) {
        struct ndt_entry entry;
        enum ndt_status status = next_entry(reader, &entry, err);
        if (status == NDT_END)
            return ndt_fail(err, NDT_ERR_FORMAT, "%s: ends after line %zu without a line '%s'", entry.path,
                            reader->number, syntax->last);
        if (status == NDT_OK)
            status = parse_entry(syntax, header, &entry, err);
        if (status != NDT_OK || ndt_text_is(entry.key, entry.key_length, syntax->last))
            return status;
    }
}

enum ndt_status ndt_header_read(const struct ndt_header_syntax *syntax, const struct ndt_input *input, void *header,
                                uint64_t *offset, size_t *line_count, struct ndt_error *err)
{
    struct ndt_line_reader reader;
    enum ndt_status status = ndt_line_reader_open(&reader, input, 0, 0, err);
    if (status == NDT_OK)
        status = read_entries(syntax, &reader, header, err);
    *offset = reader.offset;
    *line_count = reader.number;
    ndt_line_reader_close(&reader);
    return status;
}

enum ndt_status ndt_input_file_read(char **out, size_t *size, const char *path, size_t limit, struct ndt_error *err)
{
    struct ndt_input input;
    *out = NULL;
    *size = 0;
    enum ndt_status status = ndt_input_open(&input, path, err);
    if (status != NDT_OK)
        return status;
    char *text = input.size <= limit ? malloc((size_t)input.size + 1) : NULL;
    if (input.size > limit)
        status = ndt_fail(err, NDT_ERR_LIMIT, "%s: %llu bytes, at most %zu are possible", path,
                          (unsigned long long)input.size, limit);
    else if (!text)
        status = ndt_fail(err, NDT_ERR_MEMORY, "%s: out of memory", path);
    else
        status = ndt_input_read(&input, 0, text, (size_t)input.size, err);
    ndt_input_close(&input);
    if (status == NDT_OK && text) {
        text[input.size] = '\0';
        *out = text;
        *size = (size_t)input.size;
    } else {
        free(text);
    }
    return status;
}
