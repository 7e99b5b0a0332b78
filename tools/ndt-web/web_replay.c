#include "web_replay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_io/input_file.h"
#include "ndt_io/trajectory.h"
#include "ndtd/trajectory_error.h"
#include "web_json.h"
#include "web_points.h"

enum { LINE_MAX_BYTES = 1 << 18, SUMMARY_MAX_BYTES = 1 << 20, MAX_SCANS = 10000000 };

/* A part of a file. */
struct place {
    uint64_t seq; /* number of a scan */
    uint64_t at;
    uint32_t size;
};
struct places {
    struct place *all;
    size_t count, room;
};

struct web_replay {
    int results_fd, points_fd; /* -1: there is none */
    struct places results, scans;
    size_t scan_points;
    struct ndtd_trajectory_error truth; /* no results; sorted, so that threads share it */
    struct web_blob *summary;
    char map[PATH_MAX];
};

/* ---- index ---- */

static enum ndt_status add_place(struct places *places, struct place place, struct ndt_error *err)
{
    if (places->count == MAX_SCANS)
        return ndt_fail(err, NDT_ERR_LIMIT, "more than %d scans", MAX_SCANS);
    if (places->count == places->room) {
        const size_t room = places->room ? 2 * places->room : 1024;
        struct place *all = realloc(places->all, room * sizeof(*all));
        if (!all)
            return ndt_fail(err, NDT_ERR_MEMORY, "no memory for %zu scans", room);
        places->all = all;
        places->room = room;
    }
    places->all[places->count++] = place;
    return NDT_OK;
}

static int by_seq(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return (left->seq > right->seq) - (left->seq < right->seq);
}

/* A reference for the caller; NULL: the file has changed, or no memory. */
static struct web_blob *read_place(int fd, const struct place *place)
{
    struct web_blob *blob = web_blob_make(place->size);
    size_t used = 0;
    while (blob && used < place->size) {
        const ssize_t count = pread(fd, blob->data + used, place->size - used, (off_t)(place->at + used));
        if (count > 0)
            used += (size_t)count;
        else if (count == 0 || errno != EINTR) {
            web_blob_drop(blob);
            return NULL;
        }
    }
    return blob;
}

/* ---- results ---- */

struct span {
    int64_t begin_ns, end_ns;
};

/* Reads a line with its end into `line`, at most LINE_MAX_BYTES + 1 bytes. Returns how many; 0: the file ends. */
static size_t read_line(FILE *file, char *line)
{
    size_t size = 0;
    for (int c = 0; size <= LINE_MAX_BYTES && c != '\n' && (c = getc_unlocked(file)) != EOF;)
        line[size++] = (char)c;
    return size;
}

static enum ndt_status index_results(struct web_replay *replay, FILE *file, struct span *span,
                                     struct ndt_error *err)
{
    char *line = malloc(LINE_MAX_BYTES + 1);
    uint64_t at = 0;
    enum ndt_status status = NDT_OK;
    if (!line)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    for (size_t size; status == NDT_OK && (size = read_line(file, line)) > 0; at += size) {
        const struct place place = {.at = at, .size = (uint32_t)(size - (line[size - 1] == '\n'))};
        if (size > LINE_MAX_BYTES)
            status = ndt_fail(err, NDT_ERR_LIMIT, "more than %d bytes", LINE_MAX_BYTES);
        if (status == NDT_OK)
            status = web_json_check(line, place.size, err);
        if (status == NDT_OK && !web_json_integer(line, place.size, "stamp_ns", &span->end_ns))
            status = ndt_fail(err, NDT_ERR_FORMAT, "no 'stamp_ns'");
        if (status == NDT_OK)
            status = add_place(&replay->results, place, err);
        if (status != NDT_OK)
            (void)ndt_fail_prefix(err, status, "line %zu", replay->results.count + 1);
        if (replay->results.count == 1)
            span->begin_ns = span->end_ns;
    }
    if (status == NDT_OK && ferror(file))
        status = ndt_fail(err, NDT_ERR_IO, "%s", strerror(errno));
    free(line);
    return status;
}

static enum ndt_status open_results(struct web_replay *replay, const char *path, struct span *span,
                                    struct ndt_error *err)
{
    struct ndt_error why = {""};
    enum ndt_status status = ndt_input_file_open(&replay->results_fd, NULL, path, &why);
    if (status != NDT_OK)
        return ndt_fail(err, status, "%s; --replay-dir is what ndtd --replay BAG --output DIR wrote", why.text);
    const int fd = fcntl(replay->results_fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    status = file ? index_results(replay, file, span, err) : ndt_fail(err, NDT_ERR_IO, "%s", strerror(errno));
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    return status == NDT_OK ? status : ndt_fail_prefix(err, status, "%s", path);
}

/* ---- scans ---- */

static enum ndt_status index_scans(struct web_replay *replay, struct ndt_bag_reader *reader, const char *path,
                                   struct ndt_error *err)
{
    struct ndt_bag_record record;
    struct web_points points;
    enum ndt_status status;
    web_points_open(&points);
    while ((status = ndt_bag_next(reader, &record, err)) == NDT_OK) {
        if (record.type != NDT_MESSAGE_POINTS)
            continue;
        status = ndt_points_decode(record.payload, record.length, &points.message, &points.cloud, err);
        const uint64_t end = ndt_bag_offset(reader) - sizeof(uint32_t); /* end of the payload, before its CRC */
        if (status == NDT_OK)
            status = add_place(&replay->scans,
                               (struct place){points.message.seq, end - record.length, record.length}, err);
        if (status != NDT_OK) {
            (void)ndt_fail_prefix(err, status, "%s", path); /* errors of the reader have it already */
            break;
        }
    }
    web_points_close(&points);
    if (replay->scans.count > 0)
        qsort(replay->scans.all, replay->scans.count, sizeof(struct place), by_seq);
    return status == NDT_END ? NDT_OK : status;
}

/* A replay may have no points. */
static enum ndt_status open_scans(struct web_replay *replay, const char *path, struct ndt_error *err)
{
    struct ndt_bag_reader *reader = NULL;
    if (access(path, F_OK) != 0)
        return NDT_OK;
    enum ndt_status status = ndt_input_file_open(&replay->points_fd, NULL, path, err);
    if (status == NDT_OK)
        status = ndt_bag_open(&reader, path, err);
    if (status == NDT_OK)
        status = index_scans(replay, reader, path, err);
    ndt_bag_close(reader);
    return status;
}

/* ---- ground truth ---- */

/* A bag may have none. */
static enum ndt_status open_truth(struct web_replay *replay, const char *path, struct ndt_error *err)
{
    struct ndt_trajectory poses = {0};
    struct ndt_pose first;
    if (access(path, F_OK) != 0)
        return NDT_OK;
    enum ndt_status status = ndt_trajectory_read(&poses, path, NDT_TUM, err);
    for (size_t i = 0; status == NDT_OK && i < poses.count; i++)
        status = ndtd_trajectory_error_add_truth(&replay->truth, poses.poses[i].stamp_ns,
                                                 &poses.poses[i].T_map_sensor, err);
    (void)ndtd_trajectory_error_truth_at(&replay->truth, 0, &first, NULL); /* sorts */
    ndt_trajectory_free(&poses);
    return status;
}

/* Writes the beginning of a result that has ground truth: the true pose at its stamp. Returns what follows. */
static const char *begin_with_truth(struct web_replay *replay, FILE *file, const struct web_blob *line)
{
    const char *text = (const char *)line->data, *rest = memchr(text, '{', line->size);
    int64_t stamp_ns;
    struct ndt_pose pose;
    if (!rest || !web_json_integer(text, line->size, "stamp_ns", &stamp_ns) ||
        !ndtd_trajectory_error_truth_at(&replay->truth, stamp_ns, &pose, NULL))
        return text;
    fprintf(file, "{\"truth\":[%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g],", pose.t_m[0], pose.t_m[1], pose.t_m[2],
            pose.q_xyzw[0], pose.q_xyzw[1], pose.q_xyzw[2], pose.q_xyzw[3]);
    return rest + 1;
}

/* ---- summary ---- */

static int has_key(const char *text, size_t size, const char *key)
{
    int64_t number;
    return web_json_integer(text, size, key, &number);
}

/* Answer of GET /api/replay: the summary, and where the replay begins and ends. */
static struct web_blob *extend_summary(const char *text, size_t size, const struct span *span)
{
    struct web_writer writer;
    const char *rest = memchr(text, '{', size);
    web_writer_open(&writer);
    if (!writer.file)
        return NULL;
    fprintf(writer.file, "{\"begin_ns\":%" PRId64 ",\"end_ns\":%" PRId64, span->begin_ns, span->end_ns);
    fputc(',', writer.file);
    web_json_copy(writer.file, rest + 1, size - (size_t)(rest + 1 - text));
    return web_writer_finish(&writer);
}

static enum ndt_status read_summary(struct web_replay *replay, const struct web_blob *blob, const struct span *span,
                                    struct ndt_error *err)
{
    const char *text = (const char *)blob->data;
    const enum ndt_status status = web_json_check(text, blob->size, err);
    if (status != NDT_OK)
        return status;
    if (!has_key(text, blob->size, "scans"))
        return ndt_fail(err, NDT_ERR_FORMAT, "no summary of a replay: 'scans' is missing");
    (void)web_json_text(text, blob->size, "map", replay->map, sizeof(replay->map));
    replay->summary = extend_summary(text, blob->size, span);
    return replay->summary ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory");
}

static enum ndt_status open_summary(struct web_replay *replay, const char *path, const struct span *span,
                                    struct ndt_error *err)
{
    int fd;
    uint64_t size;
    enum ndt_status status = ndt_input_file_open(&fd, &size, path, err);
    if (status != NDT_OK)
        return status;
    const struct place all = {.size = (uint32_t)size};
    struct web_blob *blob = size < SUMMARY_MAX_BYTES ? read_place(fd, &all) : NULL;
    if (blob)
        status = read_summary(replay, blob, span, err);
    else
        status = size < SUMMARY_MAX_BYTES
                     ? ndt_fail(err, NDT_ERR_IO, "cannot be read")
                     : ndt_fail(err, NDT_ERR_LIMIT, "more than %d bytes", SUMMARY_MAX_BYTES - 1);
    web_blob_drop(blob);
    close(fd);
    return status == NDT_OK ? status : ndt_fail_prefix(err, status, "%s", path);
}

/* ---- begin and end ---- */

enum ndt_status web_replay_open(struct web_replay **out, const char *folder, size_t scan_points,
                                struct ndt_error *err)
{
    char path[PATH_MAX];
    struct span span = {0, 0};
    struct web_replay *replay = calloc(1, sizeof(*replay));
    *out = NULL;
    if (!replay)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory");
    replay->results_fd = replay->points_fd = -1;
    replay->scan_points = scan_points;
    snprintf(path, sizeof(path), "%.3000s/results.jsonl", folder);
    enum ndt_status status = open_results(replay, path, &span, err);
    snprintf(path, sizeof(path), "%.3000s/points.bag", folder);
    if (status == NDT_OK)
        status = open_scans(replay, path, err);
    snprintf(path, sizeof(path), "%.3000s/truth.tum", folder);
    if (status == NDT_OK)
        status = open_truth(replay, path, err);
    snprintf(path, sizeof(path), "%.3000s/summary.json", folder);
    if (status == NDT_OK)
        status = open_summary(replay, path, &span, err);
    if (status == NDT_OK)
        *out = replay;
    else
        web_replay_close(replay);
    return status;
}

void web_replay_close(struct web_replay *replay)
{
    if (!replay)
        return;
    if (replay->results_fd >= 0)
        close(replay->results_fd);
    if (replay->points_fd >= 0)
        close(replay->points_fd);
    free(replay->results.all);
    free(replay->scans.all);
    ndtd_trajectory_error_free(&replay->truth);
    web_blob_drop(replay->summary);
    free(replay);
}

const char *web_replay_map(const struct web_replay *replay)
{
    return replay->map;
}

/* ---- for the server ---- */

static uint64_t replay_results(void *self, uint64_t *first)
{
    *first = 0;
    return ((const struct web_replay *)self)->results.count;
}

static struct web_blob *replay_result(void *self, uint64_t number)
{
    struct web_replay *replay = self;
    struct web_writer writer;
    struct web_blob *line =
        number < replay->results.count ? read_place(replay->results_fd, &replay->results.all[number]) : NULL;
    if (!line)
        return NULL;
    web_writer_open(&writer);
    if (writer.file) {
        const char *rest = begin_with_truth(replay, writer.file, line);
        web_json_copy(writer.file, rest, line->size - (size_t)(rest - (const char *)line->data));
    }
    web_blob_drop(line);
    return web_writer_finish(&writer);
}

/* The scan as packed points or as the event, whichever is asked for. */
static void read_scan(const struct web_replay *replay, uint64_t seq, struct web_blob **packed,
                      struct web_blob **event)
{
    const struct place wanted = {.seq = seq};
    const struct place *place =
        replay->scans.count ? bsearch(&wanted, replay->scans.all, replay->scans.count, sizeof(wanted), by_seq)
                            : NULL;
    struct web_blob *frame = place ? read_place(replay->points_fd, place) : NULL;
    struct web_points points;
    if (!frame)
        return;
    web_points_open(&points);
    if (web_points_read(&points, frame->data, frame->size, replay->scan_points, packed, event, NULL) != NDT_OK)
        errno = 0; /* the file has changed: as one that is not kept */
    web_points_close(&points);
    web_blob_drop(frame);
}

static struct web_blob *replay_scan(void *self, uint64_t seq)
{
    struct web_blob *packed = NULL;
    read_scan(self, seq, &packed, NULL);
    return packed;
}

static struct web_blob *replay_timing(void *self, uint64_t seq)
{
    struct web_blob *event = NULL;
    read_scan(self, seq, NULL, &event);
    return event;
}

static struct web_blob *replay_summary(void *self)
{
    return web_blob_share(((const struct web_replay *)self)->summary);
}

static int replay_is_ready(void *self, char why[160])
{
    (void)self;
    why[0] = '\0';
    return 1;
}

void web_replay_source(struct web_replay *replay, struct web_source *out)
{
    *out = (struct web_source){.self = replay,
                               .results = replay_results,
                               .result = replay_result,
                               .scan = replay_scan,
                               .timing = replay_timing,
                               .replay = replay_summary,
                               .is_ready = replay_is_ready};
}
