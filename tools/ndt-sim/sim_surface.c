#include "sim.h"

#include <math.h>
#include <string.h>

/* A map of a city by points on its surfaces, about one per square of the spacing: no rays from standpoints, which
 * would take minutes. Roofs are missing, as in a survey from streets; backyards are not. */

static const double PI = 3.14159265358979323846;
static const double HIGHEST_M = 25.0; /* above the ground */

struct sampling {
    const struct sim_sampler *sampler;
    const struct sim_area *area;
    struct sim_caster *caster;
    struct ndt_random random;
    struct ndt_cloud *cloud;
    enum ndt_status status;
    struct ndt_error *err;
};

static void put(struct sampling *sampling, const double point_m[3], float reflectance)
{
    const struct sim_area *area = sampling->area;
    struct ndt_cloud *cloud = sampling->cloud;
    if (point_m[0] < area->low_m[0] || point_m[0] >= area->high_m[0] || point_m[1] < area->low_m[1] ||
        point_m[1] >= area->high_m[1] || sampling->status != NDT_OK)
        return;
    if (cloud->count == cloud->capacity)
        sampling->status = ndt_cloud_reserve(cloud, 2 * cloud->count + 65536, NDT_CLOUD_INTENSITY, sampling->err);
    if (sampling->status != NDT_OK)
        return;
    const size_t i = cloud->count++;
    const double noise_m = sampling->sampler->noise_m;
    cloud->x_m[i] = (float)(point_m[0] + noise_m * ndt_random_normal(&sampling->random));
    cloud->y_m[i] = (float)(point_m[1] + noise_m * ndt_random_normal(&sampling->random));
    cloud->z_m[i] = (float)(point_m[2] + noise_m * ndt_random_normal(&sampling->random));
    cloud->intensity[i] = reflectance;
}

/* Casts a ray from `out_m` above the surface point against its normal: it hits the surface, a pane behind it, or
 * foliage. */
static void probe(struct sampling *sampling, const double surface_m[3], const double normal[3], double out_m,
                  double reach_m)
{
    struct sim_ray ray;
    struct sim_hit hit;
    double point_m[3];
    for (int k = 0; k < 3; k++) {
        ray.origin_m[k] = surface_m[k] + out_m * normal[k];
        ray.direction[k] = -normal[k];
    }
    const struct sim_world *world = sampling->caster->world;
    const double ground_m = sim_ground_height(&world->ground, surface_m[0], surface_m[1], NULL);
    if (surface_m[2] < ground_m || surface_m[2] > ground_m + HIGHEST_M || sim_world_inside(world, ray.origin_m) ||
        !sim_cast(sampling->caster, &ray, reach_m, &sampling->random, &hit))
        return;
    for (int k = 0; k < 3; k++)
        point_m[k] = ray.origin_m[k] + hit.range_m * ray.direction[k];
    put(sampling, point_m, hit.reflectance);
}

/* A face of a box: its two edges as half vectors from its middle, and the normal. */
static void sample_face(struct sampling *sampling, const double middle_m[3], const double u_m[3],
                        const double v_m[3], const double normal[3])
{
    const double spacing_m = sampling->sampler->spacing_m;
    const double length_u = 2.0 * sqrt(u_m[0] * u_m[0] + u_m[1] * u_m[1] + u_m[2] * u_m[2]);
    const double length_v = 2.0 * sqrt(v_m[0] * v_m[0] + v_m[1] * v_m[1] + v_m[2] * v_m[2]);
    const int nu = (int)ceil(length_u / spacing_m), nv = (int)ceil(length_v / spacing_m);
    const double share = length_u * length_v / (spacing_m * spacing_m) / (nu * nv); /* below 1 for thin faces */
    for (int i = 0; i < nu; i++)
        for (int j = 0; j < nv; j++) {
            const double a = 2.0 * (i + ndt_random_unit(&sampling->random)) / nu - 1.0;
            const double b = 2.0 * (j + ndt_random_unit(&sampling->random)) / nv - 1.0;
            double surface_m[3];
            if (ndt_random_unit(&sampling->random) > share + 0.3)
                continue;
            for (int k = 0; k < 3; k++)
                surface_m[k] = middle_m[k] + a * u_m[k] + b * v_m[k];
            probe(sampling, surface_m, normal, 0.3, 0.9);
        }
}

static void sample_box(struct sampling *sampling, const struct sim_solid *box)
{
    const double *half = box->half_m, c = box->cos_yaw, s = box->sin_yaw;
    const double axes[3][3] = {{c, s, 0}, {-s, c, 0}, {0, 0, 1}};
    const double up_m[3] = {0, 0, half[2]};
    for (int face = 0; face < 4; face++) {
        const int axis = face / 2;
        const double sign = face % 2 ? -1.0 : 1.0;
        double middle_m[3], normal[3], along_m[3];
        for (int k = 0; k < 3; k++) {
            normal[k] = sign * axes[axis][k];
            middle_m[k] = box->centre_m[k] + half[axis] * normal[k];
            along_m[k] = half[1 - axis] * axes[1 - axis][k];
        }
        sample_face(sampling, middle_m, along_m, up_m, normal);
    }
    const double top_m = box->centre_m[2] + half[2];
    if (top_m <
        sim_ground_height(&sampling->caster->world->ground, box->centre_m[0], box->centre_m[1], NULL) + 2.6) {
        const double middle_m[3] = {box->centre_m[0], box->centre_m[1], top_m};
        const double u_m[3] = {half[0] * c, half[0] * s, 0}, v_m[3] = {-half[1] * s, half[1] * c, 0};
        sample_face(sampling, middle_m, u_m, v_m, axes[2]);
    }
}

static void sample_round(struct sampling *sampling, const struct sim_solid *solid)
{
    const double *half = solid->half_m, spacing_m = sampling->sampler->spacing_m;
    const int is_cylinder = solid->shape == SIM_CYLINDER;
    const double area_m2 =
        is_cylinder ? 4.0 * PI * half[0] * half[2] : 4.0 * PI * half[0] * (half[1] + 2.0 * half[2]) / 3.0;
    const double count = area_m2 / (spacing_m * spacing_m);
    for (double i = ndt_random_unit(&sampling->random); i < count; i += 1.0) {
        const double angle = ndt_random_between(&sampling->random, -PI, PI);
        const double up = ndt_random_between(&sampling->random, -1.0, 1.0);
        const double level = is_cylinder ? 1.0 : sqrt(1.0 - up * up);
        const double offset_m[3] = {half[0] * level * cos(angle), half[1] * level * sin(angle), half[2] * up};
        double normal[3] = {level * cos(angle), level * sin(angle), is_cylinder ? 0.0 : up}, surface_m[3];
        for (int k = 0; k < 3; k++)
            surface_m[k] = solid->centre_m[k] + offset_m[k];
        probe(sampling, surface_m, normal, 0.3, 0.3 + (is_cylinder ? 0.2 : 1.6 * half[0]));
    }
}

static void sample_ground(struct sampling *sampling)
{
    const struct sim_area *area = sampling->area;
    const struct sim_world *world = sampling->caster->world;
    const double spacing_m = sampling->sampler->spacing_m;
    for (double y = area->low_m[1]; y < area->high_m[1]; y += spacing_m)
        for (double x = area->low_m[0]; x < area->high_m[0]; x += spacing_m) {
            double point_m[3];
            point_m[0] = x + spacing_m * ndt_random_unit(&sampling->random);
            point_m[1] = y + spacing_m * ndt_random_unit(&sampling->random);
            if (!sim_city_holds(sampling->sampler->city, point_m))
                continue;
            point_m[2] = sim_ground_height(&world->ground, point_m[0], point_m[1], NULL);
            const double above_m[3] = {point_m[0], point_m[1], point_m[2] + 0.05};
            if (!sim_world_inside(world, above_m))
                put(sampling, point_m, 0.2f);
        }
}

enum ndt_status sim_surface_sample(const struct sim_sampler *sampler, const struct sim_area *area,
                                   struct sim_caster *caster, uint64_t number, struct ndt_cloud *cloud,
                                   struct ndt_error *err)
{
    struct sampling sampling = {.sampler = sampler,
                                .area = area,
                                .caster = caster,
                                .random = ndt_random_stream(sampler->seed, 19, number),
                                .cloud = cloud,
                                .status = NDT_OK,
                                .err = err};
    const struct sim_world *world = caster->world;
    cloud->count = 0;
    sample_ground(&sampling);
    for (uint32_t i = 0; i < world->count && sampling.status == NDT_OK; i++) {
        const struct sim_solid *solid = &world->solids[i];
        const double reach_m = hypot(solid->half_m[0], solid->half_m[1]) + 0.3;
        int is_near = 1;
        for (int k = 0; k < 2; k++)
            is_near = is_near && solid->centre_m[k] + reach_m > area->low_m[k] &&
                      solid->centre_m[k] - reach_m < area->high_m[k];
        if (is_near && solid->shape == SIM_BOX)
            sample_box(&sampling, solid);
        else if (is_near)
            sample_round(&sampling, solid);
    }
    return sampling.status;
}
