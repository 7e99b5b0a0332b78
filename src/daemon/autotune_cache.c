#define _GNU_SOURCE /* CPU sets */
#include "ndtd/autotune_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "ndtd/autotune.h"
#include "ndtd/log.h"
#include "ndtd/options.h"

enum { FILE_BYTES = 256 * 1024, ENTRIES = 32, PATH_BYTES = 512, VALUE_BYTES = 4200 };
static const char FIRST_LINE[] = "ndtd-routes 1\n";

/* ---- key ---- */

static void put_file(FILE *to, const char *path)
{
    char text[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t count = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
    if (fd >= 0)
        close(fd);
    if (count > 0)
        fwrite(text, 1, (size_t)count, to);
    fputc('\n', to);
}

/* What the kernel tells about NVIDIA's devices, so that a start with a cached choice need not wake the driver. */
static void put_devices(FILE *to)
{
    static const char folder[] = "/proc/driver/nvidia/gpus";
    struct dirent **names = NULL;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const int count = scandir(folder, &names, NULL, alphasort);
    put_file(to, "/proc/driver/nvidia/version");
    for (int i = 0; i < count; i++) {
        char path[400];
        snprintf(path, sizeof(path), "%s/%s/information", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            put_file(to, path);
        free(names[i]);
    }
    free(names);
    fprintf(to, "%s\n", visible ? visible : "-");
}

/* The lines of the first processor that do not change from moment to moment. */
static void put_processor(FILE *to)
{
    static const char *const wanted[] = {"vendor_id",       "cpu family", "model",       "stepping",
                                         "CPU implementer", "CPU part",   "CPU variant", "Hardware"};
    char line[512];
    FILE *info = fopen("/proc/cpuinfo", "re");
    while (info && fgets(line, sizeof(line), info) && line[0] != '\n')
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
                fputs(line, to);
    if (info)
        fclose(info);
}

static void put_cores(FILE *to)
{
    cpu_set_t cores;
    char isas[128];
    const char *isa = getenv("NDT_CPU_ISA");
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET((size_t)i, &cores))
                fprintf(to, "%d,", i);
    ndt_cpu_variants(isas, sizeof(isas));
    fprintf(to, "\n%s\n%s\n", isas, isa ? isa : "-");
}

/* What is compiled in and left open by the settings. */
static void put_candidates(FILE *to, const struct ndtd_settings *settings)
{
    struct ndtd_autotune_row rows[NDTD_AUTOTUNE_ROWS];
    char name[80];
    const size_t count = ndtd_autotune_candidates(settings, rows);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s\n", ndtd_backend_candidate_name(&rows[i].candidate, name, sizeof(name)));
}

static void put_options(FILE *to, const struct ndtd_settings *settings)
{
    char value[VALUE_BYTES];
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        if (option->affects_autotune && !option->alias_of)
            fprintf(to, "%s=%s\n", option->name, ndtd_option_format(settings, option, value, sizeof(value)));
    }
}

uint64_t ndtd_autotune_key(const struct ndtd_settings *settings, uint64_t map_id)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return 0;
    fprintf(to, NDT_VERSION "\n%016" PRIx64 "\n", map_id);
    put_processor(to);
    put_cores(to);
    put_devices(to);
    put_candidates(to, settings);
    put_options(to, settings);
    const int failed = fclose(to);
    const uint64_t key = failed ? 0 : ndt_hash64(text, size, 0);
    free(text);
    return key;
}

/* ---- where ---- */

static int choose_folder(char *path, size_t size)
{
    const char *systemd = getenv("CACHE_DIRECTORY"), *user = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (systemd && systemd[0] == '/') /* may be a list with ':' */
        return snprintf(path, size, "%.*s", (int)strcspn(systemd, ":"), systemd);
    if (user && user[0] == '/') /* others are to be ignored */
        return snprintf(path, size, "%s/ndtd", user);
    return home && home[0] == '/' ? snprintf(path, size, "%s/.cache/ndtd", home) : 0;
}

/* Every part that is missing. */
static void make_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    (void)mkdir(path, 0700);
}

enum ndt_status ndtd_autotune_cache_path(char *path, size_t size, int create, struct ndt_error *err)
{
    static const char name[] = "/routes";
    char folder[PATH_BYTES];
    struct stat info;
    const int length = choose_folder(folder, sizeof(folder));
    if (length <= 0)
        return ndt_fail(err, NDT_ERR_IO,
                        "no folder for a cache: CACHE_DIRECTORY, XDG_CACHE_HOME and HOME are not set");
    if ((size_t)length >= sizeof(folder) || (size_t)length + sizeof(name) > size)
        return ndt_fail(err, NDT_ERR_IO, "the path of the cache is too long: %.100s...", folder);
    if (create)
        make_folders(folder);
    if (create && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)))
        return ndt_fail(err, NDT_ERR_IO, "%.300s: cannot be made a folder", folder);
    snprintf(path, size, "%s%s", folder, name);
    return NDT_OK;
}

/* ---- one entry as text ---- */

static void put_cost(FILE *to, const struct ndt_cost *cost)
{
    fprintf(to, " %.9g %.9g", cost->fixed_us, cost->point_us);
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

/* Reasons are told again at the next start: a line of its own, printable. */
static void put_row(FILE *to, const struct ndtd_autotune_row *row)
{
    fprintf(to, "way %s %s %d %d %d %zu %.9g %.9g %.9g\n", row->candidate.backend, or_dash(row->candidate.pipeline),
            row->candidate.threads, row->candidate.batch, row->is_here, row->samples, row->p50_us, row->p95_us,
            row->open_us);
    fputs("why ", to);
    for (const char *c = row->why; *c; c++)
        fputc(*c >= ' ' && *c < 0x7f ? *c : '?', to);
    fputc('\n', to);
}

static void put_entry(FILE *to, uint64_t key, const struct ndtd_autotune_result *tuned)
{
    fprintf(to, "route %016" PRIx64 " %" PRId64 " %016" PRIx64 " %zu %.9g %.9g %d %zu\n", key, tuned->measured_s,
            tuned->map_id, tuned->points, tuned->took_us, tuned->evaluation_us, tuned->choice.row,
            tuned->row_count);
    fputs("costs", to);
    put_cost(to, &tuned->costs.assess);
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        put_cost(to, &tuned->costs.levels[i]);
    fputc('\n', to);
    for (size_t i = 0; i < tuned->row_count; i++)
        put_row(to, &tuned->rows[i]);
}

/* With the line that closes it; NULL without memory. */
static char *format_entry(uint64_t key, const struct ndtd_autotune_result *tuned)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    put_entry(to, key, tuned);
    fflush(to);
    fprintf(to, "end %016" PRIx64 "\n", ndt_hash64(text, size, 0));
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- and back ---- */

/* The entry at *at; *at moves behind it. Returns its length up to the closing line, 0 when it is damaged. */
static size_t next_entry(const char **at)
{
    const char *start = *at, *end = strstr(start, "\nend ");
    uint64_t hash;
    if (!end) {
        *at = start + strlen(start);
        return 0;
    }
    end++;
    *at = end + strcspn(end, "\n");
    *at += **at == '\n';
    const size_t length = (size_t)(end - start);
    return sscanf(end, "end %16" SCNx64, &hash) == 1 && hash == ndt_hash64(start, length, 0) ? length : 0;
}

static int is_time(double us)
{
    return isfinite(us) && us >= 0 && us < 1e12;
}

static const char *after_line(const char *text)
{
    text += strcspn(text, "\n");
    return text + (*text == '\n');
}

static int read_cost(const char **at, struct ndt_cost *cost)
{
    int used = 0;
    if (sscanf(*at, " %lf %lf%n", &cost->fixed_us, &cost->point_us, &used) != 2)
        return 0;
    *at += used;
    return is_time(cost->fixed_us) && is_time(cost->point_us);
}

static int read_costs(const char *at, struct ndt_align_costs *costs)
{
    if (strncmp(at, "costs", 5) != 0)
        return 0;
    at += 5;
    int good = read_cost(&at, &costs->assess);
    for (int i = 0; good && i < NDT_MAX_LEVELS; i++)
        good = read_cost(&at, &costs->levels[i]);
    return good;
}

static int read_row(const char *at, struct ndtd_autotune_row *row)
{
    _Static_assert(NDTD_AUTOTUNE_NAME == 32, "the widths below");
    struct ndtd_backend_candidate *candidate = &row->candidate;
    if (sscanf(at, "way %31s %31s %d %d %d %zu %lf %lf %lf", candidate->backend, candidate->pipeline,
               &candidate->threads, &candidate->batch, &row->is_here, &row->samples, &row->p50_us, &row->p95_us,
               &row->open_us) != 9)
        return 0;
    if (strcmp(candidate->pipeline, "-") == 0)
        candidate->pipeline[0] = '\0';
    at = after_line(at);
    if (strncmp(at, "why ", 4) != 0)
        return 0;
    snprintf(row->why, sizeof(row->why), "%.*s", (int)strcspn(at + 4, "\n"), at + 4);
    return candidate->threads >= 0 && candidate->threads <= 256 && candidate->batch >= 1 &&
           candidate->batch <= 1000000 && is_time(row->p50_us) && is_time(row->p95_us) && is_time(row->open_us);
}

static int read_entry(const char *at, struct ndtd_autotune_result *out)
{
    uint64_t key;
    memset(out, 0, sizeof(*out));
    if (sscanf(at, "route %16" SCNx64 " %" SCNd64 " %16" SCNx64 " %zu %lf %lf %d %zu", &key, &out->measured_s,
               &out->map_id, &out->points, &out->took_us, &out->evaluation_us, &out->choice.row,
               &out->row_count) != 8)
        return 0;
    if (out->row_count < 1 || out->row_count > NDTD_AUTOTUNE_ROWS || out->choice.row < 0 ||
        (size_t)out->choice.row >= out->row_count || !is_time(out->took_us) || !is_time(out->evaluation_us))
        return 0;
    at = after_line(at);
    if (!read_costs(at, &out->costs))
        return 0;
    for (size_t i = 0; i < out->row_count; i++) {
        at = after_line(at);
        if (!read_row(at, &out->rows[i]))
            return 0;
        at = after_line(at);
    }
    return 1;
}

static uint64_t key_of(const char *entry)
{
    uint64_t key = 0;
    return sscanf(entry, "route %16" SCNx64, &key) == 1 ? key : 0;
}

/* ---- the file ---- */

static int read_all(int fd, char *text, size_t size)
{
    size_t used = 0;
    for (ssize_t count = 1; count > 0 && used < size; used += (size_t)(count > 0 ? count : 0))
        count = read(fd, text + used, size - used);
    text[used < size ? used : size - 1] = '\0';
    return used < size && strlen(text) == used;
}

/* The text behind the first line, to be freed by the caller as *whole; NULL: nothing usable is there. */
static const char *read_file(const char *path, char **whole)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *why = NULL;
    *whole = NULL;
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0)
        why = strerror(errno);
    else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > FILE_BYTES)
        why = "it is not a file, or larger than 256 KiB";
    else if (!(*whole = malloc(FILE_BYTES + 2)))
        why = "no memory";
    else if (!read_all(fd, *whole, FILE_BYTES + 2) || strncmp(*whole, FIRST_LINE, strlen(FIRST_LINE)) != 0)
        why = "it is damaged, or of another version";
    if (fd >= 0)
        close(fd);
    if (!why)
        return *whole + strlen(FIRST_LINE);
    ndtd_log(NDTD_LOG_WARNING, "%.300s: ignored: %s", path, why);
    return NULL;
}

int ndtd_autotune_cache_find(const char *path, uint64_t key, double budget_us, struct ndtd_autotune_result *out)
{
    char *whole;
    const char *at = read_file(path, &whole);
    int found = 0, damaged = 0;
    while (at && *at && !found) {
        const char *entry = at;
        const size_t length = next_entry(&at);
        damaged += length == 0;
        if (length > 0 && key != 0 && key_of(entry) == key) {
            found = read_entry(entry, out);
            damaged += !found;
        }
    }
    free(whole);
    if (damaged)
        ndtd_log(NDTD_LOG_WARNING, "%.300s: %d damaged entr%s ignored", path, damaged, damaged == 1 ? "y" : "ies");
    if (!found)
        return 0;
    const int stored = out->choice.row;
    out->source = NDTD_AUTOTUNE_CACHED;
    out->budget_us = budget_us;
    out->choice = ndtd_autotune_decide(out->rows, out->row_count, budget_us);
    return out->choice.row == stored;
}

/* The entries of before, without the damaged ones and the one that is replaced. */
static void copy_others(FILE *to, const char *path, uint64_t key, size_t room)
{
    char *whole;
    const char *at = read_file(path, &whole);
    for (int kept = 1; at && *at && kept < ENTRIES;) {
        const char *entry = at;
        const size_t length = next_entry(&at), size = (size_t)(at - entry);
        if (length == 0 || key_of(entry) == key)
            continue;
        if (size > room)
            break;
        fwrite(entry, 1, size, to);
        room -= size;
        kept++;
    }
    free(whole);
}

enum ndt_status ndtd_autotune_cache_store(const char *path, uint64_t key, const struct ndtd_autotune_result *tuned,
                                          struct ndt_error *err)
{
    struct ndt_output output;
    if (key == 0 || tuned->choice.row < 0)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "nothing to keep");
    char *entry = format_entry(key, tuned);
    if (!entry)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for an entry of %s", path);
    enum ndt_status status = ndt_output_open(&output, path, err);
    if (status == NDT_OK) {
        fputs(FIRST_LINE, output.file);
        fputs(entry, output.file);
        copy_others(output.file, path, key, FILE_BYTES - strlen(FIRST_LINE) - strlen(entry));
        status = ndt_output_commit(&output, err);
    }
    free(entry);
    return status;
}
