#include "ndtd/settings_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "ndt/hash.h"

enum { VALUE_MAX = 4200 };

/* Copies a value; the items of a list are option->size bytes apart. */
static void copy_value(struct ndtd_settings *to, const struct ndtd_settings *from, const struct ndtd_option *option)
{
    static const size_t sizes[] = {
        [NDTD_BOOL] = sizeof(int),
        [NDTD_INT] = sizeof(int),
        [NDTD_UINT32] = sizeof(uint32_t),
        [NDTD_UINT64] = sizeof(uint64_t),
        [NDTD_SIZE] = sizeof(size_t),
        [NDTD_REAL] = sizeof(double),
        [NDTD_ENUM] = sizeof(int),
        [NDTD_CHOICE] = sizeof(const char *),
        [NDTD_REAL_LIST] = sizeof(double),
        [NDTD_ENUM_LIST] = sizeof(int),
        [NDTD_TRANSFORM] = sizeof(struct ndt_pose),
        [NDTD_SENSORS] = sizeof(struct ndtd_sensor_frame),
    };
    const size_t items = option->max_items ? option->max_items : 1;
    size_t size = sizes[option->type];
    if (size == 0) /* text */
        size = option->size;
    for (size_t i = 0; i < items; i++) {
        const size_t at = option->offset + i * option->size;
        memcpy((char *)to + at, (const char *)from + at, size);
    }
    if (option->count_offset != SIZE_MAX)
        memcpy((char *)to + option->count_offset, (const char *)from + option->count_offset, sizeof(size_t));
}

static void add_name(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    const char *between = used ? ", " : "";
    if (used + strlen(between) + strlen(name) + 1 <= size) {
        strcat(list, between);
        strcat(list, name);
    }
}

static int differs(const struct ndtd_settings *a, const struct ndtd_settings *b, const struct ndtd_option *option)
{
    char one[VALUE_MAX], other[VALUE_MAX];
    return strcmp(ndtd_option_format(a, option, one, sizeof(one)),
                  ndtd_option_format(b, option, other, sizeof(other))) != 0;
}

void ndtd_settings_merge(struct ndtd_settings *running, const struct ndtd_settings *wanted, char *restart,
                         size_t size)
{
    restart[0] = '\0';
    for (size_t i = 0; i < ndtd_option_count(); i++) {
        const struct ndtd_option *option = ndtd_option_at(i);
        if (option->alias_of || !differs(running, wanted, option))
            continue;
        if (option->reloadable)
            copy_value(running, wanted, option);
        else
            add_name(restart, size, option->name);
    }
    /* Derives the neighbours per level again. */
    if (ndtd_settings_finish(running, NULL) != NDT_OK)
        abort(); /* options that constrain each other are either all reloadable or all fixed */
}

uint64_t ndtd_settings_hash(const struct ndtd_settings *settings)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return 0;
    ndtd_options_print_config(file, settings, NDTD_ALL_OPTIONS);
    const int failed = fclose(file);
    const uint64_t hash = failed ? 0 : ndt_hash64(text, size, 0);
    free(text);
    return hash;
}

enum ndt_status ndtd_settings_snapshot_create(const struct ndtd_settings_snapshot **out,
                                              const struct ndtd_settings *settings, struct ndt_error *err)
{
    struct ndtd_settings_snapshot *snapshot = malloc(sizeof(*snapshot));
    *out = snapshot;
    if (!snapshot)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the settings");
    *snapshot = (struct ndtd_settings_snapshot){
        .settings = *settings, .hash = ndtd_settings_hash(settings), .references = 1};
    return NDT_OK;
}

const struct ndtd_settings_snapshot *ndtd_settings_snapshot_acquire(const struct ndtd_settings_snapshot *snapshot)
{
    __atomic_fetch_add(&((struct ndtd_settings_snapshot *)snapshot)->references, 1, __ATOMIC_RELAXED);
    return snapshot;
}

void ndtd_settings_snapshot_release(const struct ndtd_settings_snapshot *snapshot)
{
    struct ndtd_settings_snapshot *held = (struct ndtd_settings_snapshot *)snapshot;
    if (held && __atomic_sub_fetch(&held->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(held);
}

void ndtd_settings_snapshot_replace(const struct ndtd_settings_snapshot **held,
                                    const struct ndtd_settings_snapshot *next)
{
    const struct ndtd_settings_snapshot *before = *held;
    *held = next ? ndtd_settings_snapshot_acquire(next) : NULL;
    ndtd_settings_snapshot_release(before);
}
