/** @file
 * @brief Records for a replay: of a bag.bin, of a stream, or of ndt-import, which reads other recordings.
 *
 * One owner, one thread. The records do not depend on the way they come. */
#ifndef NDTD_RECORD_SOURCE_H
#define NDTD_RECORD_SOURCE_H

#include "ndt/progress.h"
#include "ndt_io/bag.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ndtd_record_source;
/** Opens a source. path: a bag, "-" or a pipe, or a recording that ndt-import reads (ndtd/importer.h), whose import
 * begins at once with import_args as its further arguments (borrowed until close). progress cancels the waiting; it
 * and `path` are borrowed. NDT_ERR_ARGUMENT: import_args for a bag. */
NDT_MUST_CHECK enum ndt_status ndtd_record_source_open(struct ndtd_record_source **out, const char *path,
                                                       const char *const *import_args, size_t import_arg_count,
                                                       struct ndt_progress *progress, struct ndt_error *err);
/** Reads the next record as ndt_bag_next does. At the end, or damage, of a failed import: the reason of the import,
 * and not NDT_ERR_FORMAT. */
NDT_MUST_CHECK enum ndt_status ndtd_record_source_next(struct ndtd_record_source *source,
                                                       struct ndt_bag_record *out, struct ndt_error *err);
/** Passes over types as ndt_bag_pass does. The output of ndt-import is a stream. */
void ndtd_record_source_pass(struct ndtd_record_source *source, uint32_t types);
/** Starts again from the first record, with a new import where there was one. NDT_ERR_UNSUPPORTED: a stream. */
NDT_MUST_CHECK enum ndt_status ndtd_record_source_rewind(struct ndtd_record_source *source, struct ndt_error *err);
/** Whether ndtd_record_source_rewind is possible. */
int ndtd_record_source_can_rewind(const struct ndtd_record_source *source);
/** Offset behind the last whole record. */
uint64_t ndtd_record_source_offset(const struct ndtd_record_source *source);
/** Part of the recording that has been read, 0 to 1; below 0: not known. */
double ndtd_record_source_done(const struct ndtd_record_source *source);
/** Closes the source and ends an import. `source` may be NULL. */
void ndtd_record_source_close(struct ndtd_record_source *source);

#ifdef __cplusplus
}
#endif
#endif
