#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CELL_M = 4.0;
static const int MAX_CELLS_PER_AXIS = 8192;

/* Margin of a cylinder around a solid, for rounding. */
static const double AROUND_M = 1e-6;

/* Reflectance of a surface that absorbs the ray: no return, and nothing behind it is visible. */
static const float ABSORBED = -1.0f;

void sim_world_init(struct sim_world *world)
{
    memset(world, 0, sizeof(*world));
    world->cell_m = CELL_M;
}

void sim_world_free(struct sim_world *world)
{
    free(world->solids);
    free(world->cell_first);
    free(world->cell_solids);
    free(world->cell_top_m);
    sim_world_init(world);
}

void sim_world_add(struct sim_world *world, const struct sim_solid *solid)
{
    if (world->count == world->capacity) {
        const uint32_t capacity = world->capacity ? 2 * world->capacity : 256;
        struct sim_solid *grown = realloc(world->solids, capacity * sizeof(*grown));
        if (!grown) {
            world->out_of_memory = 1;
            return;
        }
        world->solids = grown;
        world->capacity = capacity;
    }
    world->solids[world->count++] = *solid;
}

struct sim_solid sim_box(const double centre_m[3], const double half_m[3], double yaw_rad)
{
    struct sim_solid solid = sim_round(SIM_BOX, centre_m, half_m);
    solid.cos_yaw = cos(yaw_rad);
    solid.sin_yaw = sin(yaw_rad);
    return solid;
}

struct sim_solid sim_round(enum sim_shape shape, const double centre_m[3], const double half_m[3])
{
    struct sim_solid solid = {.shape = shape, .cos_yaw = 1.0, .reflectance = 0.4f};
    memcpy(solid.centre_m, centre_m, sizeof(solid.centre_m));
    memcpy(solid.half_m, half_m, sizeof(solid.half_m));
    solid.foot_m = centre_m[2] - half_m[2];
    return solid;
}

double sim_ground_height(const struct sim_ground *ground, double x_m, double y_m, double gradient[2])
{
    double height = ground->slope[0] * x_m + ground->slope[1] * y_m;
    if (gradient)
        memcpy(gradient, ground->slope, sizeof(ground->slope));
    for (int i = 0; i < 2; i++) {
        if (!(ground->amplitude_m[i] > 0.0)) /* flat: no sine */
            continue;
        const double *k = ground->k_radpm[i];
        const double angle = k[0] * x_m + k[1] * y_m + ground->phase_rad[i];
        height += ground->amplitude_m[i] * sin(angle);
        if (gradient) {
            const double rise = ground->amplitude_m[i] * cos(angle);
            gradient[0] += rise * k[0];
            gradient[1] += rise * k[1];
        }
    }
    return height;
}

/* ---- grid ---- */

static void footprint(const struct sim_solid *solid, double half[2])
{
    const double c = fabs(solid->cos_yaw), s = fabs(solid->sin_yaw);
    half[0] = c * solid->half_m[0] + s * solid->half_m[1];
    half[1] = s * solid->half_m[0] + c * solid->half_m[1];
}

static void world_bounds(const struct sim_world *world, double low[2], double high[2])
{
    low[0] = low[1] = INFINITY;
    high[0] = high[1] = -INFINITY;
    for (uint32_t i = 0; i < world->count; i++) {
        double half[2];
        footprint(&world->solids[i], half);
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], world->solids[i].centre_m[k] - half[k]);
            high[k] = fmax(high[k], world->solids[i].centre_m[k] + half[k]);
        }
    }
}

static void cells_of(const struct sim_world *world, const struct sim_solid *solid, int first[2], int last[2])
{
    double half[2];
    footprint(solid, half);
    for (int k = 0; k < 2; k++) {
        const double centre = solid->centre_m[k] - world->grid_min_m[k];
        const int low = (int)floor((centre - half[k]) / world->cell_m);
        const int high = (int)floor((centre + half[k]) / world->cell_m);
        first[k] = low < 0 ? 0 : low;
        last[k] = high >= world->grid_dim[k] ? world->grid_dim[k] - 1 : high;
    }
}

static struct sim_around around(const struct sim_solid *solid, uint32_t number)
{
    const double *half = solid->half_m, *centre = solid->centre_m;
    const double across =
        solid->shape == SIM_BOX ? sqrt(half[0] * half[0] + half[1] * half[1]) : fmax(half[0], half[1]);
    return (struct sim_around){.x_m = centre[0],
                               .y_m = centre[1],
                               .radius_m = across + AROUND_M,
                               .low_m = centre[2] - half[2] - AROUND_M,
                               .high_m = centre[2] + half[2] + AROUND_M,
                               .solid = number};
}

/* Called twice: to count the entries of every cell, then (items given) to write them. */
static void fill_cells(struct sim_world *world, struct sim_around *items)
{
    for (uint32_t i = 0; i < world->count; i++) {
        const struct sim_solid *solid = &world->solids[i];
        const double top = solid->centre_m[2] + solid->half_m[2];
        int first[2], last[2];
        cells_of(world, solid, first, last);
        for (int y = first[1]; y <= last[1]; y++)
            for (int x = first[0]; x <= last[0]; x++) {
                const size_t cell = (size_t)y * (size_t)world->grid_dim[0] + (size_t)x;
                if (items)
                    items[--world->cell_first[cell]] = around(solid, i);
                else
                    world->cell_first[cell]++;
                world->cell_top_m[cell] = fmax(world->cell_top_m[cell], top);
            }
        world->top_m = fmax(world->top_m, top);
    }
}

enum ndt_status sim_world_finish(struct sim_world *world, struct ndt_error *err)
{
    double low[2], high[2];
    if (world->out_of_memory || world->count == 0)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the solids of the world");
    world_bounds(world, low, high);
    for (int k = 0; k < 2; k++) {
        world->grid_min_m[k] = low[k] - 0.5;
        const double dim = ceil((high[k] - low[k] + 1.0) / world->cell_m);
        if (!(dim < MAX_CELLS_PER_AXIS))
            return ndt_fail(err, NDT_ERR_LIMIT, "the world is %.0f m wide, more than the limit of %.0f m",
                            high[k] - low[k], world->cell_m * MAX_CELLS_PER_AXIS);
        world->grid_dim[k] = (int)dim;
    }
    const size_t cells = (size_t)world->grid_dim[0] * (size_t)world->grid_dim[1];
    world->cell_first = calloc(cells + 1, sizeof(*world->cell_first));
    world->cell_top_m = malloc(cells * sizeof(*world->cell_top_m));
    if (!world->cell_first || !world->cell_top_m)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for a grid of %zu cells", cells);
    for (size_t i = 0; i < cells; i++)
        world->cell_top_m[i] = -INFINITY;
    world->top_m = -INFINITY;
    fill_cells(world, NULL);
    for (size_t i = 0; i < cells; i++)
        world->cell_first[i + 1] += world->cell_first[i]; /* ends; the second pass turns them into starts */
    world->cell_solids = malloc(world->cell_first[cells] * sizeof(*world->cell_solids));
    if (!world->cell_solids)
        return ndt_fail(err, NDT_ERR_MEMORY, "no memory for the lists of %zu cells", cells);
    fill_cells(world, world->cell_solids);
    return NDT_OK;
}

int sim_world_inside(const struct sim_world *world, const double point_m[3])
{
    const int x = (int)floor((point_m[0] - world->grid_min_m[0]) / world->cell_m);
    const int y = (int)floor((point_m[1] - world->grid_min_m[1]) / world->cell_m);
    if (x < 0 || y < 0 || x >= world->grid_dim[0] || y >= world->grid_dim[1])
        return 0;
    const size_t cell = (size_t)y * (size_t)world->grid_dim[0] + (size_t)x;
    for (uint32_t i = world->cell_first[cell]; i < world->cell_first[cell + 1]; i++) {
        const struct sim_solid *solid = &world->solids[world->cell_solids[i].solid];
        const double dx = point_m[0] - solid->centre_m[0], dy = point_m[1] - solid->centre_m[1];
        const double u = (solid->cos_yaw * dx + solid->sin_yaw * dy) / solid->half_m[0];
        const double v = (solid->cos_yaw * dy - solid->sin_yaw * dx) / solid->half_m[1];
        const double w = (point_m[2] - solid->centre_m[2]) / solid->half_m[2];
        const double across = solid->shape == SIM_BOX ? fmax(u * u, v * v) : u * u + v * v;
        const double up = solid->shape == SIM_ELLIPSOID ? across + w * w : fmax(across, w * w);
        if (!(solid->free_path_m > 0.0) && up < 1.0)
            return 1;
    }
    return 0;
}

/* ---- rays ---- */

enum ndt_status sim_caster_open(struct sim_caster *caster, const struct sim_world *world, struct ndt_error *err)
{
    memset(caster, 0, sizeof(*caster));
    caster->world = world;
    caster->seen = calloc(world->count, sizeof(*caster->seen));
    return caster->seen ? NDT_OK : ndt_fail(err, NDT_ERR_MEMORY, "no memory for a ray caster");
}

void sim_caster_set_movers(struct sim_caster *caster, const struct sim_solid *movers, uint32_t count)
{
    caster->movers = movers;
    caster->mover_count = count;
    for (uint32_t i = 0; i < count; i++)
        caster->around[i] = around(&movers[i], i);
}

void sim_caster_close(struct sim_caster *caster)
{
    free(caster->seen);
    memset(caster, 0, sizeof(*caster));
}

/* Sphere tracing with the bound of the gradient, then one Newton step. */
static double cast_ground(const struct sim_ground *ground, const struct sim_ray *ray, double limit)
{
    const double *o = ray->origin_m, *d = ray->direction;
    const double closing = ground->steepest * hypot(d[0], d[1]) - d[2];
    double gradient[2], t = 0.0, above = o[2] - sim_ground_height(ground, o[0], o[1], NULL);
    if (closing <= 1e-6 || above <= 0.0)
        return INFINITY;
    for (int i = 0; i < 200 && above > 2e-3; i++) {
        t += above / closing;
        if (t > limit)
            return INFINITY;
        above = o[2] + t * d[2] - sim_ground_height(ground, o[0] + t * d[0], o[1] + t * d[1], NULL);
    }
    sim_ground_height(ground, o[0] + t * d[0], o[1] + t * d[1], gradient);
    const double rate = gradient[0] * d[0] + gradient[1] * d[1] - d[2];
    return rate > 1e-3 ? t + above / rate : t;
}

/* Casts a ray from inside the bore, so that there is exactly one hit. */
static double cast_bore(const struct sim_world *world, const struct sim_ray *ray)
{
    const double y = ray->origin_m[1] - world->bore_y_m, z = ray->origin_m[2] - world->bore_z_m;
    const double dy = ray->direction[1], dz = ray->direction[2];
    const double a = dy * dy + dz * dz, b = y * dy + z * dz;
    const double c = y * y + z * z - world->bore_radius_m * world->bore_radius_m;
    if (a < 1e-12 || c >= 0.0)
        return INFINITY;
    return (sqrt(b * b - a * c) - b) / a;
}

/* The ray in the frame of a solid. */
static struct sim_ray to_local(const struct sim_solid *solid, const struct sim_ray *ray)
{
    const double x = ray->origin_m[0] - solid->centre_m[0], y = ray->origin_m[1] - solid->centre_m[1];
    const double c = solid->cos_yaw, s = solid->sin_yaw;
    const double *d = ray->direction;
    return (struct sim_ray){{c * x + s * y, c * y - s * x, ray->origin_m[2] - solid->centre_m[2]},
                            {c * d[0] + s * d[1], c * d[1] - s * d[0], d[2]}};
}

/* Clips [in, out] to |x| <= half. Returns 1 when the ray enters through this slab. */
static int clip_slab(double origin, double direction, double half, double *in, double *out)
{
    if (fabs(direction) < 1e-12) {
        if (fabs(origin) > half)
            *out = -INFINITY;
        return 0;
    }
    const double inverse = 1.0 / direction;
    const double a = (-half - origin) * inverse, b = (half - origin) * inverse;
    const double first = a < b ? a : b, last = a < b ? b : a;
    if (last < *out)
        *out = last;
    if (first <= *in)
        return 0;
    *in = first;
    return 1;
}

/* Clips [in, out] to a circle (axes = 2) or an ellipsoid (axes = 3). */
static void clip_round(const struct sim_ray *local, const double half[3], int axes, double *in, double *out)
{
    double a = 0.0, b = 0.0, c = -1.0;
    for (int k = 0; k < axes; k++) {
        const double o = local->origin_m[k] / half[k], d = local->direction[k] / half[k];
        a += d * d;
        b += o * d;
        c += o * o;
    }
    const double root = b * b - a * c;
    if (root < 0.0 || a < 1e-12) {
        if (root < 0.0 || c > 0.0)
            *out = -INFINITY;
        return;
    }
    const double width = sqrt(root);
    *in = fmax(*in, (-b - width) / a);
    *out = fmin(*out, (-b + width) / a);
}

/* Interval of the ray inside the solid; for boxes returns the axis of the face of entry. */
static int solid_interval(const struct sim_solid *solid, const struct sim_ray *local, double *in, double *out)
{
    int face = 2;
    *in = -INFINITY;
    *out = INFINITY;
    if (solid->shape == SIM_BOX) {
        for (int k = 0; k < 3 && *in < *out; k++)
            if (clip_slab(local->origin_m[k], local->direction[k], solid->half_m[k], in, out))
                face = k;
        return face;
    }
    clip_round(local, solid->half_m, solid->shape == SIM_CYLINDER ? 2 : 3, in, out);
    if (solid->shape == SIM_CYLINDER)
        clip_slab(local->origin_m[2], local->direction[2], solid->half_m[2], in, out);
    return face;
}

/* Distance along `direction` from `at` to the end of [low, high]. */
static double exit_distance(double at, double direction, double low, double high)
{
    if (fabs(direction) < 1e-12)
        return INFINITY;
    return ((direction > 0.0 ? high : low) - at) / direction;
}

/* The ray hits an upright face at t; within an opening it continues to the pane or to the reveal. */
static double enter_window(const struct sim_solid *solid, const struct sim_ray *local, int face, double t,
                           struct ndt_random *random, float *reflectance)
{
    const struct sim_windows *w = &solid->windows;
    const int across = 1 - face;
    const double along = local->origin_m[across] + t * local->direction[across] + solid->half_m[across];
    const double up = local->origin_m[2] + t * local->direction[2] + solid->centre_m[2] - solid->foot_m;
    const double u = along - floor(along / w->period_m) * w->period_m;
    const double v = up - floor(up / w->storey_m) * w->storey_m;
    const double left = 0.5 * (w->period_m - w->width_m), right = left + w->width_m;
    if (u <= left || u >= right || v <= w->sill_m || v >= w->sill_m + w->height_m || up < 0.0)
        return t;
    const double pane = w->recess_m / fabs(local->direction[face]);
    const double side = fmin(exit_distance(u, local->direction[across], left, right),
                             exit_distance(v, local->direction[2], w->sill_m, w->sill_m + w->height_m));
    if (side < pane)
        return t + side;
    if (ndt_random_unit(random) < w->lost)
        *reflectance = ABSORBED;
    return t + pane;
}

/* Updates `hit` when the ray hits this solid earlier. */
static void cast_solid(const struct sim_solid *solid, const struct sim_ray *ray, struct ndt_random *random,
                       struct sim_hit *hit)
{
    const struct sim_ray local = to_local(solid, ray);
    double in, out;
    const int face = solid_interval(solid, &local, &in, &out);
    if (out <= in || out <= 0.0 || in >= hit->range_m)
        return;
    float reflectance = solid->reflectance;
    if (solid->free_path_m > 0.0) {
        in = fmax(in, 0.0) - solid->free_path_m * log(1.0 - ndt_random_unit(random));
        if (in > out)
            return;
    } else if (solid->windows.period_m > 0.0 && face < 2 && in > 0.0) {
        in = enter_window(solid, &local, face, in, random, &reflectance);
    }
    if (in <= 0.0 || in >= hit->range_m)
        return;
    hit->range_m = in;
    hit->reflectance = reflectance;
}

/* Whether the ray passes the cylinder around a solid within range_m; level: 1 / (length of its direction in the
 * plane). Most solids of a cell are told apart here, with a tenth of the work of cast_solid(). */
static int passes(const struct sim_around *item, const struct sim_ray *ray, double level, double range_m)
{
    const double *o = ray->origin_m, *d = ray->direction;
    const double x = item->x_m - o[0], y = item->y_m - o[1];
    if (fabs(x * d[1] - y * d[0]) * level > item->radius_m)
        return 0;
    const double middle = (x * d[0] + y * d[1]) * level * level, half = item->radius_m * level;
    if (middle + half < 0.0 || middle - half > range_m)
        return 0;
    const double z0 = o[2] + (middle - half) * d[2], z1 = o[2] + (middle + half) * d[2];
    return !((z0 > item->high_m && z1 > item->high_m) || (z0 < item->low_m && z1 < item->low_m));
}

static void cast_cell(struct sim_caster *caster, size_t cell, const struct sim_ray *ray, double level,
                      struct ndt_random *random, struct sim_hit *hit)
{
    const struct sim_world *world = caster->world;
    for (uint32_t i = world->cell_first[cell]; i < world->cell_first[cell + 1]; i++) {
        const struct sim_around *item = &world->cell_solids[i];
        if (!passes(item, ray, level, hit->range_m) || caster->seen[item->solid] == caster->ray)
            continue;
        caster->seen[item->solid] = caster->ray;
        cast_solid(&world->solids[item->solid], ray, random, hit);
    }
}

/* Traverses the cells below the ray (Amanatides and Woo 1987) until a hit is nearer than the next cell. */
static void cast_grid(struct sim_caster *caster, const struct sim_ray *ray, double level, struct ndt_random *random,
                      struct sim_hit *hit)
{
    const struct sim_world *world = caster->world;
    int at[2], step[2];
    double next[2], width[2], t = 0.0, out = INFINITY;
    for (int k = 0; k < 2; k++) {
        const double half = 0.5 * world->cell_m * world->grid_dim[k];
        clip_slab(ray->origin_m[k] - world->grid_min_m[k] - half, ray->direction[k], half, &t, &out);
    }
    if (out <= t)
        return;
    for (int k = 0; k < 2; k++) {
        const double d = ray->direction[k];
        const double o = (ray->origin_m[k] + t * d - world->grid_min_m[k]) / world->cell_m;
        at[k] = (int)fmin(fmax(floor(o), 0.0), world->grid_dim[k] - 1.0);
        step[k] = d < 0.0 ? -1 : 1;
        width[k] = fabs(d) > 1e-12 ? world->cell_m / fabs(d) : INFINITY;
        next[k] = fabs(d) > 1e-12 ? t + (d < 0.0 ? o - at[k] : at[k] + 1.0 - o) * width[k] : INFINITY;
    }
    while (t < hit->range_m) {
        const int k = next[0] < next[1] ? 0 : 1;
        const size_t cell = (size_t)at[1] * (size_t)world->grid_dim[0] + (size_t)at[0];
        const double z = ray->origin_m[2] + ray->direction[2] * (ray->direction[2] > 0.0 ? t : next[k]);
        if (z <= world->cell_top_m[cell])
            cast_cell(caster, cell, ray, level, random, hit);
        else if (z > world->top_m && ray->direction[2] > 0.0)
            return;
        t = next[k];
        at[k] += step[k];
        next[k] += width[k];
        if (at[k] < 0 || at[k] >= world->grid_dim[k])
            return;
    }
}

int sim_cast(struct sim_caster *caster, const struct sim_ray *ray, double max_range_m, struct ndt_random *random,
             struct sim_hit *hit)
{
    const struct sim_world *world = caster->world;
    if (++caster->ray == 0) {
        memset(caster->seen, 0, world->count * sizeof(*caster->seen));
        caster->ray = 1;
    }
    hit->range_m = max_range_m;
    hit->reflectance = ABSORBED;
    const double ground = cast_ground(&world->ground, ray, max_range_m);
    if (ground < hit->range_m)
        *hit = (struct sim_hit){ground, 0.2f, 0};
    const double bore = world->bore_radius_m > 0.0 ? cast_bore(world, ray) : INFINITY;
    if (bore < hit->range_m)
        *hit = (struct sim_hit){bore, 0.5f, 0};
    const double still_m = hit->range_m;
    const double *d = ray->direction, level = 1.0 / sqrt(d[0] * d[0] + d[1] * d[1]);
    for (uint32_t i = 0; i < caster->mover_count; i++)
        if (passes(&caster->around[i], ray, level, hit->range_m))
            cast_solid(&caster->movers[i], ray, random, hit);
    const double moving_m = hit->range_m;
    cast_grid(caster, ray, level, random, hit);
    hit->is_mover = moving_m < still_m && !(hit->range_m < moving_m);
    return hit->reflectance >= 0.0f;
}
