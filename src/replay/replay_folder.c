#include "ndtd/replay_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt_io/bag.h"
#include "ndt_io/trajectory.h"
#include "ndtd/options.h"

static const char MARK[] = ".ndtd-replay", MARK_TEXT[] = "written by ndtd --replay --output\n";
enum { PATH_BYTES = NDTD_PATH_MAX + 32 };

/* Files of a folder, those of the sinks first. */
enum file { POSES, TIMING, RESULTS, SUMMARY, CONFIG, TRUTH, POINTS, POINTS_TEMPORARY, FILES };
static const char *const names[FILES] = {"poses.tum",   "timing.csv", "results.jsonl", "summary.json",
                                         "config.yaml", "truth.tum",  "points.bag",    "points.bag.tmp"};

struct ndtd_replay_folder {
    char path[NDTD_PATH_MAX], mark[PATH_BYTES], files[FILES][PATH_BYTES];
    int is_temporary, is_new, is_finishing;
    int mark_fd; /* locked while the folder is written */
    struct ndt_bag_writer *bag;
    struct ndt_points_message message;
    struct ndt_cloud points;
    struct ndt_buffer frame;
};

/* ---- the folder ---- */

static int is_empty(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return count == 0;
}

static enum ndt_status make_temporary(struct ndtd_replay_folder *folder, struct ndt_error *err)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder->path, sizeof(folder->path), "%s/ndtd-replay-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder->path))
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", folder->path, strerror(errno));
    folder->is_temporary = folder->is_new = 1;
    return NDT_OK;
}

static enum ndt_status make_folder(struct ndtd_replay_folder *folder, const char *path, struct ndt_error *err)
{
    struct stat info;
    if ((size_t)snprintf(folder->path, sizeof(folder->path), "%s", path) >= sizeof(folder->path))
        return ndt_fail(err, NDT_ERR_LIMIT, "--output: the name has %zu bytes; the limit is %zu", strlen(path),
                        sizeof(folder->path) - 1);
    folder->is_new = mkdir(path, 0777) == 0;
    if (!folder->is_new && errno != EEXIST)
        return ndt_fail(err, NDT_ERR_IO, "--output %s: %s", path, strerror(errno));
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--output %s: is not a folder", path);
    return NDT_OK;
}

/* Makes the mark, or finds it: nothing is written to a folder that has files and no mark. */
static enum ndt_status take_mark(struct ndtd_replay_folder *folder, struct ndt_error *err)
{
    struct stat info;
    const int is_marked = lstat(folder->mark, &info) == 0 && S_ISREG(info.st_mode);
    if (!is_marked && !is_empty(folder->path))
        return ndt_fail(
            err, NDT_ERR_ARGUMENT,
            "--output %s: has files and is not a folder of a replay (no %s in it): nothing is overwritten",
            folder->path, MARK);
    folder->mark_fd = open(folder->mark, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (folder->mark_fd < 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", folder->mark, strerror(errno));
    if (flock(folder->mark_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(folder->mark_fd); /* the files stay: they belong to the other replay */
        folder->mark_fd = -1;
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--output %s: another replay is writing to it", folder->path);
    }
    if (!is_marked && write(folder->mark_fd, MARK_TEXT, strlen(MARK_TEXT)) != (ssize_t)strlen(MARK_TEXT))
        return ndt_fail(err, NDT_ERR_IO, "%s: %s", folder->mark, strerror(errno));
    return NDT_OK;
}

static enum ndt_status open_parts(struct ndtd_replay_folder *folder, const char *path, struct ndt_error *err)
{
    enum ndt_status status = path ? make_folder(folder, path, err) : make_temporary(folder, err);
    if (status != NDT_OK)
        return status;
    snprintf(folder->mark, sizeof(folder->mark), "%s/%s", folder->path, MARK);
    for (int i = 0; i < FILES; i++)
        snprintf(folder->files[i], sizeof(folder->files[i]), "%s/%s", folder->path, names[i]);
    status = take_mark(folder, err);
    if (status != NDT_OK)
        return status;
    (void)unlink(folder->files[POINTS_TEMPORARY]); /* left by a replay that was stopped */
    return ndt_bag_create(&folder->bag, folder->files[POINTS_TEMPORARY], 0, err);
}

enum ndt_status ndtd_replay_folder_open(struct ndtd_replay_folder **out, const char *path,
                                        struct ndtd_sink_paths *files, struct ndt_error *err)
{
    struct ndtd_replay_folder *folder = calloc(1, sizeof(*folder));
    *out = NULL;
    if (!folder)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for --output");
    folder->mark_fd = -1;
    ndt_cloud_init(&folder->points);
    ndt_buffer_init(&folder->frame);
    const enum ndt_status status = open_parts(folder, path, err);
    if (status != NDT_OK) {
        ndtd_replay_folder_close(folder, 0);
        return status;
    }
    files->poses = folder->files[POSES];
    files->timing = folder->files[TIMING];
    files->results = folder->files[RESULTS];
    files->summary = folder->files[SUMMARY];
    *out = folder;
    return NDT_OK;
}

const char *ndtd_replay_folder_path(const struct ndtd_replay_folder *folder)
{
    return folder->path;
}

/* ---- contents ---- */

enum ndt_status ndtd_replay_folder_add(struct ndtd_replay_folder *folder, struct ndtd_pipeline *pipeline,
                                       struct ndt_error *err)
{
    enum ndt_status status =
        ndtd_pipeline_points(pipeline, NDTD_REPLAY_FOLDER_POINTS, &folder->message, &folder->points, err);
    if (status == NDT_END)
        return NDT_OK;
    if (status == NDT_OK)
        status = ndt_points_encode(&folder->frame, &folder->message, &folder->points, err);
    if (status == NDT_ERR_ARGUMENT) /* numbers that are not finite: the scan has no points */
        return NDT_OK;
    if (status != NDT_OK)
        return status;
    const struct ndt_bag_record record = {.type = NDT_MESSAGE_POINTS,
                                          .length = (uint32_t)folder->frame.size,
                                          .receive_time_ns = folder->message.stamp_ns,
                                          .payload = folder->frame.data};
    return ndt_bag_write(folder->bag, &record, err);
}

static enum ndt_status write_config(const struct ndtd_replay_folder *folder, const struct ndtd_settings *settings,
                                    struct ndt_error *err)
{
    struct ndt_output output = {0};
    const enum ndt_status status = ndt_output_open(&output, folder->files[CONFIG], err);
    if (status != NDT_OK)
        return status;
    ndtd_options_print_config(output.file, settings, NDTD_ALL_OPTIONS);
    return ndt_output_commit(&output, err);
}

/* Writes the ground truth of the bag, if it has any. */
static enum ndt_status write_truth(const struct ndtd_replay_folder *folder, const struct ndtd_timed_poses *truth,
                                   struct ndt_error *err)
{
    struct ndt_output output = {0};
    if (!truth->count) {
        (void)unlink(folder->files[TRUTH]); /* file of an earlier replay */
        return NDT_OK;
    }
    const enum ndt_status status = ndt_output_open(&output, folder->files[TRUTH], err);
    if (status != NDT_OK)
        return status;
    for (size_t i = 0; i < truth->count; i++)
        ndt_trajectory_write_pose(output.file, NDT_TUM, truth->items[i].stamp_ns, &truth->items[i].T_map_sensor);
    return ndt_output_commit(&output, err);
}

enum ndt_status ndtd_replay_folder_finish(struct ndtd_replay_folder *folder, const struct ndtd_settings *settings,
                                          const struct ndtd_timed_poses *truth, struct ndt_error *err)
{
    const char *points = folder->files[POINTS], *written = folder->files[POINTS_TEMPORARY];
    struct ndt_bag_writer *bag = folder->bag;
    folder->bag = NULL;
    folder->is_finishing = 1;
    enum ndt_status status = ndt_bag_finish(bag, err);
    if (unlink(folder->files[SUMMARY]) != 0 && errno != ENOENT && status == NDT_OK) /* file of an earlier replay */
        status = ndt_fail(err, NDT_ERR_IO, "%s: %s", folder->files[SUMMARY], strerror(errno));
    if (status == NDT_OK && rename(written, points) != 0)
        status = ndt_fail(err, NDT_ERR_IO, "%s: %s", points, strerror(errno));
    if (status == NDT_OK)
        status = write_config(folder, settings, err);
    return status == NDT_OK ? write_truth(folder, truth, err) : status;
}

void ndtd_replay_folder_close(struct ndtd_replay_folder *folder, int is_complete)
{
    if (!folder)
        return;
    const int is_removed = folder->is_temporary || !is_complete;
    ndt_bag_discard(folder->bag);
    if (is_removed && folder->mark_fd >= 0)
        (void)unlink(folder->files[POINTS_TEMPORARY]);
    for (int i = 0; i < FILES && is_removed && (folder->is_finishing || folder->is_new); i++)
        (void)unlink(folder->files[i]);
    if (is_removed && folder->is_new) {
        (void)unlink(folder->mark);
        (void)rmdir(folder->path);
    }
    if (folder->mark_fd >= 0)
        close(folder->mark_fd);
    ndt_cloud_free(&folder->points);
    ndt_buffer_free(&folder->frame);
    free(folder);
}
