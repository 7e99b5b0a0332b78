#include "ndt_io/map_file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "ndt/names.h"
#include "cloud_reader.h"
#include "ndt_io/compiled_map.h"
#include "ndt_io/input_file.h"

int ndt_map_is_compiled(const char *path)
{
    static const char extension[] = ".ndtmap";
    const size_t length = strlen(path);
    const size_t size = sizeof(extension) - 1;
    return length > size && strcasecmp(path + length - size, extension) == 0;
}

/* Adds one cloud file, with its change or NULL, to the builder; `cloud` is scratch memory that is reused. */
static enum ndt_status add_file(struct ndt_map_builder *builder, struct ndt_cloud *cloud, const char *path,
                                const char *change, struct ndt_progress *progress, struct ndt_error *err)
{
    enum ndt_status status = ndt_tile_read(cloud, path, change, progress, err);
    if (status != NDT_OK)
        return status;
    status = ndt_map_builder_add(builder, cloud, err);
    return status == NDT_OK ? status : ndt_fail_prefix(err, status, "%s", path);
}

static enum ndt_status add_directory(struct ndt_map_builder *builder, struct ndt_cloud *cloud, const char *path,
                                     struct ndt_progress *progress, struct ndt_error *err)
{
    struct ndt_tile_set set;
    enum ndt_status status = ndt_tile_set_open(&set, path, err);
    ndt_progress_set(progress, NDT_PROGRESS_ALL_TILES, set.count);
    for (size_t i = 0; status == NDT_OK && i < set.count; i++)
        status = add_file(builder, cloud, set.tiles[i].path, set.tiles[i].change, progress, err);
    ndt_tile_set_close(&set);
    return status;
}

static enum ndt_status add_path(struct ndt_map_builder *builder, const char *path, struct ndt_progress *progress,
                                struct ndt_error *err)
{
    struct stat info;
    struct ndt_cloud cloud;
    ndt_cloud_init(&cloud);
    if (stat(path, &info) != 0)
        return ndt_fail(err, NDT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    enum ndt_status status = ndt_map_is_tile_set(path) ? add_directory(builder, &cloud, path, progress, err)
                                                       : add_file(builder, &cloud, path, NULL, progress, err);
    ndt_cloud_free(&cloud);
    if (status == NDT_OK && ndt_map_builder_points(builder) == 0)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: contains no finite point to build a map from", path);
    return status;
}

static enum ndt_status build(struct ndt_map **out, const char *path, const struct ndt_map_config *config,
                             struct ndt_progress *progress, struct ndt_error *err)
{
    struct ndt_map_builder *builder;
    enum ndt_status status = ndt_map_builder_create(&builder, config, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", path);
    ndt_map_builder_watch(builder, progress);
    status = add_path(builder, path, progress, err);
    if (status == NDT_OK) {
        status = ndt_map_build(out, builder, err);
        if (status != NDT_OK)
            ndt_fail_prefix(err, status, "%s", path);
    }
    ndt_map_builder_destroy(builder);
    return status;
}

static enum ndt_status fail_value(const char *path, const char *name, double has, double wanted,
                                  struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: compiled with %s %g instead of %g: compile it again", path, name,
                    has, wanted);
}

static enum ndt_status check_rules(const struct ndt_map *map, const char *path, const struct ndt_map_config *config,
                                   struct ndt_error *err)
{
    const struct ndt_map_config *has = &map->config;
    for (size_t i = 0; i < config->level_count; i++)
        if (ndt_map_find_level(map, config->leaf_m[i]) < 0)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: compiled without a level of %g m: compile it again", path,
                            config->leaf_m[i]);
    if (has->min_points != config->min_points)
        return fail_value(path, "min_points", has->min_points, config->min_points, err);
    if (has->min_eigenvalue_ratio != config->min_eigenvalue_ratio)
        return fail_value(path, "min_eigenvalue_ratio", has->min_eigenvalue_ratio, config->min_eigenvalue_ratio,
                          err);
    if (has->outlier_ratio != config->outlier_ratio)
        return fail_value(path, "outlier_ratio", has->outlier_ratio, config->outlier_ratio, err);
    if (has->covariance != config->covariance)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: compiled with %s covariances instead of %s: compile it again",
                        path, ndt_covariance_name(has->covariance), ndt_covariance_name(config->covariance));
    return NDT_OK;
}

static enum ndt_status open_compiled(struct ndt_map **out, const char *path, const struct ndt_map_config *config,
                                     struct ndt_progress *progress, struct ndt_error *err)
{
    struct ndt_map *map;
    enum ndt_status status = ndt_map_open_with(&map, path, progress, err);
    if (status != NDT_OK)
        return status;
    status = check_rules(map, path, config, err);
    if (status == NDT_OK)
        *out = map;
    else
        ndt_map_release(map);
    return status;
}

enum ndt_status ndt_map_load(struct ndt_map **out, const char *path, const struct ndt_map_config *config,
                             struct ndt_error *err)
{
    return ndt_map_load_with(out, path, config, NULL, err);
}

enum ndt_status ndt_map_load_with(struct ndt_map **out, const char *path, const struct ndt_map_config *config,
                                  struct ndt_progress *progress, struct ndt_error *err)
{
    *out = NULL;
    return ndt_map_is_compiled(path) ? open_compiled(out, path, config, progress, err)
                                     : build(out, path, config, progress, err);
}

enum ndt_status ndt_map_path_check(const char *path, struct ndt_error *err)
{
    char list[64];
    enum ndt_status status = ndt_input_file_check(path, 1, err);
    if (status != NDT_OK || ndt_map_is_compiled(path) || ndt_cloud_format_find(path) || ndt_map_is_tile_set(path))
        return status;
    return ndt_fail(err, NDT_ERR_UNSUPPORTED,
                    "%s: neither a map nor a point cloud; extensions: .ndtmap%s; ndt-import map reads more", path,
                    ndt_cloud_format_list(list, sizeof(list)));
}
