#include <string.h>

#include "lab.h"
#include "ndt_io/map_file.h"

/* Scans that take turns, so that the caches do not hold one place only. */
enum { SCANS = 8 };

enum ndt_status lab_scene_open(struct lab_scene *scene, const struct lab *lab, uint32_t points,
                               struct ndt_error *err)
{
    memset(scene, 0, sizeof(*scene));
    if (!lab->bag || !lab->settings.map_path[0])
        return ndt_fail(err, NDT_ERR_ARGUMENT, "this experiment needs --map and --bag");
    enum ndt_status status = ndt_map_load(&scene->map, lab->settings.map_path, &lab->settings.map, err);
    if (status == NDT_OK)
        status = bench_input_from_bag(&scene->input, lab->bag, SCANS, err);
    if (status == NDT_OK)
        status = bench_filter(&scene->scans, &scene->input, &lab->settings.preprocess, points, err);
    return status;
}

void lab_scene_close(struct lab_scene *scene)
{
    bench_filtered_free(&scene->scans);
    bench_input_free(&scene->input);
    ndt_map_release(scene->map);
    memset(scene, 0, sizeof(*scene));
}
