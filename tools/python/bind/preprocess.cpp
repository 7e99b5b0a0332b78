// ndtd.preprocess
#include "keywords.hpp"

#include <cstring>

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

static ndt_preprocess_params read_params(Keywords &options)
{
    ndt_preprocess_params params;
    ndt_preprocess_params_default(&params);
    params.deskew = static_cast<ndt_deskew_mode>(options.label("deskew", ndt_deskew_labels, params.deskew));
    params.voxel_m = options.number("voxel_m", params.voxel_m, 0, 100);
    params.sample_count = static_cast<uint32_t>(options.integer("sample_count", params.sample_count, 0, 16777216));
    params.min_range_m = options.number("min_range_m", params.min_range_m, 0, 1e6);
    params.max_range_m = options.number("max_range_m", params.max_range_m, 0, 1e6);
    params.range_offset_m = options.number("range_offset_m", params.range_offset_m, -1, 1);
    params.sweep_s = options.number("sweep_s", params.sweep_s, 1e-6, 10);
    params.seed = static_cast<uint64_t>(options.integer("seed", 1, 0, INT64_MAX));
    if (params.min_range_m > params.max_range_m)
        throw nb::value_error("min_range_m: it is larger than max_range_m");
    return params;
}

static Points preprocess(nb::handle points, nb::handle time_s, const nb::kwargs &given)
{
    Keywords options(given, "preprocess");
    ndt_preprocess_params params = read_params(options);
    const nb::object twist = options.object("twist");
    const auto sequence = static_cast<uint64_t>(options.integer("sequence", 0, 0, INT64_MAX));
    options.end();
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
    else if (params.deskew == NDT_DESKEW_TIME)
        throw nb::value_error("time_s: missing; deskew='time' needs the times of the points");
    params.deskew = ndt_deskew_mode_of(params.deskew, &cloud.cloud);
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
    module.def(
        "preprocess", &preprocess, "points"_a.none(), "time_s"_a = nb::none(), "options"_a,
        nb::sig("def preprocess(points: numpy.typing.ArrayLike, time_s: numpy.typing.ArrayLike | None = None, "
                "*, deskew: str = 'off', twist: numpy.typing.ArrayLike | None = None, voxel_m: float = 0.5, "
                "sample_count: int = 1500, min_range_m: float = 1.0, max_range_m: float = 200.0, "
                "range_offset_m: float = 0.0, sweep_s: float = 0.1, seed: int = 1, sequence: int = 0) -> "
                "numpy.typing.NDArray[numpy.float32]"),
        R"(From a raw scan to the points that are matched.

Drops points that are not finite, crops by range, corrects ranges, undoes the motion during the sweep, filters by
voxel (mean of each cell) and samples at random.

Parameters
----------
points : ndarray, shape (N, 3) or wider, float32 or float64
    Raw scan in the sensor frame [m].
time_s : ndarray, shape (N,), optional
    Of the points, relative to the stamp of the scan [s]; for deskew='time' and 'auto'.
deskew : {'off', 'auto', 'time', 'azimuth_cw', 'azimuth_ccw'}
    'auto': by time_s where it is given, else off.
twist : 6 numbers, optional
    Velocity of the sensor in its own frame: vx vy vz [m/s], wx wy wz [rad/s].
voxel_m, sample_count : float, int
    0: no filter; 0: all points.
range_offset_m : float
    Added to every range, by which the sensor measures too little [m].
sweep_s : float
    Duration of a sweep, for the azimuth modes.
seed, sequence : int
    Of the sample; sequence varies from scan to scan.

Returns
-------
ndarray, shape (M, 3), float32
    Where the sensor would have measured the points at the middle of the sweep.

Raises
------
ValueError, TypeError
    A wrong shape, type or value; the message names the argument and the limit.
)");
}

} // namespace ndt_python
