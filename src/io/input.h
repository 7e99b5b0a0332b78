/* Private to ndt_io: input files, their lines, and the text headers of PCD and PLY. */
#ifndef NDT_IO_INPUT_H
#define NDT_IO_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/progress.h"
#include "ndt/status.h"

/* ---- a regular file, read at stated offsets ----
 *
 * Read with pread, not mmap: a file that shrinks while it is read causes an error instead of SIGBUS. */

struct ndt_input {
    int fd;
    const char *path;              /* borrowed */
    uint64_t size;                 /* bytes when it was opened */
    struct ndt_progress *progress; /* progress of the call that reads, or NULL; borrowed. Opening sets NULL */
};

/* Opens a file as ndt_input_file_open does. */
NDT_MUST_CHECK enum ndt_status ndt_input_open(struct ndt_input *out, const char *path, struct ndt_error *err);
void ndt_input_close(struct ndt_input *input);
/* Reads exactly `size` bytes at `offset`; NDT_ERR_FORMAT, with the offset, if the file ends before.
 * NDT_ERR_CANCELLED. */
NDT_MUST_CHECK enum ndt_status ndt_input_read(const struct ndt_input *input, uint64_t offset, void *buffer,
                                              size_t size, struct ndt_error *err);

/* ---- its lines, one after the other, without copying them ---- */

/* Longest line that is accepted: no format here has longer ones. */
#define NDT_LINE_MAX ((size_t)65536)

struct ndt_line_reader {
    const struct ndt_input *input; /* borrowed */
    uint64_t offset;               /* offset of the next line in the file */
    size_t number;                 /* number of the last line read, from 1; 0 before the first */
    char *buffer;
    size_t begin, end; /* range of the buffer that was not returned yet */
};

/* Starts at `offset`, where `lines_before` lines have been read already. */
NDT_MUST_CHECK enum ndt_status ndt_line_reader_open(struct ndt_line_reader *out, const struct ndt_input *input,
                                                    uint64_t offset, size_t lines_before, struct ndt_error *err);
void ndt_line_reader_close(struct ndt_line_reader *reader);
/* Returns [*line, *line_end) without its "\n" or "\r\n", borrowed until the next call. A last line without a line
 * end counts. NDT_END after the last line; NDT_ERR_FORMAT for a line that is too long. */
NDT_MUST_CHECK enum ndt_status ndt_line_next(struct ndt_line_reader *reader, const char **line,
                                             const char **line_end, struct ndt_error *err);

/* ---- text headers: lines of a keyword and its values ---- */

enum { NDT_WORD_SIZE = 64 }; /* size of a keyword or name, with its terminating zero */

struct ndt_entry {
    const char *path;
    size_t number;        /* number of the line */
    const char *key;      /* not terminated */
    size_t key_length;    /* 0: a blank line */
    const char *at, *end; /* the rest of the line, for the functions of number_text.h */
};

/* One keyword of a format. `parse` reads the values into the header of the format. */
struct ndt_header_key {
    const char *name;
    enum ndt_status (*parse)(void *header, struct ndt_entry *entry, struct ndt_error *err);
};
struct ndt_header_syntax {
    const char *format; /* for error messages: "PCD" */
    const char *first;  /* keyword that the first line must have; NULL: any */
    const char *last;   /* the keyword of the last line */
    char comment;       /* first character of lines that are skipped; '\0': none */
    const struct ndt_header_key *keys;
    size_t key_count;
};

/* Reads a header from the begin of the file to its last line. *offset, *line_count: place of the data. */
NDT_MUST_CHECK enum ndt_status ndt_header_read(const struct ndt_header_syntax *syntax,
                                               const struct ndt_input *input, void *header, uint64_t *offset,
                                               size_t *line_count, struct ndt_error *err);
/* Fails with NDT_ERR_FORMAT and "PATH: line N: WHAT". */
enum ndt_status ndt_entry_fail(const struct ndt_entry *entry, const char *what, struct ndt_error *err);
/* Reads the rest of the line, which must be one non-negative integer. */
NDT_MUST_CHECK enum ndt_status ndt_entry_amount(struct ndt_entry *entry, uint64_t *out, struct ndt_error *err);
/* Reads the next word; 0 if there is none or it has NDT_WORD_SIZE or more characters. */
int ndt_entry_word(struct ndt_entry *entry, char word[NDT_WORD_SIZE]);

#endif
