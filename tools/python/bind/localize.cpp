// ndtd.Search and ndtd.Candidate
#include <cmath>
#include <cstdio>
#include <cstring>

#include "map.hpp"
#include "ndt_search/field.h"
#include "ndt_search/search.h"

namespace ndt_python
{

using namespace nb::literals;

class Search
{
  public:
    Search(const Map &map, int threads);
    ~Search();
    Search(const Search &) = delete;
    Search &operator=(const Search &) = delete;

    std::vector<ndt_search_candidate> run(nb::handle points, nb::handle up, nb::handle near_m, double radius_m);

  private:
    Map map_;
    ndt_search *search_ = nullptr;
    Process process_;
    Cloud cloud_;
    std::mutex lock_;
};

Search::Search(const Map &map, int threads) : map_(map)
{
    if (threads < 0 || threads > 64)
        throw nb::value_error("threads: 0 to 64 are possible");
    const ndt_search_config config = {threads, nullptr, 0, nullptr, 0};
    ndt_field *field = nullptr;
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndt_field_build(&field, map_.get(), &error);
        if (status == NDT_OK)
            status = ndt_search_create(&search_, &config, &error);
        if (status == NDT_OK)
            status = ndt_search_set_map(search_, map_.get(), field, &error);
        ndt_field_release(field);
        if (status != NDT_OK)
            ndt_search_destroy(search_);
    }
    check(status, error);
}

Search::~Search()
{
    if (process_.is_mine()) // otherwise its threads are gone: they cannot be joined
        ndt_search_destroy(search_);
}

std::vector<ndt_search_candidate> Search::run(nb::handle points, nb::handle up, nb::handle near_m, double radius_m)
{
    ndt_search_params params;
    ndt_search_region region{};
    ndt_error error;
    ndt_status status;
    double up_in_sensor[3];
    ndt_pose T_upright_sensor = ndt_pose_identity();
    auto result = std::make_unique<ndt_search_result>();
    ndt_search_params_default(&params);
    process_.check("Search");
    if (!up.is_none())
        read_numbers(up_in_sensor, 3, up, "up");
    if (!up.is_none() && !ndt_search_upright(up_in_sensor, &T_upright_sensor))
        throw nb::value_error("up: it has no direction");
    if (!near_m.is_none()) {
        if (!(radius_m > 0 && radius_m <= 1e6))
            throw nb::value_error("radius_m: more than 0 and at most 1e6 m are possible");
        region.has_position = 1;
        region.radius_m = radius_m;
        read_numbers(region.position_m, 2, near_m, "near_m");
    }
    const Turn turn(lock_);
    read_points(cloud_.cloud, points, Origin::None, "points");
    {
        nb::gil_scoped_release release;
        status = ndt_search_run(search_, &params, &cloud_.cloud, &T_upright_sensor,
                                near_m.is_none() ? nullptr : &region, nullptr, result.get(), &error);
    }
    check(status, error);
    return std::vector<ndt_search_candidate>(result->candidates, result->candidates + result->count);
}

static std::string describe(const ndt_search_candidate &self)
{
    char text[160];
    const ndt_pose &pose = self.T_map_sensor;
    std::snprintf(text, sizeof(text), "ndtd.Candidate(x %.3f y %.3f z %.3f, score %.3f, inliers %.3f)", pose.t_m[0],
                  pose.t_m[1], pose.t_m[2], self.gaussian_fit, self.inliers);
    return text;
}

void bind_localize(nb::module_ &module)
{
    nb::class_<ndt_search_candidate>(module, "Candidate", "A place at which a scan may have been taken.")
        .def_prop_ro(
            "pose", [](const ndt_search_candidate &self) { return make_matrix(self.T_map_sensor); },
            nb::rv_policy::automatic, "T_map_sensor, ndarray (4, 4).")
        .def_prop_ro(
            "score", [](const ndt_search_candidate &self) { return self.gaussian_fit; },
            "In [0, 1]: how well the points above the ground fit; ranks the candidates.")
        .def_prop_ro(
            "inliers", [](const ndt_search_candidate &self) { return self.inliers; },
            "Part of those points that lie near a voxel, in [0, 1].")
        .def_prop_ro(
            "scores", [](const ndt_search_candidate &self) { return self.scores; },
            "How well the scan fits the map at the pose.")
        .def("__repr__", &describe);
    nb::class_<Search>(module, "Search",
                       R"(Finds the place of a scan in a whole map, without a guess; keep it for several scans.

Parameters
----------
map : Map
    With a level of 1 m.
threads : int
    0: one per core, at most 4. No effect on results.
)")
        .def(
            "__init__",
            [](Search *self, nb::handle map, int threads) { new (self) Search(read_map(map), threads); },
            "map"_a.none(), nb::kw_only(), "threads"_a = 0,
            nb::sig("def __init__(self, map: Map, *, threads: int = 0) -> None"))
        .def("__repr__", [](const Search &) { return "ndtd.Search()"; })
        .def("run", &Search::run, "points"_a.none(), nb::kw_only(), "up"_a = nb::none(), "near_m"_a = nb::none(),
             "radius_m"_a = 100.0,
             nb::sig("def run(self, points: numpy.typing.ArrayLike, *, up: numpy.typing.ArrayLike | None = None, "
                     "near_m: numpy.typing.ArrayLike | None = None, radius_m: float = 100.0) -> list[Candidate]"),
             R"(Candidates, best first, at most ten; an empty list: nothing was found.

The first one is not always right: there is a best place in a wrong map as well. Compare the scores of
the first two, or follow them with further scans, as ndtd does.

Parameters
----------
points : ndarray, shape (N, 3), float32 or float64
    A raw or preprocessed scan, sensor frame [m].
up : 3 numbers, optional
    The direction against gravity in the sensor frame, of any length: what an accelerometer at rest measures, or
    the z axis of the vehicle, R_base_sensor.T @ [0, 0, 1]. Right within 12 deg. Default: the z axis of the sensor.
near_m : 2 numbers, optional
    Search only within radius_m of this place x y in the map [m].
)");
}

} // namespace ndt_python
