// ndtd.Odometry and ndtd.OdometryScan
#include <cmath>
#include <cstdio>
#include <cstring>

#include "backends.h"
#include "encoder.hpp"
#include "keywords.hpp"
#include "map.hpp"
#include "ndt_odometry/odometry.h"
#include "ndtd/scan_turn.h"

namespace ndt_python
{

using namespace nb::literals;

// A backend and the odometry on it; one call at a time.
class Odometry
{
  public:
    Odometry(const ndt_odometry_params &params, const std::string &backend, int threads, size_t max_points);
    ~Odometry();
    Odometry(const Odometry &) = delete;
    Odometry &operator=(const Odometry &) = delete;

    ndt_odometry_result add(Stamp stamp_ns, nb::handle points, nb::handle time_s);
    void add_imu(Stamp stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration);
    void add_wheels(Stamp stamp_ns, nb::handle pose, nb::handle twist);
    bool restart();
    Points points();
    std::optional<Map> map();

  private:
    void close();

    ndt_backend *backend_ = nullptr;
    ndt_odometry *odometry_ = nullptr;
    Process process_;
    std::mutex lock_;
};

Odometry::Odometry(const ndt_odometry_params &params, const std::string &backend, int threads, size_t max_points)
{
    ndt_backend_config config;
    ndt_error error;
    ndt_backend_config_default(&config);
    config.threads = threads;
    config.max_points = max_points;
    config.pin_threads = 0; // a library must not move the threads of its program
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndt_backend_open_failover(&backend_, backend.c_str(), &config, &error);
        if (status == NDT_OK)
            status = ndt_odometry_create(&odometry_, &params, backend_, &error);
        if (status != NDT_OK)
            close();
    }
    check(status, error);
}

void Odometry::close()
{
    ndt_odometry_destroy(odometry_);
    if (backend_)
        backend_->ops->close(backend_);
}

Odometry::~Odometry()
{
    if (!process_.is_mine())
        return; // its threads are gone: they cannot be joined
    nb::gil_scoped_release release;
    close();
}

ndt_odometry_result Odometry::add(Stamp stamp_ns, nb::handle points, nb::handle time_s)
{
    ndt_odometry_result result;
    ndt_error error;
    ndt_status status;
    Cloud cloud;
    const int64_t ns = stamp_ns.ns("add(stamp_ns, points)");
    process_.check("Odometry");
    const Turn turn(lock_);
    read_points(cloud.cloud, points, Origin::None, "points");
    if (!time_s.is_none())
        read_times(cloud.cloud, time_s, "time_s");
    {
        nb::gil_scoped_release release;
        status = ndt_odometry_add_scan(odometry_, ns, &cloud.cloud, &result, &error);
    }
    check(status, error);
    return result;
}

void Odometry::add_imu(Stamp stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration)
{
    ndt_track_imu_sample sample{};
    sample.stamp_ns = stamp_ns.ns("add_imu(stamp_ns, angular_velocity)");
    read_numbers(sample.angular_velocity_radps, 3, angular_velocity, "angular_velocity");
    sample.has_acceleration = !linear_acceleration.is_none();
    if (sample.has_acceleration)
        read_numbers(sample.acceleration_mps2, 3, linear_acceleration, "linear_acceleration");
    const Turn turn(lock_);
    ndt_odometry_add_imu(odometry_, &sample);
}

void Odometry::add_wheels(Stamp stamp_ns, nb::handle pose, nb::handle twist)
{
    ndt_track_odometry_sample sample{};
    double numbers[6];
    sample.stamp_ns = stamp_ns.ns("add_wheels(stamp_ns, pose=, twist=)");
    sample.has_pose = !pose.is_none();
    sample.has_twist = !twist.is_none();
    if (!sample.has_pose && !sample.has_twist)
        throw nb::value_error("add_wheels: a pose, a twist or both are wanted");
    sample.T_odom_base = read_pose(pose, "pose");
    if (sample.has_twist) {
        read_numbers(numbers, 6, twist, "twist");
        std::memcpy(sample.twist.v_mps, numbers, sizeof(sample.twist.v_mps));
        std::memcpy(sample.twist.w_radps, numbers + 3, sizeof(sample.twist.w_radps));
    }
    const Turn turn(lock_);
    ndt_odometry_add_wheels(odometry_, &sample);
}

bool Odometry::restart()
{
    const Turn turn(lock_);
    nb::gil_scoped_release release;
    return ndt_odometry_restart(odometry_) != 0;
}

Points Odometry::points()
{
    const Turn turn(lock_);
    return make_points(*ndt_odometry_points(odometry_));
}

std::optional<Map> Odometry::map()
{
    const Turn turn(lock_);
    ndt_map *map = ndt_odometry_map(odometry_);
    return map ? std::optional<Map>(Map(ndt_map_retain(map))) : std::nullopt;
}

// ---- parameters ----

static const double DEG = 0.017453292519943295;

static void read_preprocess(ndt_preprocess_params &params, Keywords &options)
{
    params.deskew = static_cast<ndt_deskew_mode>(options.label("deskew", ndt_deskew_labels, params.deskew));
    params.sweep_s = options.number("sweep_s", params.sweep_s, 1e-6, 10);
    params.sweep_stamp =
        static_cast<ndt_sweep_stamp>(options.label("sweep_stamp", ndt_sweep_stamp_labels, params.sweep_stamp));
    params.min_range_m = options.number("min_range_m", params.min_range_m, 0, 1e6);
    params.max_range_m = options.number("max_range_m", params.max_range_m, params.min_range_m, 1e6);
    params.range_offset_m = options.number("range_offset_m", params.range_offset_m, -1, 1);
    params.voxel_m = options.number("voxel_m", params.voxel_m, 0, 100);
    params.sample_count = static_cast<uint32_t>(options.integer("sample_count", params.sample_count, 0, 16777216));
}

// The levels of the map are those of the alignment.
static void read_levels(ndt_odometry_params &params, Keywords &options)
{
    const std::vector<double> leaves = options.numbers("levels", {4, 2, 1}, NDT_MAX_LEVELS);
    params.map.level_count = params.align.level_count = leaves.size();
    for (size_t i = 0; i < leaves.size(); i++) {
        params.map.leaf_m[i] = leaves[i];
        params.align.levels[i] = {leaves[i], i + 1 < leaves.size() ? NDT_DIRECT7 : NDT_RADIUS};
    }
}

static ndt_odometry_params read_params(Keywords &options)
{
    ndt_odometry_params params;
    ndt_odometry_params_default(&params);
    const nb::object mount = options.object("T_base_sensor");
    params.T_base_sensor = read_pose(mount, "T_base_sensor");
    read_preprocess(params.preprocess, options);
    read_levels(params, options);
    params.map_voxel_m = options.number("map_voxel_m", params.map_voxel_m, 0.01, 10);
    params.keyframe_m = options.number("keyframe_m", params.keyframe_m, 0, 100);
    params.keyframe_rad = options.number("keyframe_deg", params.keyframe_rad / DEG, 0, 360) * DEG;
    params.keyframe_scans =
        static_cast<uint32_t>(options.integer("keyframe_scans", params.keyframe_scans, 0, 1000000));
    params.window = static_cast<uint32_t>(options.integer("window", params.window, 1, 10000));
    params.near_m = options.number("near_m", params.near_m, 0, 1000);
    params.near_path_m = options.number("near_path_m", params.near_path_m, 0, 1e6);
    params.max_keyframes =
        static_cast<uint32_t>(options.integer("max_keyframes", params.max_keyframes, params.window, 100000));
    return params;
}

static void init(Odometry *self, const nb::kwargs &given)
{
    Keywords options(given, "Odometry");
    const std::string backend = options.text("backend", "cpu");
    const auto threads = static_cast<int>(options.integer("threads", 1, 0, 64));
    const auto max_points = static_cast<size_t>(options.integer("max_points", 1 << 20, 1, NDT_CLOUD_MAX_POINTS));
    const ndt_odometry_params params = read_params(options);
    options.end();
    new (self) Odometry(params, backend, threads, max_points);
}

static std::string describe(const ndt_odometry_result &self)
{
    char text[200];
    const ndt_pose &pose = self.T_odom_base;
    std::snprintf(text, sizeof(text), "ndtd.OdometryScan(%s%s, x %.3f y %.3f z %.3f, fit %.3f)",
                  ndt_outcome_name(self.outcome), self.is_degenerate ? ", degenerate" : "", pose.t_m[0],
                  pose.t_m[1], pose.t_m[2], self.fit);
    return text;
}

static Doubles<6> make_twist(const ndt_twist &of)
{
    const double numbers[6] = {of.v_mps[0], of.v_mps[1], of.v_mps[2], of.w_radps[0], of.w_radps[1], of.w_radps[2]};
    return make_doubles<6>(numbers);
}

static void bind_result(nb::module_ &module)
{
    using Scan = ndt_odometry_result;
    nb::class_<Scan>(module, "OdometryScan", "Where odometry found a scan.")
        .def_ro("stamp_ns", &Scan::stamp_ns, "Of the scan [ns].")
        .def_ro("reference_ns", &Scan::reference_ns, "The moment to which its points were moved [ns].")
        .def_prop_ro(
            "outcome", [](const Scan &self) { return ndt_outcome_name(self.outcome); },
            "'converged' and 'iteration_limit': the pose follows from the scan; else it is the prediction.")
        .def_prop_ro(
            "reason", [](const Scan &self) { return std::string(self.reason); }, "One line; empty for 'converged'.")
        .def_prop_ro(
            "located",
            [](const Scan &self) { return self.outcome == NDT_CONVERGED || self.outcome == NDT_ITERATION_LIMIT; },
            "Whether the pose follows from the scan.")
        .def_prop_ro(
            "pose", [](const Scan &self) { return make_matrix(self.T_odom_base); }, nb::rv_policy::automatic,
            "T_odom_base at stamp_ns, ndarray (4, 4).")
        .def_prop_ro(
            "reference_pose", [](const Scan &self) { return make_matrix(self.T_odom_reference); },
            nb::rv_policy::automatic, "T_odom_base at reference_ns, ndarray (4, 4).")
        .def_prop_ro(
            "twist", [](const Scan &self) { return make_twist(self.twist); }, nb::rv_policy::automatic,
            "ndarray (6,): vx vy vz [m/s], wx wy wz [rad/s] of the base, in the base frame, at reference_ns.")
        .def_prop_ro(
            "covariance", [](const Scan &self) { return make_doubles<6, 6>(self.covariance); },
            nb::rv_policy::automatic,
            "ndarray (6, 6), x y z rx ry rz, of reference_pose relative to the local map, in the axes of odom.")
        .def_ro("deviation_m", &Scan::deviation_m, "Of the position, along its least certain axis [m].")
        .def_ro("deviation_rad", &Scan::deviation_rad, "Of the attitude, likewise [rad].")
        .def_prop_ro(
            "degenerate", [](const Scan &self) { return self.is_degenerate != 0; },
            "The attitude is not determined within 5 deg; or no wheels tell the way, and the position is not "
            "determined within 0.5 m or the scan hardly observes a direction.")
        .def_ro("weakest", &Scan::weakest, "Smallest over largest eigenvalue of what the scan says about its pose.")
        .def_ro("innovation", &Scan::innovation, "Squared distance from the prediction, in sigmas.")
        .def_ro("scores", &Scan::scores, "How well the scan fits the local map.")
        .def_ro("fit", &Scan::fit, "scores.nvtl_normalized * scores.match_ratio.")
        .def_prop_ro(
            "keyframe", [](const Scan &self) { return self.is_keyframe != 0; },
            "Whether its points are in the local map.")
        .def_ro("guesses", &Scan::guesses, "Poses that it was aligned from.")
        .def_ro("segment", &Scan::segment, "Another one: the pose was lost between.")
        .def_ro("points", &Scan::points, "Points that were aligned.")
        .def_ro("preprocess_us", &Scan::preprocess_us, "[us].")
        .def_ro("align_us", &Scan::align_us, "[us].")
        .def_ro("map_us", &Scan::map_us, "For the local map, at keyframes [us].")
        .def("__repr__", &describe);
}

static void bind_class(nb::module_ &module)
{
    nb::class_<Odometry>(module, "Odometry", R"(Scans in, a trajectory out, without a map.

Every scan is aligned with the scans before it; see ndt_odometry/odometry.h. Equal inputs give equal
bits. The interpreter is released meanwhile. After fork() the child makes its own.

Parameters
----------
backend, threads, max_points
    As for Aligner.
T_base_sensor : ndarray (4, 4), optional
    Where the sensor is on the vehicle. Default: the identity.
deskew : {'auto', 'off', 'time', 'azimuth_cw', 'azimuth_ccw'}
    How the time of a point is known; 'auto': by time_s where it is given.
sweep_s, sweep_stamp : float, {'middle', 'begin', 'end'}
    Duration of a sweep and where its stamp lies, for the azimuth modes.
min_range_m, max_range_m, voxel_m, sample_count
    Of the points that are aligned, as for preprocess.
range_offset_m : float
    Added to every range, by which the sensor measures too little [m].
levels : sequence of float
    Cell edges of the local map from coarse to fine [m].
map_voxel_m : float
    Points of keyframes are thinned to one per cell of this edge [m].
keyframe_m, keyframe_deg, keyframe_scans
    When a scan becomes a keyframe; 0 scans: never after a number of them.
window : int
    Last keyframes that make the local map.
near_m, near_path_m : float
    And older ones closer than near_m that lie at most near_path_m back along the way [m].
max_keyframes : int
    Most that are kept in memory.
)")
        .def("__init__", &init, "options"_a,
             nb::sig("def __init__(self, *, backend: str = 'cpu', threads: int = 1, max_points: int = 1048576, "
                     "T_base_sensor: numpy.typing.ArrayLike | None = None, deskew: str = 'auto', "
                     "sweep_s: float = 0.1, sweep_stamp: str = 'middle', min_range_m: float = 1.0, "
                     "max_range_m: float = 200.0, range_offset_m: float = 0.0, voxel_m: float = 0.5, "
                     "sample_count: int = 1500, "
                     "levels: collections.abc.Sequence[float] = (4, 2, 1), map_voxel_m: float = 0.2, "
                     "keyframe_m: float = 1.0, keyframe_deg: float = 15.0, keyframe_scans: int = 10, "
                     "window: int = 20, near_m: float = 15.0, near_path_m: float = 100.0, "
                     "max_keyframes: int = 200) -> None"))
        .def("__repr__", [](const Odometry &) { return "ndtd.Odometry()"; })
        .def("add", &Odometry::add, "stamp_ns"_a, "points"_a.none(), nb::kw_only(), "time_s"_a = nb::none(),
             nb::sig("def add(self, stamp_ns: int, points: numpy.typing.ArrayLike, *, "
                     "time_s: numpy.typing.ArrayLike | None = None) -> OdometryScan"),
             R"(Finds the pose of the next scan.

A scan that cannot be used (empty, a stamp that is not newer) has the outcome 'rejected' and a reason.

Parameters
----------
stamp_ns : int
    Of the scan [ns].
points : ndarray, shape (N, 3) or wider, float32 or float64
    As the sensor measured them, in its frame [m].
time_s : ndarray, shape (N,), optional
    Of the points, relative to the stamp [s].
)")
        .def("add_imu", &Odometry::add_imu, "stamp_ns"_a, "angular_velocity"_a,
             "linear_acceleration"_a = nb::none(),
             nb::sig("def add_imu(self, stamp_ns: int, angular_velocity: numpy.typing.ArrayLike, "
                     "linear_acceleration: numpy.typing.ArrayLike | None = None) -> None"),
             "A sample of an IMU in the base frame [rad/s, m/s^2], before the scans that it is needed for.")
        .def("add_wheels", &Odometry::add_wheels, "stamp_ns"_a, nb::kw_only(), "pose"_a = nb::none(),
             "twist"_a = nb::none(),
             nb::sig("def add_wheels(self, stamp_ns: int, *, pose: numpy.typing.ArrayLike | None = None, "
                     "twist: numpy.typing.ArrayLike | None = None) -> None"),
             "Odometry of the vehicle: the pose of the base in a frame of its own, its twist, or both.")
        .def("restart", &Odometry::restart,
             R"(Begins anew, with the velocity that was found for the first scan.

For recordings that begin while the vehicle moves: give the first seven scans, call this, give them again, call
this, then all scans from the first. Samples of other sensors are forgotten. Returns whether the velocity is known.)")
        .def_prop_ro(
            "points", &Odometry::points, nb::rv_policy::automatic,
            "Of the last scan, deskewed to reference_ns and thinned to map_voxel_m, ndarray (N, 3) float32, "
            "sensor frame.")
        .def_prop_ro("map", &Odometry::map, "The local map, in the frame odom; None before the first scan.");
}

// The value of `deskew` that the order of the points tells.
static const char *scan_turn(nb::handle points)
{
    Cloud cloud;
    read_points(cloud.cloud, points, Origin::None, "points");
    const ndtd_turn turn = ndtd_scan_turn(&cloud.cloud);
    return ndt_label_name(ndt_deskew_labels, turn == NDTD_TURN_CLOCKWISE           ? NDT_DESKEW_AZIMUTH_CW
                                             : turn == NDTD_TURN_COUNTER_CLOCKWISE ? NDT_DESKEW_AZIMUTH_CCW
                                                                                   : NDT_DESKEW_OFF);
}

void bind_odometry(nb::module_ &module)
{
    module.def(
        "scan_turn", &scan_turn, "points"_a.none(), nb::sig("def scan_turn(points: numpy.typing.ArrayLike) -> str"),
        "How to deskew a scan without times, by the order of its points: 'azimuth_cw', 'azimuth_ccw', or 'off' "
        "where that tells nothing.");
    bind_result(module);
    bind_class(module);
}

} // namespace ndt_python
