/** @file
 * @brief Autotune results stored for the next start: a text file with a line per result, the newest first.
 *
 * A line is "HASH KEY VALUES", where HASH covers KEY and VALUES. */
#define _GNU_SOURCE /* CPU sets */
#include <glob.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt/clock.h"
#include "ndt/hash.h"
#include "ndt/version.h"
#include "ndt_io/input_file.h"
#include "ndt_io/output_file.h"
#include "ndtd/autotune.h"
#include "ndtd/log.h"
#include "ndtd/options.h"

enum {
    MAX_FILE_BYTES = 1024 * 1024,
    MAX_ENTRIES = 32,
    PATH_BYTES = 512,
    VALUE_BYTES = 4200,
    ENTRY_BYTES = 16384,
    HASH_CHARS = 16
};
static const char FIRST_LINE[] = "ndtd-autotune 4";

/* ---- key ---- */

static void mix(uint64_t *hash, const char *text)
{
    *hash = ndt_hash64(text, strlen(text), *hash);
}

/* The lines up to the first empty one: of /proc/cpuinfo those of the first CPU, without its momentary clock rate.
 */
static void mix_file(uint64_t *hash, const char *path)
{
    char line[8192];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file) && line[0] != '\n')
        if (strncmp(line, "cpu MHz", 7) != 0)
            mix(hash, line);
    if (file)
        fclose(file);
}

/* The kernel describes NVIDIA's devices, so that a start with a cached result does not wake the driver. */
static void mix_hardware(uint64_t *hash)
{
    const char *devices = getenv("CUDA_VISIBLE_DEVICES"), *isa = getenv("NDT_CPU_ISA");
    cpu_set_t cores;
    glob_t files;
    mix_file(hash, "/proc/cpuinfo");
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        *hash = ndt_hash64(&cores, sizeof(cores), *hash);
    mix_file(hash, "/proc/driver/nvidia/version");
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc; i++)
            mix_file(hash, files.gl_pathv[i]);
        globfree(&files);
    }
    mix(hash, devices ? devices : "-");
    mix(hash, isa ? isa : "-");
}

uint64_t ndtd_autotune_key(const struct ndtd_settings *settings, uint64_t map_id)
{
    struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
    const size_t row_count = ndtd_autotune_candidates(settings, rows);
    char text[VALUE_BYTES];
    uint64_t key = map_id;
    mix(&key, ndt_version());
    mix_hardware(&key);
    for (size_t i = 0; i < row_count; i++)
        mix(&key, ndtd_backend_candidate_name(&rows[i].candidate, text, sizeof(text)));
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        if (option->affects_autotune && !option->alias_of) {
            mix(&key, option->name);
            mix(&key, ndtd_option_format(settings, option, text, sizeof(text)));
        }
    }
    return key;
}

/* ---- file ---- */

enum ndt_status ndtd_autotune_cache_path(char *path, size_t size, int create, struct ndt_error *err)
{
    const char *systemd = getenv("CACHE_DIRECTORY"), *user = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH_BYTES];
    struct stat info;
    int length = 0;
    if (systemd && systemd[0] == '/') /* may be a list with ':' */
        length = snprintf(folder, sizeof(folder), "%.*s", (int)strcspn(systemd, ":"), systemd);
    else if (user && user[0] == '/') /* relative paths are to be ignored */
        length = snprintf(folder, sizeof(folder), "%s/ndtd", user);
    else if (home && home[0] == '/')
        length = snprintf(folder, sizeof(folder), "%s/.cache/ndtd", home);
    if (length <= 0)
        return ndt_fail(err, NDT_ERR_IO, "no cache folder: CACHE_DIRECTORY, XDG_CACHE_HOME and HOME are not set");
    if ((size_t)length >= sizeof(folder) || (size_t)snprintf(path, size, "%s/autotune", folder) >= size)
        return ndt_fail(err, NDT_ERR_IO, "the path of the cache is too long: %.100s...", folder);
    if (!create)
        return NDT_OK;
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(folder, 0700);
        *at = '/';
    }
    (void)mkdir(folder, 0700);
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return ndt_fail(err, NDT_ERR_IO, "%.300s: the folder cannot be made", folder);
    return NDT_OK;
}

struct entry {
    uint64_t key;
    const char *line;
};

/* Reads the undamaged entries of a file. Returns their number; *text holds the lines and has to be freed. */
static size_t read_entries(const char *path, char **text, struct entry entries[MAX_ENTRIES])
{
    struct ndt_error err;
    size_t count = 0, size;
    char *line = NULL, *rest;
    *text = NULL;
    if (access(path, F_OK) != 0)
        return 0;
    if (ndt_input_file_read(text, &size, path, MAX_FILE_BYTES, &err) != NDT_OK) {
        ndtd_log(NDTD_LOG_WARNING, "autotune: %.300s is ignored: %.400s", path, err.text);
        return 0;
    }
    rest = *text;
    line = strsep(&rest, "\n");
    const int is_cache = line && strcmp(line, FIRST_LINE) == 0;
    while (is_cache && count < MAX_ENTRIES && (line = strsep(&rest, "\n")) && *line) {
        uint64_t hash;
        if (strlen(line) > HASH_CHARS &&
            sscanf(line, "%16" SCNx64 " %16" SCNx64, &hash, &entries[count].key) == 2 &&
            hash == ndt_hash64(line + HASH_CHARS, strlen(line + HASH_CHARS), 0))
            entries[count++].line = line;
        else
            ndtd_log(NDTD_LOG_WARNING, "autotune: %.300s: a damaged entry is ignored", path);
    }
    if (!is_cache)
        ndtd_log(NDTD_LOG_WARNING, "autotune: %.300s is ignored: damaged, or of another version", path);
    return count;
}

/* ---- entries ---- */

/* Writes key, measurement, costs, batches and rows. Returns 0 when `text` is too small. */
static int format_entry(char *text, size_t size, uint64_t key, const struct ndtd_autotune_result *tuned)
{
    const struct ndt_align_costs *costs = &tuned->costs;
    FILE *to = fmemopen(text, size, "w");
    if (!to)
        return 0;
    fprintf(to, " %016" PRIx64 " %" PRId64 " %zu %d %.9g %.9g", key, tuned->measured_s, tuned->points,
            tuned->choice.row, costs->assess.fixed_us, costs->assess.point_us);
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        fprintf(to, " %.9g %.9g", costs->levels[i].fixed_us, costs->levels[i].point_us);
    fprintf(to, " %d", tuned->together);
    for (int i = 0; i < NDTD_AUTOTUNE_BATCHES; i++)
        fprintf(to, " %.9g", tuned->batch_us[i]);
    for (size_t i = 0; i < tuned->row_count; i++) {
        const struct ndtd_autotune_row *row = &tuned->rows[i];
        fprintf(to, " %zu %.9g %.9g %.9g %.9g ", row->samples, row->p50_us, row->p95_us, row->evaluation_us,
                row->open_us);
        for (const char *c = *row->why ? row->why : "-"; *c; c++)
            fputc(*c >= ' ' && *c < 0x7f ? *c : '?', to);
        fputc('\t', to);
    }
    return fclose(to) == 0 && strlen(text) < size - 1;
}

/* Checksum and key vouch for the values. Returns 0 when the line does not have this form. */
static int parse_entry(const char *line, const struct ndtd_settings *settings, struct ndtd_autotune_result *out)
{
    struct ndt_align_costs *costs = &out->costs;
    int used = 0;
    *out = (struct ndtd_autotune_result){.source = NDTD_AUTOTUNE_CACHED};
    out->row_count = ndtd_autotune_candidates(settings, out->rows);
    if (sscanf(line, "%*s %*s %" SCNd64 " %zu %d %lf %lf%n", &out->measured_s, &out->points, &out->choice.row,
               &costs->assess.fixed_us, &costs->assess.point_us, &used) != 5)
        return 0;
    for (int i = 0; i < NDT_MAX_LEVELS; i++) {
        line += used;
        if (sscanf(line, "%lf %lf%n", &costs->levels[i].fixed_us, &costs->levels[i].point_us, &used) != 2)
            return 0;
    }
    line += used;
    if (sscanf(line, "%d%n", &out->together, &used) != 1 || out->together < 0 ||
        out->together > NDTD_AUTOTUNE_BATCHES)
        return 0;
    for (int i = 0; i < NDTD_AUTOTUNE_BATCHES; i++) {
        line += used;
        if (sscanf(line, "%lf%n", &out->batch_us[i], &used) != 1)
            return 0;
    }
    for (size_t i = 0; i < out->row_count; i++) {
        struct ndtd_autotune_row *row = &out->rows[i];
        line += used;
        if (sscanf(line, "%zu %lf %lf %lf %lf %159[^\t]\t%n", &row->samples, &row->p50_us, &row->p95_us,
                   &row->evaluation_us, &row->open_us, row->why, &used) != 6)
            return 0;
        if (strcmp(row->why, "-") == 0)
            row->why[0] = '\0';
    }
    return 1;
}

int ndtd_autotune_cache_find(const struct ndtd_settings *settings, uint64_t map_id,
                             struct ndtd_autotune_result *out)
{
    const double start_us = ndt_clock_us();
    const uint64_t key = ndtd_autotune_key(settings, map_id);
    struct entry entries[MAX_ENTRIES];
    struct ndt_error err;
    char path[PATH_BYTES + 16], *text;
    int found = 0;
    if (ndtd_autotune_cache_path(path, sizeof(path), 0, &err) != NDT_OK)
        return 0;
    const size_t count = read_entries(path, &text, entries);
    for (size_t i = 0; i < count && !found; i++)
        found = entries[i].key == key && parse_entry(entries[i].line, settings, out);
    free(text);
    if (!found)
        return 0;
    const int stored_row = out->choice.row;
    out->map_id = map_id;
    out->budget_us = ndtd_settings_budget_s(settings) * 1e6;
    out->choice = ndtd_autotune_decide(out->rows, out->row_count, out->budget_us);
    out->took_us = ndt_clock_us() - start_us;
    return out->choice.row >= 0 && out->choice.row == stored_row;
}

enum ndt_status ndtd_autotune_cache_store(const struct ndtd_settings *settings,
                                          const struct ndtd_autotune_result *tuned, struct ndt_error *err)
{
    const uint64_t key = ndtd_autotune_key(settings, tuned->map_id);
    struct entry entries[MAX_ENTRIES];
    struct ndt_output output;
    char path[PATH_BYTES + 16], values[ENTRY_BYTES], *text;
    if (tuned->choice.row < 0 || !format_entry(values, sizeof(values), key, tuned))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "there is nothing to store");
    enum ndt_status status = ndtd_autotune_cache_path(path, sizeof(path), 1, err);
    if (status == NDT_OK)
        status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    fprintf(output.file, "%s\n%016" PRIx64 "%s\n", FIRST_LINE, ndt_hash64(values, strlen(values), 0), values);
    const size_t count = read_entries(path, &text, entries);
    for (size_t i = 0, kept = 1; i < count && kept < MAX_ENTRIES; i++)
        if (entries[i].key != key) {
            fprintf(output.file, "%s\n", entries[i].line);
            kept++;
        }
    free(text);
    return ndt_output_commit(&output, err);
}
