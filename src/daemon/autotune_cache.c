#define _GNU_SOURCE /* CPU sets, getline */
#include "ndtd/autotune_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ndt/hash.h"
#include "ndt_io/output_file.h"
#include "ndtd/log.h"
#include "ndtd/options.h"
#include "ndt/clock.h"

enum { FILE_BYTES = 1024 * 1024, ENTRIES = 32, PATH_BYTES = 512, VALUE_BYTES = 4200, HEAD_CHARS = 17 };
static const char FIRST_LINE[] = "ndtd-autotune 2\n";

/* ---- key ---- */

/* Lines of the file that begin with one of these words, up to the first empty line; NULL: all lines. */
static void put_file(FILE *to, const char *path, const char *const *words)
{
    char line[512];
    FILE *from = fopen(path, "re");
    while (from && fgets(line, sizeof(line), from) && line[0] != '\n') {
        if (!words)
            fputs(line, to);
        for (const char *const *word = words; word && *word; word++)
            if (strncmp(line, *word, strlen(*word)) == 0)
                fputs(line, to);
    }
    if (from)
        fclose(from);
}

/* The kernel describes NVIDIA's devices, so that a start with a cached result need not wake the driver. */
static void put_hardware(FILE *to)
{
    static const char *const processor[] = {"vendor_id", "cpu family",  "model",    "stepping", "CPU implementer",
                                            "CPU part",  "CPU variant", "Hardware", NULL};
    static const char *const variables[] = {"NDT_CPU_ISA", "CUDA_VISIBLE_DEVICES"};
    cpu_set_t cores;
    char isas[128];
    glob_t devices;
    put_file(to, "/proc/cpuinfo", processor);
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET((size_t)i, &cores))
                fprintf(to, "%d,", i);
    ndt_cpu_variants(isas, sizeof(isas));
    fprintf(to, "\n%s\n", isas);
    put_file(to, "/proc/driver/nvidia/version", NULL);
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &devices) == 0) {
        for (size_t i = 0; i < devices.gl_pathc; i++)
            put_file(to, devices.gl_pathv[i], NULL);
        globfree(&devices);
    }
    for (size_t i = 0; i < 2; i++)
        fprintf(to, "%s\n", getenv(variables[i]) ? getenv(variables[i]) : "-");
}

uint64_t ndtd_autotune_key(const struct ndtd_settings *settings, uint64_t map_id)
{
    struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
    const struct ndtd_option *option;
    char *text = NULL, value[VALUE_BYTES];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return 0;
    fprintf(to, NDT_VERSION "\n%016" PRIx64 "\n", map_id);
    put_hardware(to);
    const size_t count = ndtd_autotune_candidates(settings, rows);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s\n", ndtd_backend_candidate_name(&rows[i].candidate, value, sizeof(value)));
    for (size_t i = 0; i < ndtd_option_count(); i++)
        if ((option = ndtd_option_at(i))->affects_autotune && !option->alias_of)
            fprintf(to, "%s=%s\n", option->name, ndtd_option_format(settings, option, value, sizeof(value)));
    const int failed = fclose(to);
    const uint64_t key = failed ? 0 : ndt_hash64(text, size, 0);
    free(text);
    return key;
}

/* ---- place ---- */

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

/* ---- entries ---- */

/* Without the hash before it: key, times, expected costs, rows; separated by tabs. NULL: out of memory. */
static char *format_entry(uint64_t key, const struct ndtd_autotune_result *tuned)
{
    char *text = NULL, name[80];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fprintf(to, "%016" PRIx64 "\t%" PRId64 "\t%zu\t%.9g\t%.9g\t%d\t%.9g\t%.9g", key, tuned->measured_s,
            tuned->points, tuned->took_us, tuned->evaluation_us, tuned->choice.row, tuned->costs.assess.fixed_us,
            tuned->costs.assess.point_us);
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        fprintf(to, "\t%.9g\t%.9g", tuned->costs.levels[i].fixed_us, tuned->costs.levels[i].point_us);
    for (size_t i = 0; i < tuned->row_count; i++) {
        const struct ndtd_autotune_row *row = &tuned->rows[i];
        fprintf(to, "\t%s\t%zu\t%.9g\t%.9g\t%.9g\t",
                ndtd_backend_candidate_name(&row->candidate, name, sizeof(name)), row->samples, row->p50_us,
                row->p95_us, row->open_us);
        for (const char *c = row->why; *c; c++)
            fputc(*c >= ' ' && *c < 0x7f ? *c : '?', to);
    }
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

struct fields {
    char *rest;
    int is_bad;
};

static const char *next_text(struct fields *fields)
{
    const char *text = strsep(&fields->rest, "\t");
    fields->is_bad |= !text;
    return text ? text : "";
}

static double next_number(struct fields *fields)
{
    const char *text = next_text(fields);
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value < 1e12))
        fields->is_bad = 1;
    return fields->is_bad ? 0 : value;
}

/* `text` is changed. The rows have to be those that the settings allow. */
static int parse_entry(char *text, const struct ndtd_settings *settings, struct ndtd_autotune_result *out)
{
    struct fields fields = {.rest = text};
    char name[80];
    (void)next_text(&fields); /* the key */
    memset(out, 0, sizeof(*out));
    out->row_count = ndtd_autotune_candidates(settings, out->rows);
    out->measured_s = (int64_t)next_number(&fields);
    out->points = (size_t)next_number(&fields);
    out->took_us = next_number(&fields);
    out->evaluation_us = next_number(&fields);
    out->choice.row = (int)fmin(next_number(&fields), NDTD_AUTOTUNE_ROWS);
    out->costs.assess.fixed_us = next_number(&fields);
    out->costs.assess.point_us = next_number(&fields);
    for (int i = 0; i < NDT_MAX_LEVELS; i++) {
        out->costs.levels[i].fixed_us = next_number(&fields);
        out->costs.levels[i].point_us = next_number(&fields);
    }
    for (size_t i = 0; i < out->row_count; i++) {
        struct ndtd_autotune_row *row = &out->rows[i];
        ndtd_backend_candidate_name(&row->candidate, name, sizeof(name));
        fields.is_bad |= strcmp(next_text(&fields), name) != 0;
        row->samples = (size_t)next_number(&fields);
        row->p50_us = next_number(&fields);
        row->p95_us = next_number(&fields);
        row->open_us = next_number(&fields);
        snprintf(row->why, sizeof(row->why), "%s", next_text(&fields));
    }
    return !fields.is_bad && !fields.rest && (size_t)out->choice.row < out->row_count;
}

/* ---- file ---- */

/* NULL: there is no file, or none that can be used, which is logged. */
static FILE *open_cache(const char *path)
{
    struct stat info;
    char line[sizeof(FIRST_LINE)];
    const char *why = "damaged, or of another version";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        why = strerror(errno);
        if (fd >= 0)
            close(fd);
    } else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > FILE_BYTES)
        why = "not a file, or larger than 1 MiB";
    else if (fgets(line, sizeof(line), file) && strcmp(line, FIRST_LINE) == 0)
        return file;
    ndtd_log(NDTD_LOG_WARNING, "autotune: %.300s is ignored: %s", path, why);
    if (file)
        fclose(file);
    return NULL;
}

struct lines {
    FILE *file;
    char *line;
    size_t size;
    int damaged;
};

/* The next entry that is whole, behind its hash; NULL after the last. */
static char *next_entry(struct lines *lines, uint64_t *key)
{
    ssize_t length;
    while (lines->file && (length = getline(&lines->line, &lines->size, lines->file)) > 0) {
        char *text = lines->line + HEAD_CHARS;
        uint64_t hash;
        lines->line[strcspn(lines->line, "\n")] = '\0';
        if (length > 2 * HEAD_CHARS && sscanf(lines->line, "%16" SCNx64 "\t%16" SCNx64 "\t", &hash, key) == 2 &&
            lines->line[HEAD_CHARS - 1] == '\t' && hash == ndt_hash64(text, strlen(text), 0))
            return text;
        lines->damaged++;
    }
    return NULL;
}

static void close_lines(struct lines *lines, const char *path)
{
    if (lines->file)
        fclose(lines->file);
    free(lines->line);
    if (lines->damaged)
        ndtd_log(NDTD_LOG_WARNING, "autotune: %.300s: %d damaged entr%s ignored", path, lines->damaged,
                 lines->damaged == 1 ? "y" : "ies");
}

int ndtd_autotune_cache_find(const struct ndtd_settings *settings, uint64_t map_id,
                             struct ndtd_autotune_result *out)
{
    const double start_us = ndt_clock_us();
    const uint64_t wanted = ndtd_autotune_key(settings, map_id);
    struct ndt_error err;
    char path[PATH_BYTES + 16], *text;
    uint64_t key;
    int found = 0;
    if (wanted == 0 || ndtd_autotune_cache_path(path, sizeof(path), 0, &err) != NDT_OK)
        return 0;
    struct lines lines = {.file = open_cache(path)};
    while (!found && (text = next_entry(&lines, &key)))
        if (key == wanted) {
            found = parse_entry(text, settings, out);
            lines.damaged += !found;
        }
    close_lines(&lines, path);
    if (!found)
        return 0;
    const int stored = out->choice.row;
    out->source = NDTD_AUTOTUNE_CACHED;
    out->map_id = map_id;
    out->budget_us = settings->budget_s * 1e6;
    out->choice = ndtd_autotune_decide(out->rows, out->row_count, out->budget_us);
    out->took_us = ndt_clock_us() - start_us;
    return out->choice.row == stored;
}

enum ndt_status ndtd_autotune_cache_store(const struct ndtd_settings *settings,
                                          const struct ndtd_autotune_result *tuned, struct ndt_error *err)
{
    const uint64_t stored = ndtd_autotune_key(settings, tuned->map_id);
    struct ndt_output output;
    char path[PATH_BYTES + 16];
    uint64_t key;
    if (stored == 0 || tuned->choice.row < 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "there is nothing to store");
    enum ndt_status status = ndtd_autotune_cache_path(path, sizeof(path), 1, err);
    if (status == NDT_OK)
        status = ndt_output_open(&output, path, err);
    if (status != NDT_OK)
        return status;
    char *entry = format_entry(stored, tuned);
    if (!entry) {
        ndt_output_discard(&output);
        return ndt_fail(err, NDT_ERR_MEMORY, "out of memory for an entry of %s", path);
    }
    fprintf(output.file, "%s%016" PRIx64 "\t%s\n", FIRST_LINE, ndt_hash64(entry, strlen(entry), 0), entry);
    free(entry);
    struct lines lines = {.file = open_cache(path)};
    for (int kept = 1; kept < ENTRIES && next_entry(&lines, &key);)
        if (key != stored) {
            fprintf(output.file, "%s\n", lines.line);
            kept++;
        }
    close_lines(&lines, path);
    return ndt_output_commit(&output, err);
}
