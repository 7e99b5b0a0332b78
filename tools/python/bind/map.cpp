// ndtd.Map
#include "map.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "keywords.hpp"
#include "ndt_io/map_file.h"

namespace ndt_python
{

using namespace nb::literals;

static ndt_map_config make_config(const nb::kwargs &given)
{
    ndt_map_config config;
    ndt_map_config_default(&config);
    Keywords options(given, "Map");
    const std::vector<double> levels = options.numbers("levels", {4, 2, 1}, NDT_MAX_LEVELS);
    config.level_count = levels.size();
    for (size_t i = 0; i < levels.size(); i++)
        config.leaf_m[i] = levels[i];
    config.min_points = static_cast<uint32_t>(options.integer("min_points", config.min_points, 3, 1000000));
    config.covariance =
        static_cast<ndt_covariance_kind>(options.label("covariance", ndt_covariance_labels, config.covariance));
    config.threads = static_cast<int>(options.integer("threads", 0, 0, 64));
    options.end();
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
    check_file(status, error, path);
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
    if (map->points == 0) {
        ndt_map_release(map);
        throw nb::value_error(("points: none of " + std::to_string(cloud.cloud.count) + " is finite").c_str());
    }
    return map;
}

static bool is_path(nb::handle source)
{
    return nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__");
}

static void init(Map *self, const nb::object &source, const nb::kwargs &options)
{
    const ndt_map_config config = make_config(options);
    new (self) Map(is_path(source) ? load(path_text(source), config) : build(source, config));
}

static std::string levels_text(const ndt_map *map)
{
    std::string text;
    for (size_t i = 0; i < map->level_count; i++) {
        char number[32];
        std::snprintf(number, sizeof(number), "%s%g m", i ? ", " : "", map->levels[i].leaf_m);
        text += number;
    }
    return text;
}

const ndt_map_level &Map::level(double leaf_m, const char *what) const
{
    const int index = ndt_map_find_level(get(), leaf_m);
    char text[160];
    std::snprintf(text, sizeof(text), "%s: the map has no level of %g m; it has %s", what, leaf_m,
                  levels_text(get()).c_str());
    if (index < 0)
        throw nb::value_error(text);
    return get()->levels[index];
}

const Map &read_map(nb::handle map)
{
    const Map *out = nullptr;
    if (map.is_none() || !nb::try_cast(map, out))
        throw nb::type_error(("map: an ndtd.Map is wanted, not " + class_name(map) +
                              (map.is_none() ? "" : ": ndtd.Map(...) makes one"))
                                 .c_str());
    return *out;
}

// Means, inverse covariances and counts of the voxels of a level; voxel 0 of the core is a placeholder.
static nb::dict voxels(const Map &self, double leaf_m)
{
    const ndt_map_level &level = self.level(leaf_m, "level");
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
    using Any = nb::ndarray<nb::numpy, double>;
    out["mean"] = make_array<Any>(means.data(), {count, 3});
    out["inverse_covariance"] = make_array<Any>(inverse.data(), {count, 3, 3});
    out["count"] = make_array<Any>(counts.data(), {count});
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

static std::vector<size_t> voxel_counts(const Map &self)
{
    std::vector<size_t> out;
    for (size_t i = 0; i < self.get()->level_count; i++)
        out.push_back(self.get()->levels[i].voxel_count - 1); // voxel 0 is a placeholder
    return out;
}

static std::string describe(const Map &self)
{
    return "ndtd.Map(" + std::to_string(self.get()->points) + " points, levels " + levels_text(self.get()) +
           ", id " + id_text(self) + ")";
}

static void save(const Map &self, const nb::object &path)
{
    const std::string name = path_text(path);
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndt_map_save(self.get(), name.c_str(), &error);
    }
    check_file(status, error, name);
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
    A wrong shape, no finite point, a level out of range, a wrong or damaged file; the message names
    argument or file, place and limit.
FileNotFoundError, OSError, TypeError, MemoryError
)")
        .def("__init__", &init, "source"_a.none(), "options"_a,
             nb::sig("def __init__(self, source: str | os.PathLike[str] | numpy.typing.ArrayLike, *, "
                     "levels: collections.abc.Sequence[float] = (4.0, 2.0, 1.0), min_points: int = 6, "
                     "covariance: str = 'unbiased', threads: int = 0) -> None"))
        .def("save", &save, "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
             "Writes a compiled map (.ndtmap), which loads in milliseconds.")
        .def("voxels", &voxels, "level"_a,
             nb::sig("def voxels(self, level: float) -> dict[str, numpy.typing.NDArray[numpy.float64]]"),
             "The Gaussians of a level (its cell edge [m]): dict of mean (V, 3) [m], inverse_covariance (V, 3, 3) "
             "[1/m^2] and count (V,).")
        .def_prop_ro("id", &id_text, "16 hexadecimal digits: equal ids mean equal maps.")
        .def_prop_ro("levels", &leaves, "Cell edges [m], from coarse to fine.")
        .def_prop_ro(
            "points", [](const Map &self) { return self.get()->points; }, "Points behind the map.")
        .def_prop_ro(
            "nbytes", [](const Map &self) { return self.get()->bytes; }, "Memory of all levels.")
        .def_prop_ro(
            "origin", [](const Map &self) { return make_doubles<3>(self.get()->origin_m); },
            nb::rv_policy::automatic, "ndarray (3,) [m]: cells are counted from here.")
        .def_prop_ro("voxel_counts", &voxel_counts, "Voxels of each level, in the order of levels.")
        .def(
            "plot", [](nb::handle self, const nb::kwargs &options) { return notebook("plot_map", self, options); },
            nb::sig("def plot(self, *, ax: typing.Any = None, points: numpy.typing.ArrayLike | None = None, "
                    "pose: numpy.typing.ArrayLike | None = None, scans: collections.abc.Iterable[Scan] = ()) -> "
                    "typing.Any"),
            R"(Draws the map from above, shaded by height, and returns the axes (matplotlib).

Parameters
----------
ax : matplotlib.axes.Axes, optional
    To draw on; default: those of a new figure.
points, pose : ndarray, optional
    A scan, and T_map_sensor of it: whether it fits.
scans : iterable of Scan
    Of a Replay or a Localizer: the way.
)")
        .def("_repr_html_", [](nb::handle self) { return notebook("map_html", self); })
        .def("__repr__", &describe);
}

} // namespace ndt_python
