// ndtd.Search and ndtd.Candidate
#include <cstring>
#include <mutex>

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
    ~Search() { ndt_search_destroy(search_); }
    Search(const Search &) = delete;
    Search &operator=(const Search &) = delete;

    std::vector<ndt_search_candidate> run(nb::handle points, nb::handle up, nb::handle near_m, double radius_m);

  private:
    Map map_;
    ndt_search *search_ = nullptr;
    Cloud cloud_;
    std::mutex lock_;
};

Search::Search(const Map &map, int threads) : map_(map)
{
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

std::vector<ndt_search_candidate> Search::run(nb::handle points, nb::handle up, nb::handle near_m, double radius_m)
{
    ndt_search_params params;
    ndt_search_window window{};
    ndt_error error;
    ndt_status status;
    double up_in_sensor[3];
    auto result = std::make_unique<ndt_search_result>();
    ndt_search_params_default(&params);
    if (!up.is_none())
        read_numbers(up_in_sensor, 3, up, "up");
    if (!near_m.is_none()) {
        window.has_position = 1;
        window.radius_m = radius_m;
        read_numbers(window.position_m, 2, near_m, "near_m");
    }
    std::unique_lock<std::mutex> turn(lock_, std::defer_lock);
    {
        nb::gil_scoped_release release;
        turn.lock();
    }
    read_points(cloud_.cloud, points, Origin::None, "points");
    {
        nb::gil_scoped_release release;
        status = ndt_search_run(search_, &params, &cloud_.cloud, up.is_none() ? nullptr : up_in_sensor,
                                near_m.is_none() ? nullptr : &window, nullptr, result.get(), &error);
    }
    check(status, error);
    return std::vector<ndt_search_candidate>(result->candidates, result->candidates + result->count);
}

void bind_localize(nb::module_ &module)
{
    nb::class_<ndt_search_candidate>(module, "Candidate", "A place at which a scan may have been taken.")
        .def_prop_ro(
            "pose", [](const ndt_search_candidate &self) { return make_matrix(self.T_map_sensor); },
            "T_map_sensor, ndarray (4, 4).")
        .def_prop_ro(
            "score", [](const ndt_search_candidate &self) { return self.ng; },
            "In [0, 1]: how well the points above the ground fit; ranks the candidates.")
        .def_prop_ro("inliers", [](const ndt_search_candidate &self) { return self.inliers; })
        .def_prop_ro("scores", [](const ndt_search_candidate &self) { return make_scores(self.scores); });
    nb::class_<Search>(module, "Search",
                       R"(Finds the place of a scan in a whole map, without a guess; keep it for several scans.

Parameters
----------
map : Map
    With a level of 1 m.
threads : int
    0: one per core, at most 4. No effect on results.
)")
        .def(nb::init<const Map &, int>(), "map"_a, nb::kw_only(), "threads"_a = 0)
        .def("run", &Search::run, "points"_a, nb::kw_only(), "up"_a = nb::none(), "near_m"_a = nb::none(),
             "radius_m"_a = 100.0, R"(Candidates, best first, at most ten; an empty list: nothing was found.

The first one is not always right: there is a best place in a wrong map as well. Compare the scores of
the first two, or follow them with further scans, as ndtd does.

Parameters
----------
points : ndarray, shape (N, 3)
    A raw or preprocessed scan, sensor frame [m].
up : 3 numbers, optional
    The direction against gravity in the sensor frame (IMU). Default: the z axis, within 12 deg.
near_m : 2 numbers, optional
    Search only within radius_m of this place in the map.
)");
}

} // namespace ndt_python
