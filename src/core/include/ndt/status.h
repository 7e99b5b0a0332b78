/** @file
 * @brief Status codes and error messages.
 *
 * A status tells whether a call succeeded; an outcome (ndt/align.h) is the result of an alignment. Functions that
 * can fail return `enum ndt_status` and take a `struct ndt_error *` (may be NULL) that receives one line: what
 * went wrong, where, and which limit applies. The line is written where the cause is known and forwarded from
 * there on. */
#ifndef NDT_STATUS_H
#define NDT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/** The result must be used. */
#define NDT_MUST_CHECK __attribute__((warn_unused_result))
/** A printf format and its first argument. */
#define NDT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/** Result of a call. */
enum ndt_status {
    NDT_OK = 0,
    NDT_END,             /**< no more records; not an error */
    NDT_ERR_ARGUMENT,    /**< invalid argument: option, usage */
    NDT_ERR_MEMORY,      /**< an allocation failed */
    NDT_ERR_IO,          /**< the operating system failed to open, read, write or map */
    NDT_ERR_FORMAT,      /**< malformed input */
    NDT_ERR_LIMIT,       /**< well-formed, but beyond a stated limit */
    NDT_ERR_UNSUPPORTED, /**< known, but not available here (CPU variant, device, field type) */
    NDT_ERR_DEVICE,      /**< a backend failed while computing */
    NDT_ERR_CANCELLED    /**< ended early because it was asked to (ndt/progress.h) or its deadline passed */
};

/** One line of text, always terminated; empty when nothing went wrong. Control characters, which it may quote from
 * a file or a message, are '?'. */
struct ndt_error {
    char text[512];
};

/** Name of a status, such as "limit"; never NULL. */
const char *ndt_status_name(enum ndt_status status);

/** Writes the formatted line into `err` (may be NULL) and returns `status`, so that callers can write
 * `return ndt_fail(err, NDT_ERR_FORMAT, ...)`. */
enum ndt_status ndt_fail(struct ndt_error *err, enum ndt_status status, const char *format, ...) NDT_PRINTF(3, 4);

/** Prepends "PREFIX: " to the line in `err` (may be NULL); returns `status`. */
enum ndt_status ndt_fail_prefix(struct ndt_error *err, enum ndt_status status, const char *format, ...)
    NDT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
