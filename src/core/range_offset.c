/* Correction of ranges: WIDE points at a time move along their rays. */
#include "cpu/wide.h"
#include "preprocess_steps.h"

void ndt_range_offset_apply(float offset_m, struct ndt_point_block *points)
{
    const struct ndt_point_block at = *points;
    for (size_t i = 0; i < at.count; i += WIDE) {
        const wide_f x = wide_load(at.x_m + i), y = wide_load(at.y_m + i), z = wide_load(at.z_m + i);
        const wide_f range_m = wide_root(x * x + y * y + z * z);
        wide_f scale = (range_m + offset_m) / range_m;
        scale = wide_select((range_m > 0) & (scale > 0), scale, (wide_f){0});
        wide_store(at.x_m + i, x * scale);
        wide_store(at.y_m + i, y * scale);
        wide_store(at.z_m + i, z * scale);
    }
}
