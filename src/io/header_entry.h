/* One line of a text header: a key word and what follows it. Private to ndt_io. */
#ifndef NDT_IO_HEADER_ENTRY_H
#define NDT_IO_HEADER_ENTRY_H

#include "line_reader.h"

struct ndt_entry {
    const char *path;
    size_t number;        /* of the line */
    const char *key;      /* not terminated */
    size_t key_length;    /* 0: a blank line */
    const char *at, *end; /* what is left, for the functions of number_text.h */
};

/* Borrowed until the next line is read. NDT_END after the last line. */
NDT_MUST_CHECK enum ndt_status ndt_entry_next(struct ndt_line_reader *reader, struct ndt_entry *out,
                                              struct ndt_error *err);
/* "PATH: line N: WHAT" as NDT_ERR_FORMAT. */
enum ndt_status ndt_entry_fail(const struct ndt_entry *entry, const char *what, struct ndt_error *err);
/* The one non-negative integer that is left of the line. */
NDT_MUST_CHECK enum ndt_status ndt_entry_amount(struct ndt_entry *entry, uint64_t *out, struct ndt_error *err);
/* The next word, when it is short enough to be one of a format's; NULL-safe text in `word`, else 0. */
int ndt_entry_word(struct ndt_entry *entry, char word[64]);

#endif
