#include "header_entry.h"

#include <string.h>

#include "number_text.h"

enum { WORD_SIZE = 64 };

enum ndt_status ndt_entry_next(struct ndt_line_reader *reader, struct ndt_entry *out, struct ndt_error *err)
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

int ndt_entry_word(struct ndt_entry *entry, char word[WORD_SIZE])
{
    const char *begin;
    size_t length;
    if (!ndt_text_word(&entry->at, entry->end, &begin, &length) || length >= WORD_SIZE ||
        memchr(begin, '\0', length))
        return 0;
    memcpy(word, begin, length);
    word[length] = '\0';
    return 1;
}
