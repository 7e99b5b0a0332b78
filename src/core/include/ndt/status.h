/* Failure, one idiom for the whole house.
 *
 * A status says whether something could be done; an outcome (result.h) says what the mathematics found.
 * Functions that can fail return `enum ndt_status` and take a `struct ndt_error *` (may be NULL) that
 * receives one clear line: what went wrong, where, and which limit was met. The line is written where
 * the cause is known and only forwarded from there on. */
#ifndef NDT_STATUS_H
#define NDT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_MUST_CHECK         __attribute__((warn_unused_result))
#define NDT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

enum ndt_status {
    NDT_OK = 0,
    NDT_END,             /* no more records; not an error */
    NDT_ERR_ARGUMENT,    /* the caller asked for something that makes no sense (option, usage) */
    NDT_ERR_MEMORY,      /* an allocation failed */
    NDT_ERR_IO,          /* the operating system refused: open, read, write, map */
    NDT_ERR_FORMAT,      /* bytes from outside that do not follow their format */
    NDT_ERR_LIMIT,       /* well-formed, but beyond a stated limit */
    NDT_ERR_UNSUPPORTED, /* known, but not available here (CPU variant, device, field type) */
    NDT_ERR_DEVICE       /* a backend failed while computing */
};

/* One line of text, always terminated; empty when nothing went wrong. */
struct ndt_error {
    char text[512];
};

/* Name of a status, such as "limit"; never NULL. */
const char *ndt_status_name(enum ndt_status status);

/* Writes the formatted line into `err` (when not NULL) and returns `status`, so that callers can
 * write `return ndt_fail(err, NDT_ERR_FORMAT, ...)`. */
enum ndt_status ndt_fail(struct ndt_error *err, enum ndt_status status, const char *format, ...) NDT_PRINTF(3, 4);

/* Puts "prefix: " in front of the line already in `err`; returns `status`. */
enum ndt_status ndt_fail_prefix(struct ndt_error *err, enum ndt_status status, const char *format, ...)
    NDT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
