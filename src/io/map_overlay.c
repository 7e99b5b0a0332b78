/* Overlays: a folder beside a map holds a file of changes for each tile that has changed since it was mapped. */
#include "map_overlay.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "input.h"
#include "ndt_io/cloud_file.h"
#include "ndt_io/input_file.h"

/* ---- map_overlay.yaml: the map that is changed, and the id of the changes ---- */

enum { TEXT_BYTES_MAX = 65536 };

int ndt_map_is_overlay(const char *path)
{
    char name[PATH_MAX];
    struct stat info;
    const int used = snprintf(name, sizeof(name), "%s/" NDT_MAP_OVERLAY, path);
    return used < PATH_MAX && stat(name, &info) == 0 && S_ISREG(info.st_mode);
}

static const char *scalar_text(yaml_document_t *document, int number)
{
    const yaml_node_t *node = yaml_document_get_node(document, number);
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* The scalar behind a key of the mapping; NULL: there is none. */
static const char *find_scalar(yaml_document_t *document, const char *key)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top;
         pair++) {
        const char *text = scalar_text(document, pair->key);
        if (text && strcmp(text, key) == 0)
            return scalar_text(document, pair->value);
    }
    return NULL;
}

static int parse_id(const char *text, uint64_t *out)
{
    char *end;
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return 0;
    *out = strtoull(text, &end, 16);
    return *end == '\0' && *out != 0;
}

static enum ndt_status take_values(struct ndt_map_overlay *out, yaml_document_t *document, const char *folder,
                                   struct ndt_error *err)
{
    const char *map = find_scalar(document, "map");
    if (!parse_id(find_scalar(document, "overlay_id"), &out->id))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s/" NDT_MAP_OVERLAY ": overlay_id: not 16 hexadecimal digits",
                        folder);
    if (!map || !*map)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s/" NDT_MAP_OVERLAY ": map: not the path of a map", folder);
    const int used = *map == '/' ? snprintf(out->map, sizeof(out->map), "%s", map)
                                 : snprintf(out->map, sizeof(out->map), "%s/%s", folder, map);
    if (used >= (int)sizeof(out->map))
        return ndt_fail(err, NDT_ERR_LIMIT, "%s/" NDT_MAP_OVERLAY ": the path of the map is too long", folder);
    return NDT_OK;
}

static enum ndt_status parse_overlay(struct ndt_map_overlay *out, const char *text, size_t size, const char *folder,
                                     struct ndt_error *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return ndt_fail(err, NDT_ERR_MEMORY, "%s: no memory", folder);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    enum ndt_status status;
    if (yaml_parser_load(&parser, &document)) {
        status = take_values(out, &document, folder, err);
        yaml_document_delete(&document);
    } else {
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s/" NDT_MAP_OVERLAY ": line %zu: %s", folder,
                          parser.problem_mark.line + 1, parser.problem ? parser.problem : "not YAML");
    }
    yaml_parser_delete(&parser);
    return status;
}

enum ndt_status ndt_map_overlay_open(struct ndt_map_overlay *out, const char *path, struct ndt_error *err)
{
    char name[PATH_MAX], *text;
    size_t size;
    memset(out, 0, sizeof(*out));
    if (snprintf(name, sizeof(name), "%s/" NDT_MAP_OVERLAY, path) >= PATH_MAX)
        return ndt_fail(err, NDT_ERR_LIMIT, "%.100s...: the path is too long", path);
    enum ndt_status status = ndt_input_file_read(&text, &size, name, TEXT_BYTES_MAX, err);
    if (status != NDT_OK)
        return status;
    status = parse_overlay(out, text, size, path, err);
    free(text);
    if (status == NDT_OK && ndt_map_is_overlay(out->map))
        status = ndt_fail(err, NDT_ERR_UNSUPPORTED, "%s: changes %s, which is an overlay itself", path, out->map);
    return status;
}

/* ---- NAME.change ----
 *
 * Little endian: a head; the positions of points that are gone, ascending, in the order in which the tile is read;
 * x, y, z of points that are new. The counts of the tile and the sum of its coordinates bind a change to its map.
 */

static const char MAGIC[8] = {'N', 'D', 'T', 'D', 'C', 'H', 'G', '1'};

struct change_head {
    char magic[8];
    uint64_t overlay_id;
    uint64_t base_points; /* points of the tile before the change */
    uint64_t base_sum;    /* sum modulo 2^64 of the bits of x, y, z of its finite points, as doubles (map frame) */
    uint64_t removed, added;
};

struct change {
    struct ndt_input input;
    struct change_head head;
};

static enum ndt_status fail_change(const struct change *change, const char *what, struct ndt_error *err)
{
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: %s", change->input.path, what);
}

static enum ndt_status check_head(const struct change *change, struct ndt_error *err)
{
    const struct change_head *head = &change->head;
    if (memcmp(head->magic, MAGIC, sizeof(MAGIC)) != 0)
        return fail_change(change, "not a change of a tile", err);
    if (head->base_points > NDT_CLOUD_MAX_POINTS || head->removed > head->base_points ||
        head->added > NDT_CLOUD_MAX_POINTS - (head->base_points - head->removed))
        return fail_change(change, "removes or adds more points than a cloud can have", err);
    const uint64_t bytes = sizeof(*head) + 4 * head->removed + 24 * head->added;
    if (change->input.size == bytes)
        return NDT_OK;
    return ndt_fail(err, NDT_ERR_FORMAT, "%s: %" PRIu64 " bytes instead of %" PRIu64, change->input.path,
                    change->input.size, bytes);
}

/* Opens a change; after a failure nothing is open. */
static enum ndt_status open_change(struct change *change, const char *path, struct ndt_error *err)
{
    enum ndt_status status = ndt_input_open(&change->input, path, err);
    if (status != NDT_OK)
        return status;
    status = ndt_input_read(&change->input, 0, &change->head, sizeof(change->head), err);
    if (status == NDT_OK)
        status = check_head(change, err);
    if (status != NDT_OK)
        ndt_input_close(&change->input);
    return status;
}

enum ndt_status ndt_change_check(const char *path, uint64_t id, struct ndt_error *err)
{
    struct change change;
    enum ndt_status status = open_change(&change, path, err);
    if (status != NDT_OK)
        return status;
    if (change.head.overlay_id != id)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: is of overlay %016" PRIx64 ", not %016" PRIx64, path,
                          change.head.overlay_id, id);
    ndt_input_close(&change.input);
    return status;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t sum_of_points(const struct ndt_cloud *cloud)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < cloud->count; i++) {
        const double x_m = cloud->origin_m[0] + (double)cloud->x_m[i];
        const double y_m = cloud->origin_m[1] + (double)cloud->y_m[i];
        const double z_m = cloud->origin_m[2] + (double)cloud->z_m[i];
        if (isfinite(x_m) && isfinite(y_m) && isfinite(z_m))
            sum += bits_of(x_m) + bits_of(y_m) + bits_of(z_m);
    }
    return sum;
}

/* Moves the points [from, end) to `to`, which is before them. */
static void move_points(struct ndt_cloud *cloud, size_t to, size_t from, size_t end)
{
    float *const columns[] = {cloud->x_m, cloud->y_m, cloud->z_m, cloud->intensity, cloud->time_s};
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (columns[i] && end > from)
            memmove(columns[i] + to, columns[i] + from, (end - from) * sizeof(float));
}

static enum ndt_status remove_points(struct ndt_cloud *cloud, const struct change *change, struct ndt_error *err)
{
    uint32_t gone[4096];
    size_t kept = 0, next = 0; /* points that stay so far; first undecided point */
    for (uint64_t done = 0; done < change->head.removed;) {
        const uint64_t left = change->head.removed - done;
        const size_t count = left < 4096 ? (size_t)left : 4096;
        enum ndt_status status =
            ndt_input_read(&change->input, sizeof(change->head) + 4 * done, gone, 4 * count, err);
        if (status != NDT_OK)
            return status;
        for (size_t i = 0; i < count; i++) {
            if (gone[i] < next || gone[i] >= cloud->count)
                return fail_change(change, "positions of points that do not ascend, or lie behind the last", err);
            move_points(cloud, kept, next, gone[i]);
            kept += gone[i] - next;
            next = (size_t)gone[i] + 1;
        }
        done += count;
    }
    move_points(cloud, kept, next, cloud->count);
    cloud->count = kept + (cloud->count - next);
    return NDT_OK;
}

static void append_point(struct ndt_cloud *cloud, const double point_m[3])
{
    const size_t i = cloud->count++;
    cloud->x_m[i] = (float)(point_m[0] - cloud->origin_m[0]);
    cloud->y_m[i] = (float)(point_m[1] - cloud->origin_m[1]);
    cloud->z_m[i] = (float)(point_m[2] - cloud->origin_m[2]);
    if (cloud->intensity)
        cloud->intensity[i] = 0;
    if (cloud->time_s)
        cloud->time_s[i] = 0;
}

static enum ndt_status add_points(struct ndt_cloud *cloud, const struct change *change, struct ndt_error *err)
{
    const uint64_t begin = sizeof(change->head) + 4 * change->head.removed;
    double points_m[512][3];
    enum ndt_status status = ndt_cloud_reserve(cloud, cloud->count + (size_t)change->head.added, 0, err);
    for (uint64_t done = 0; status == NDT_OK && done < change->head.added;) {
        const uint64_t left = change->head.added - done;
        const size_t count = left < 512 ? (size_t)left : 512;
        status = ndt_input_read(&change->input, begin + 24 * done, points_m, 24 * count, err);
        for (size_t i = 0; status == NDT_OK && i < count; i++) {
            if (isfinite(points_m[i][0]) && isfinite(points_m[i][1]) && isfinite(points_m[i][2]))
                append_point(cloud, points_m[i]);
            else
                status = fail_change(change, "adds a point that is not finite", err);
        }
        done += count;
    }
    return status;
}

static enum ndt_status apply(struct ndt_cloud *cloud, const char *path, const char *change_path,
                             struct ndt_error *err)
{
    struct change change;
    enum ndt_status status = open_change(&change, change_path, err);
    if (status != NDT_OK)
        return status;
    if (cloud->count != change.head.base_points || sum_of_points(cloud) != change.head.base_sum)
        status =
            ndt_fail(err, NDT_ERR_ARGUMENT, "%s: was made for other points than those of %s", change_path, path);
    if (status == NDT_OK)
        status = remove_points(cloud, &change, err);
    if (status == NDT_OK)
        status = add_points(cloud, &change, err);
    ndt_input_close(&change.input);
    return status;
}

enum ndt_status ndt_tile_read(struct ndt_cloud *out, const char *path, const char *change,
                              struct ndt_progress *progress, struct ndt_error *err)
{
    enum ndt_status status = ndt_cloud_read_with(out, path, progress, err);
    if (status == NDT_OK && change)
        status = apply(out, path, change, err);
    if (status != NDT_OK)
        out->count = 0;
    return status;
}
