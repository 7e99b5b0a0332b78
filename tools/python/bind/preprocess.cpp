// ndtd.preprocess
#include "common.hpp"

#include <cstring>

#include "ndt/names.h"
#include "ndt/preprocess.h"

namespace ndt_python
{

using namespace nb::literals;

struct Preprocessor {
    ndt_preprocessor *of = nullptr;
    Preprocessor()
    {
        ndt_error error;
        check(ndt_preprocessor_create(&of, &error), error);
    }
    ~Preprocessor() { ndt_preprocessor_destroy(of); }
    Preprocessor(const Preprocessor &) = delete;
    Preprocessor &operator=(const Preprocessor &) = delete;
};

static int deskew_mode(const std::string &name)
{
    std::string known;
    for (const ndt_label *label = ndt_deskew_labels; label->name; label++) {
        if (name == label->name)
            return label->value;
        known += (known.empty() ? "" : ", ") + std::string(label->name);
    }
    throw nb::value_error(("deskew: '" + name + "' is not known; there are: " + known).c_str());
}

static nb::object preprocess(nb::handle points, nb::handle time_s, const std::string &deskew, nb::handle twist,
                             double voxel_m, uint32_t sample_count, double min_range_m, double max_range_m,
                             double sweep_s, uint64_t seed, uint64_t sequence)
{
    ndt_preprocess_params params;
    ndt_preprocess_params_default(&params);
    params.deskew = static_cast<ndt_deskew_mode>(deskew_mode(deskew));
    params.voxel_m = voxel_m;
    params.sample_count = sample_count;
    params.min_range_m = min_range_m;
    params.max_range_m = max_range_m;
    params.sweep_s = sweep_s;
    params.seed = seed;
    Cloud cloud;
    Preprocessor preprocessor;
    ndt_sweep sweep;
    ndt_sweep_motion motion{};
    const ndt_cloud *out = nullptr;
    ndt_error error;
    ndt_status status;
    double numbers[6] = {};
    read_points(cloud.cloud, points, Origin::None, "points");
    if (!time_s.is_none())
        read_times(cloud.cloud, time_s, "time_s");
    if (!twist.is_none())
        read_numbers(numbers, 6, twist, "twist");
    std::memcpy(motion.twist.v_mps, numbers, sizeof(motion.twist.v_mps));
    std::memcpy(motion.twist.w_radps, numbers + 3, sizeof(motion.twist.w_radps));
    {
        nb::gil_scoped_release release;
        status = ndt_preprocess_sweep(&params, &cloud.cloud, &sweep, &error);
        if (status == NDT_OK)
            status =
                ndt_preprocess(preprocessor.of, &params, &cloud.cloud, &sweep, sequence, &motion, &out, &error);
    }
    check(status, error);
    return make_points(*out);
}

void bind_preprocess(nb::module_ &module)
{
    module.def("preprocess", &preprocess, "points"_a, "time_s"_a = nb::none(), nb::kw_only(), "deskew"_a = "off",
               "twist"_a = nb::none(), "voxel_m"_a = 0.5, "sample_count"_a = 1500, "min_range_m"_a = 1.0,
               "max_range_m"_a = 200.0, "sweep_s"_a = 0.1, "seed"_a = 1, "sequence"_a = 0,
               R"(From a raw scan to the points that are matched.

Drops points that are not finite, crops by range, undoes the motion during the sweep, filters by
voxel (mean of each cell) and samples at random.

Parameters
----------
points : ndarray, shape (N, 3) or wider
    Raw scan in the sensor frame [m].
time_s : ndarray, shape (N,), optional
    Of the points, relative to the stamp of the scan [s]; for deskew='time'.
deskew : {'off', 'time', 'azimuth_cw', 'azimuth_ccw'}
twist : 6 numbers, optional
    Velocity of the sensor in its own frame: vx vy vz [m/s], wx wy wz [rad/s].
voxel_m, sample_count : float, int
    0: no filter; 0: all points.
sweep_s : float
    Duration of a sweep, for the azimuth modes.
seed, sequence : int
    Of the sample; sequence varies from scan to scan.

Returns
-------
ndarray, shape (M, 3), float32
    Where the sensor would have measured the points at the middle of the sweep.
)");
}

} // namespace ndt_python
