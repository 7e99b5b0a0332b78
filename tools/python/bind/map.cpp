// ndtd.Map
#include "map.hpp"

#include <nanobind/stl/filesystem.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "ndt/names.h"
#include "ndt_io/map_file.h"

namespace ndt_python
{

using namespace nb::literals;

static int find_label(const ndt_label *labels, const std::string &name, const char *what)
{
    std::string known;
    for (; labels->name; labels++) {
        if (name == labels->name)
            return labels->value;
        known += (known.empty() ? "" : ", ") + std::string(labels->name);
    }
    throw nb::value_error((std::string(what) + ": '" + name + "' is not known; there are: " + known).c_str());
}

static ndt_map_config make_config(const std::vector<double> &levels, uint32_t min_points,
                                  const std::string &covariance, int threads)
{
    ndt_map_config config;
    ndt_map_config_default(&config);
    if (levels.empty() || levels.size() > NDT_MAX_LEVELS)
        throw nb::value_error(
            ("levels: 1 to " + std::to_string(NDT_MAX_LEVELS) + " edges of cells are wanted").c_str());
    config.level_count = levels.size();
    for (size_t i = 0; i < levels.size(); i++)
        config.leaf_m[i] = levels[i];
    config.min_points = min_points;
    config.covariance =
        static_cast<ndt_covariance_kind>(find_label(ndt_covariance_labels, covariance, "covariance"));
    config.threads = threads;
    return config;
}

static ndt_map *load(const std::string &path, const ndt_map_config &config)
{
    ndt_map *map = nullptr;
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndt_map_load(&map, path.c_str(), &config, &error);
    }
    check(status, error);
    return map;
}

static ndt_map *build(nb::handle points, const ndt_map_config &config)
{
    ndt_map *map = nullptr;
    ndt_error error;
    ndt_status status;
    Cloud cloud;
    read_points(cloud.cloud, points, Origin::Near, "points");
    {
        nb::gil_scoped_release release;
        status = ndt_map_from_cloud(&map, &config, &cloud.cloud, &error);
    }
    check(status, error);
    return map;
}

static bool is_path(nb::handle source)
{
    return nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__");
}

static void init(Map *self, nb::object source, const std::vector<double> &levels, uint32_t min_points,
                 const std::string &covariance, int threads)
{
    const ndt_map_config config = make_config(levels, min_points, covariance, threads);
    if (is_path(source)) {
        const auto path = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(source));
        new (self) Map(load(path, config));
    } else {
        new (self) Map(build(source, config));
    }
}

static const ndt_map_level &level_of(const Map &self, double leaf_m)
{
    const int index = ndt_map_find_level(self.get(), leaf_m);
    if (index < 0)
        throw nb::value_error(("the map has no level of " + std::to_string(leaf_m) + " m").c_str());
    return self.get()->levels[index];
}

// Means, inverse covariances and counts of the voxels of a level; voxel 0 of the core is a placeholder.
static nb::dict voxels(const Map &self, double leaf_m)
{
    const ndt_map_level &level = level_of(self, leaf_m);
    const size_t count = level.voxel_count - 1;
    std::vector<double> means(3 * count), inverse(9 * count), counts(count);
    for (size_t i = 0; i < count; i++) {
        const ndt_voxel &voxel = level.voxels[i + 1];
        static const int at[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};
        for (int k = 0; k < 3; k++)
            means[3 * i + k] =
                self.get()->origin_m[k] + voxel.cell[k] * level.leaf_m + static_cast<double>(voxel.mean_m[k]);
        for (int k = 0; k < 9; k++)
            inverse[9 * i + k] = static_cast<double>(voxel.icov[at[k]]);
        counts[i] = voxel.count;
    }
    nb::dict out;
    out["mean"] = make_array({count, 3}, means.data());
    out["inverse_covariance"] = make_array({count, 3, 3}, inverse.data());
    out["count"] = make_array({count}, counts.data());
    return out;
}

static std::string id_text(const Map &self)
{
    char text[17];
    std::snprintf(text, sizeof(text), "%016" PRIx64, self.get()->id);
    return text;
}

static std::vector<double> leaves(const Map &self)
{
    std::vector<double> out;
    for (size_t i = 0; i < self.get()->level_count; i++)
        out.push_back(self.get()->levels[i].leaf_m);
    return out;
}

static std::string describe(const Map &self)
{
    std::string text = "ndtd.Map(" + std::to_string(self.get()->points) + " points, levels";
    for (double leaf_m : leaves(self)) {
        char number[32];
        std::snprintf(number, sizeof(number), " %g m", leaf_m);
        text += number;
    }
    return text + ", id " + id_text(self) + ")";
}

static void save(const Map &self, nb::object path)
{
    const auto name = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndt_map_save(self.get(), name.c_str(), &error);
    }
    check(status, error);
}

void bind_map(nb::module_ &module)
{
    nb::class_<Map>(module, "Map", R"(A prior map: one Gaussian per occupied cell, at one or several cell sizes.

Immutable, so any number of threads and aligners may use it at the same time. Equal points give
bit-equal maps, whatever their order and the number of threads.

Parameters
----------
source : path or ndarray, shape (N, 3), float32 or float64
    A compiled map (.ndtmap), a cloud (.pcd, .ply, .bin), a folder of tiles (with or without
    Autoware's pointcloud_map_metadata.yaml), or points in the map frame [m]. Points that are not
    finite are left out. Give coordinates beyond 2 km (UTM) as float64: float32 has lost the digits.
levels : sequence of float
    Edges of the cells [m], 1 to 6, each 0.1 to 100.
min_points : int
    Fewest points of a voxel, at least 3.
covariance : {'unbiased', 'autoware'}
    'autoware': larger by I / (n - 1), as in Autoware's ndt_scan_matcher.
threads : int
    That build; 0: one per core, at most 4. No effect on the map.

Raises
------
ValueError
    A wrong shape, a level out of range, a damaged file; the message names file, place and limit.
TypeError, OSError, MemoryError
)")
        .def("__init__", &init, "source"_a, nb::kw_only(), "levels"_a = std::vector<double>{4, 2, 1},
             "min_points"_a = 6, "covariance"_a = "unbiased", "threads"_a = 0)
        .def("save", &save, "path"_a, "Writes a compiled map (.ndtmap), which loads in milliseconds.")
        .def("voxels", &voxels, "level"_a,
             "The Gaussians of a level (its cell edge [m]): dict of mean (V, 3) [m], inverse_covariance (V, 3, 3) "
             "[1/m^2] and count (V,).")
        .def_prop_ro("id", &id_text, "16 hexadecimal digits: equal ids mean equal maps.")
        .def_prop_ro("levels", &leaves, "Cell edges [m], from coarse to fine.")
        .def_prop_ro(
            "points", [](const Map &self) { return self.get()->points; }, "Points behind the map.")
        .def_prop_ro(
            "nbytes", [](const Map &self) { return self.get()->bytes; }, "Memory of all levels.")
        .def_prop_ro(
            "origin", [](const Map &self) { return make_array({3}, self.get()->origin_m); },
            "ndarray (3,) [m]: cells are counted from here.")
        .def("__repr__", &describe);
}

} // namespace ndt_python
