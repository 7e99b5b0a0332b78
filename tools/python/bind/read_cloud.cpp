// ndtd.read_cloud: a cloud file as arrays that share the memory of the cloud; ndtd.write_cloud
#include "common.hpp"
#include "ndt_io/cloud_file.h"

namespace ndt_python
{

using namespace nb::literals;

// Columns of `count` numbers, `stride` apart; the arrays keep the cloud alive.
static nb::object view(float *values, std::initializer_list<size_t> shape, std::initializer_list<int64_t> strides,
                       nb::handle owner)
{
    return nb::cast(nb::ndarray<nb::numpy, float>(values, shape, owner, strides));
}

static nb::dict read_cloud(nb::handle path)
{
    const std::string name = path_text(path);
    ndt_error error;
    ndt_status status;
    auto memory = std::make_unique<Cloud>();
    {
        nb::gil_scoped_release release;
        status = ndt_cloud_read(&memory->cloud, name.c_str(), &error);
    }
    check_file(status, error, name);
    ndt_cloud &cloud = memory->cloud;
    nb::capsule owner(memory.release(), [](void *held) noexcept { delete static_cast<Cloud *>(held); });
    const int64_t column = cloud.y_m - cloud.x_m; // equal from z to y: one block of columns
    nb::dict out;
    out["points"] = view(cloud.x_m, {cloud.count, 3}, {1, column}, owner);
    out["origin"] = make_doubles<3>(cloud.origin_m);
    out["intensity"] = cloud.intensity ? view(cloud.intensity, {cloud.count}, {1}, owner) : nb::object(nb::none());
    out["time_s"] = cloud.time_s ? view(cloud.time_s, {cloud.count}, {1}, owner) : nb::object(nb::none());
    return out;
}

static void write_cloud(nb::handle path, nb::handle points, nb::handle intensity)
{
    const std::string name = path_text(path);
    ndt_error error;
    ndt_status status;
    Cloud memory;
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || name.substr(dot) != ".pcd")
        throw nb::value_error((name + ": clouds are written as PCD: the name has to end in .pcd").c_str());
    read_points(memory.cloud, points, Origin::Near, "points");
    if (!intensity.is_none())
        read_intensity(memory.cloud, intensity, "intensity");
    {
        nb::gil_scoped_release release;
        status = ndt_pcd_write(&memory.cloud, name.c_str(), NDT_PCD_BINARY, &error);
    }
    check_file(status, error, name);
}

void bind_read_cloud(nb::module_ &module)
{
    module.def(
        "write_cloud", &write_cloud, "path"_a, "points"_a, "intensity"_a = nb::none(),
        nb::sig("def write_cloud(path: str | os.PathLike[str], points: numpy.typing.ArrayLike, "
                "intensity: numpy.typing.ArrayLike | None = None) -> None"),
        "Writes points (N, 3) [m] and intensity (N,) as a binary PCD, which replaces the file as a whole. float64 "
        "points far from zero (UTM) are stored as float64, all others as float32.");
    module.def("read_cloud", &read_cloud, "path"_a,
               nb::sig("def read_cloud(path: str | os.PathLike[str]) -> dict[str, typing.Any]"),
               "A .pcd, .ply or .bin: dict of points (N, 3) relative to origin (3,), column by column in memory, "
               "intensity and time_s (N,) or None.");
}

} // namespace ndt_python
