#define _GNU_SOURCE /* CPU sets */
#include "ndtd/options.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "ndtd/nearest_name.h"
#include "ndtd/option_value.h"
#include "ndtd/realtime.h"
#include "option_table.h"

enum { VALUE_TEXT_MAX = 2048 };

size_t ndtd_option_count(void)
{
    return ndtd_option_table_count;
}

const struct ndtd_option *ndtd_option_at(size_t i)
{
    return i < ndtd_option_table_count ? &ndtd_option_table[i] : NULL;
}

const struct ndtd_option *ndtd_option_find(const char *name)
{
    for (size_t i = 0; i < ndtd_option_table_count; i++)
        if (strcmp(ndtd_option_table[i].name, name) == 0)
            return &ndtd_option_table[i];
    return NULL;
}

const struct ndtd_option *ndtd_option_target(const struct ndtd_option *option)
{
    return option->alias_of ? ndtd_option_find(option->alias_of) : option;
}

const char *ndtd_option_type_name(enum ndtd_option_type type)
{
    static const char *const names[] = {"bool", "int",    "int",  "int",           "int",           "real",
                                        "enum", "string", "path", "list of reals", "list of enums", "pose"};
    return names[type];
}

enum ndt_status ndtd_option_set(struct ndtd_settings *settings, const struct ndtd_option *option,
                                const struct ndtd_value *value, struct ndt_error *err)
{
    return ndtd_option_store(settings, option, value, err);
}

enum ndt_status ndtd_option_unknown(const char *name, struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(name);
    for (size_t i = 0; i < ndtd_option_table_count; i++)
        ndtd_nearest_offer(&nearest, ndtd_option_table[i].name);
    char hint[128];
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not an option%s", name, hint);
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    return text;
}

static int takes_list(const struct ndtd_option *option)
{
    return option->type == NDTD_REAL_LIST || option->type == NDTD_ENUM_LIST || option->type == NDTD_POSE;
}

/* Splits "[a, b]" or "a, b" in place. */
static enum ndt_status split_list(char *text, const struct ndtd_option *option, struct ndtd_value *value,
                                  struct ndt_error *err)
{
    size_t length = strlen(text);
    *value = (struct ndtd_value){.is_list = 1};
    if (*text == '[') {
        if (text[length - 1] != ']')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the list is not closed with ]", option->name);
        text[length - 1] = '\0';
        text = trim(text + 1);
    }
    if (*text == '\0')
        return NDT_OK;
    for (char *item = text; item;) {
        char *comma = strchr(item, ',');
        if (comma)
            *comma = '\0';
        if (value->count == NDTD_VALUE_ITEMS)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: more than %d values", option->name, NDTD_VALUE_ITEMS);
        value->items[value->count++] = trim(item);
        item = comma ? comma + 1 : NULL;
    }
    return NDT_OK;
}

static enum ndt_status set_from_text(struct ndtd_settings *settings, const struct ndtd_option *option,
                                     const char *text, struct ndt_error *err)
{
    char copy[VALUE_TEXT_MAX];
    if (strlen(text) >= sizeof(copy))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: text of %zu bytes, at most %zu are possible", option->name,
                        strlen(text), sizeof(copy) - 1);
    strcpy(copy, text);
    struct ndtd_value value = {.count = 1, .items = {copy}};
    if (takes_list(option)) {
        enum ndt_status status = split_list(trim(copy), option, &value, err);
        if (status != NDT_OK)
            return status;
    }
    return ndtd_option_store(settings, option, &value, err);
}

enum ndt_status ndtd_option_set_text(struct ndtd_settings *settings, const char *name, const char *text,
                                     struct ndt_error *err)
{
    const struct ndtd_option *option = ndtd_option_find(name);
    return option ? set_from_text(settings, option, text, err) : ndtd_option_unknown(name, err);
}

void ndtd_settings_default(struct ndtd_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    settings->initial_pose[6] = 1;
    for (size_t i = 0; i < ndtd_option_table_count; i++)
        if (!ndtd_option_table[i].alias_of &&
            set_from_text(settings, &ndtd_option_table[i], ndtd_option_table[i].text, NULL) != NDT_OK)
            abort(); /* a wrong row of the table, not wrong input */
    if (ndtd_settings_finish(settings, NULL) != NDT_OK)
        abort();
}

static enum ndt_status check_backend(const struct ndtd_settings *settings, struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(settings->backend);
    char known[200] = "auto";
    ndtd_nearest_offer(&nearest, "auto");
    for (size_t i = 0; ndt_backend_at(i); i++) {
        ndtd_nearest_offer(&nearest, ndt_backend_at(i)->name);
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, ", %s", ndt_backend_at(i)->name);
    }
    if (nearest.name && nearest.distance == 0)
        return NDT_OK;
    char hint[80];
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "backend.name: '%s' is not one of %s%s", settings->backend, known, hint);
}

static enum ndt_status check_levels(const struct ndtd_settings *settings, struct ndt_error *err)
{
    const struct ndt_align_params *align = &settings->align;
    for (size_t i = 1; i < align->level_count; i++)
        if (!(align->levels[i].leaf_m < align->levels[i - 1].leaf_m))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "ndt.levels: %g m after %g m, but they go from coarse to fine",
                            align->levels[i].leaf_m, align->levels[i - 1].leaf_m);
    if (align->variant == NDT_AUTOWARE && align->level_count != 1)
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "ndt.levels: %zu levels, but ndt.variant autoware has one, such as [2.0]",
                        align->level_count);
    return NDT_OK;
}

static enum ndt_status check_ranges(const struct ndt_preprocess_params *pre, struct ndt_error *err)
{
    if (!(pre->min_range_m < pre->max_range_m))
        return ndt_fail(err, NDT_ERR_ARGUMENT,
                        "preprocess.min_range_m: %g m is not below preprocess.max_range_m, %g m", pre->min_range_m,
                        pre->max_range_m);
    for (int i = 0; i < 3; i++)
        if (!(pre->crop_min_m[i] < pre->crop_max_m[i]))
            return ndt_fail(err, NDT_ERR_ARGUMENT,
                            "preprocess.crop_min_m: %g m (%c) is not below preprocess.crop_max_m, %g m",
                            pre->crop_min_m[i], "xyz"[i], pre -> crop_max_m[i]);
    return NDT_OK;
}

/* The word as the table has it, so that copies of the settings stay valid; NULL for the first, auto. */
static const char *name_in_table(const char *option, const char *word)
{
    const char *const *names = ndtd_option_find(option)->names;
    for (size_t i = 1; names[i]; i++)
        if (strcmp(names[i], word) == 0)
            return names[i];
    return NULL;
}

static enum ndt_status check_cpus(const struct ndtd_settings *settings, struct ndt_error *err)
{
    cpu_set_t cpus;
    return ndtd_cpu_list_parse(settings->rt_cpus, &cpus, err);
}

static void derive(struct ndtd_settings *settings)
{
    struct ndt_align_params *align = &settings->align;
    settings->map.level_count = align->level_count;
    for (size_t i = 0; i < align->level_count; i++) {
        settings->map.leaf_m[i] = align->levels[i].leaf_m;
        size_t from_finest = align->level_count - i; /* 1 = the finest */
        size_t given = settings->neighbours_count;
        align->levels[i].neighbours = settings->neighbours[from_finest > given ? 0 : given - from_finest];
    }
    settings->compute.isa = name_in_table("cpu.isa", settings->isa);
    settings->compute.pipeline = name_in_table("cuda.pipeline", settings->cuda_pipeline);
}

enum ndt_status ndtd_settings_finish(struct ndtd_settings *settings, struct ndt_error *err)
{
    enum ndt_status status = check_backend(settings, err);
    if (status == NDT_OK)
        status = check_levels(settings, err);
    if (status == NDT_OK)
        status = check_ranges(&settings->preprocess, err);
    if (status == NDT_OK)
        status = check_cpus(settings, err);
    if (status == NDT_OK)
        derive(settings);
    return status;
}

const char *ndtd_option_format(const struct ndtd_settings *settings, const struct ndtd_option *option, char *text,
                               size_t size)
{
    ndtd_option_load(settings, option, text, size);
    return text;
}

int ndtd_settings_threads(const struct ndtd_settings *settings)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
    if (settings->compute.threads > 0)
        return settings->compute.threads;
    return count < 4 ? count : 4;
}
