// ndtd.Localizer
#include "encoder.hpp"
#include "keywords.hpp"
#include "map.hpp"
#include "ndt/names.h"
#include "ndt_io/map_file.h"
#include "ndtd/pipeline.h"
#include "scan.hpp"

namespace ndt_python
{

using namespace nb::literals;

// A pipeline with its map: what ndtd_session is in C, with a Scan for every scan. One call at a time.
class Localizer
{
  public:
    Localizer(const ndtd_settings &settings, ndt_map *map);
    ~Localizer();
    Localizer(const Localizer &) = delete;
    Localizer &operator=(const Localizer &) = delete;

    Scan scan(int64_t stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s,
              std::optional<uint64_t> seq, const std::string &frame_id);
    // Encodes with a call of the encoder, and takes the message in.
    template <class Encode> void take(ndt_message_type type, const Encode &encode)
    {
        process_.check("Localizer");
        const Turn turn(lock_);
        encode(encoder_);
        (void)process(type);
    }
    nb::dict pose_at(int64_t stamp_ns);
    void set_map(nb::handle map);
    std::string hash();
    std::vector<std::string> warnings();

  private:
    ndtd_scan_record process(ndt_message_type type);

    ndtd_pipeline *pipeline_ = nullptr;
    std::shared_ptr<ndt_map> map_;
    Encoder encoder_;
    TrajectoryHash hash_;
    uint64_t next_seq_ = 0;
    Process process_;
    std::mutex lock_;
};

Localizer::Localizer(const ndtd_settings &settings, ndt_map *map)
{
    const ndtd_settings_snapshot *snapshot = nullptr;
    ndt_error error;
    ndt_map *loaded = nullptr;
    ndt_status status = NDT_OK;
    if (!map && !*settings.map_path)
        throw nb::value_error("map: none was given, and the configuration has no map.path");
    {
        nb::gil_scoped_release release;
        if (!map)
            status = ndt_map_load(&loaded, settings.map_path, &settings.map, &error);
        if (status == NDT_OK)
            map_ = std::shared_ptr<ndt_map>(map ? ndt_map_retain(map) : loaded, ndt_map_release);
        if (status == NDT_OK)
            status = ndtd_settings_snapshot_create(&snapshot, &settings, &error);
        if (status == NDT_OK)
            status = ndtd_pipeline_create(&pipeline_, snapshot, map_.get(), 0, &error);
        ndtd_settings_snapshot_release(snapshot);
    }
    if (!map_)
        check_file(status, error, settings.map_path);
    check(status, error);
}

Localizer::~Localizer()
{
    if (!process_.is_mine())
        return; // its threads are gone: they cannot be joined
    nb::gil_scoped_release release;
    ndtd_pipeline_destroy(pipeline_);
}

// Processes the message that was encoded; of a scan, its record.
ndtd_scan_record Localizer::process(ndt_message_type type)
{
    ndtd_message message = {};
    ndtd_scan_record record = {};
    ndt_error error;
    ndt_status status = NDT_OK;
    message.type = type;
    message.data = encoder_.frame().data;
    message.size = encoder_.frame().size;
    {
        nb::gil_scoped_release release;
        if (type == NDT_MESSAGE_SCAN)
            status = ndt_scan_header_decode(message.data, message.size, &message.scan, &error);
        if (status == NDT_OK)
            status = ndtd_pipeline_process(pipeline_, &message, &record, &error);
    }
    check(status, error);
    return record;
}

Scan Localizer::scan(int64_t stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s,
                     std::optional<uint64_t> seq, const std::string &frame_id)
{
    process_.check("Localizer");
    const Turn turn(lock_);
    encoder_.scan(stamp_ns, points, intensity, time_s, seq.value_or(next_seq_), frame_id);
    const ndtd_scan_record record = process(NDT_MESSAGE_SCAN);
    next_seq_ = record.seq + 1;
    hash_.add(record);
    return make_scan(record, map_.get());
}

// As the clients give it, with matrices. LookupError: there is none at that stamp.
nb::dict Localizer::pose_at(int64_t stamp_ns)
{
    process_.check("Localizer");
    const Turn turn(lock_);
    ndt_moment_message found;
    ndt_error error;
    if (ndtd_pipeline_pose_at(pipeline_, stamp_ns, &found, &error) != NDT_OK) {
        PyErr_SetString(PyExc_LookupError, error.text);
        throw nb::python_error();
    }
    const double *v = found.twist.v_mps, *w = found.twist.w_radps;
    const double twist[6] = {v[0], v[1], v[2], w[0], w[1], w[2]};
    nb::dict out;
    out["stamp_ns"] = found.stamp_ns;
    out["pose"] = make_matrix(found.T_map_base);
    out["covariance"] = make_doubles<6, 6>(found.covariance);
    out["twist"] = found.has_twist ? nb::object(nb::cast(make_doubles<6>(twist))) : nb::none();
    out["kind"] = ndt_pose_kind_name(found.kind);
    out["state"] = ndt_state_name(found.state);
    out["scan_ns"] = found.scan_ns;
    return out;
}

void Localizer::set_map(nb::handle map)
{
    process_.check("Localizer");
    const Map &next = read_map(map);
    ndt_error error;
    ndt_status status;
    const Turn turn(lock_);
    {
        nb::gil_scoped_release release;
        status = ndtd_pipeline_set_map(pipeline_, next.get(), &error);
    }
    check(status, error);
    map_ = std::shared_ptr<ndt_map>(ndt_map_retain(next.get()), ndt_map_release);
}

std::string Localizer::hash()
{
    const Turn turn(lock_);
    return hash_.text();
}

// What the daemon logs: of each kind its last line.
std::vector<std::string> Localizer::warnings()
{
    const Turn turn(lock_);
    struct ndtd_pipeline_events told = {}; // the name is also that of a function
    char event[NDTD_EVENT_BYTES], text[NDTD_EVENT_BYTES + 64];
    std::vector<std::string> out;
    size_t kind = 0;
    while (const char *format = ndtd_pipeline_event(ndtd_pipeline_events(pipeline_), &told, &kind, event)) {
        const std::string pattern = format;
        const size_t at = pattern.find("%s");
        std::snprintf(text, sizeof(text), "%s%s", pattern.substr(0, at).c_str(), event);
        out.emplace_back(text);
    }
    return out;
}

// More than the inputs that have a place: one line in place of nanobind's list of signatures.
static void refuse_unnamed(nb::args unnamed, const char *call)
{
    if (unnamed.size() > 0)
        throw nb::type_error((std::string(call) + ": further arguments are wanted by name").c_str());
}

static void init(Localizer *self, nb::handle map, nb::args unnamed, nb::kwargs named)
{
    Keywords given(named, "Localizer");
    refuse_unnamed(unnamed, "Localizer(map, config=, options=)");
    const nb::object config = given.object("config"), options = given.object("options");
    given.end();
    if (nb::hasattr(map, "ndim"))
        throw nb::type_error("map: a path or an ndtd.Map is wanted, not an array: ndtd.Map(array)");
    const bool is_map = nb::isinstance<Map>(map);
    ndtd_settings settings = read_settings(is_map ? nb::none() : nb::borrow(map), config, options);
    settings.compute.pin_threads = 0; // a library must not move the threads of its program
    new (self) Localizer(settings, is_map ? read_map(map).get() : nullptr);
}

// The inputs have the names and the order of arguments of BagWriter.
static void bind_inputs(nb::class_<Localizer> &localizer)
{
    localizer
        .def(
            "odometry",
            [](Localizer &self, Stamp stamp_ns, nb::args unnamed, nb::kwargs named) {
                const int64_t ns = stamp_ns.ns("odometry(stamp_ns, pose=, twist=)");
                refuse_unnamed(unnamed, "odometry(stamp_ns, pose=, twist=)");
                Keywords given(named, "odometry");
                const nb::object pose = given.object("pose"), twist = given.object("twist"),
                                 covariance = given.object("covariance");
                const std::string frame_id = given.text("frame_id", "odom");
                given.end();
                self.take(NDT_MESSAGE_ODOMETRY, [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_ODOMETRY, ns, pose, twist, covariance, frame_id);
                });
            },
            "stamp_ns"_a, "unnamed"_a, "named"_a,
            nb::sig("def odometry(self, stamp_ns: int, *, pose: object | None = None, twist: object | None = None, "
                    "covariance: object | None = None, frame_id: str = 'odom') -> None"),
            "T_odom_base, or the twist vx vy vz wx wy wz of the base in the base frame, or both.")
        .def(
            "initial_pose",
            [](Localizer &self, Stamp stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance) {
                const int64_t ns = stamp_ns.ns("initial_pose(stamp_ns, pose)");
                self.take(NDT_MESSAGE_INITIAL_POSE, [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_INITIAL_POSE, ns, pose, twist, covariance, "map");
                });
            },
            "stamp_ns"_a, "pose"_a, nb::kw_only(), "twist"_a = nb::none(), "covariance"_a = nb::none(),
            "T_map_base: where the vehicle is, now or in mid-drive.")
        .def(
            "imu",
            [](Localizer &self, Stamp stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
               const std::string &frame_id) {
                const int64_t ns = stamp_ns.ns("imu(stamp_ns, angular_velocity)");
                self.take(NDT_MESSAGE_IMU, [&](Encoder &encoder) {
                    encoder.imu(ns, angular_velocity, linear_acceleration, frame_id);
                });
            },
            "stamp_ns"_a, "angular_velocity"_a, "linear_acceleration"_a = nb::none(), nb::kw_only(),
            "frame_id"_a = "imu", "[rad/s], [m/s^2]: +9.81 on z at rest.")
        .def(
            "gnss",
            [](Localizer &self, Stamp stamp_ns, nb::handle position, nb::handle deviation,
               const std::string &antenna) {
                const int64_t ns = stamp_ns.ns("gnss(stamp_ns, position)");
                self.take(NDT_MESSAGE_GNSS,
                          [&](Encoder &encoder) { encoder.gnss(ns, position, deviation, antenna); });
            },
            "stamp_ns"_a, "position"_a, "deviation"_a = nb::none(), nb::kw_only(), "antenna"_a = "",
            "x y z of the antenna in the map frame [m], standard deviations [m]; antenna: the frame of its "
            "transform.")
        .def(
            "transform",
            [](Localizer &self, Stamp stamp_ns, const std::string &frame_id, nb::handle pose) {
                const int64_t ns = stamp_ns.ns("transform(stamp_ns, frame_id, pose)");
                self.take(NDT_MESSAGE_TRANSFORM, [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_TRANSFORM, ns, pose, nb::none(), nb::none(), frame_id);
                });
            },
            "stamp_ns"_a, "frame_id"_a, "pose"_a,
            "T_base_frame of a sensor: where it is from the next scan on, unless the configuration says it.");
}

void bind_localizer(nb::module_ &module)
{
    nb::class_<Localizer> localizer(module, "Localizer",
                                    R"(Localises inside this process: scans and motion in, a Scan for each scan out.

    localizer = ndtd.Localizer("map.pcd")
    localizer.initial_pose(stamp_ns, pose)            # without one, the first scans are searched for in the map
    scan = localizer.scan(stamp_ns, points, time_s=times)
    if scan.trusted:
        print(scan.pose)

The bits of `ndtd --replay` of a bag with the same messages in the same order; no clock, no queue, no socket. Inputs
go in the order of their stamps. The interpreter is released meanwhile; calls from several threads wait for each
other. Not usable in a process forked after it was made.

Parameters
----------
map : path or ndtd.Map, optional
    A Map has the cells of the option ndt.levels. Default: map.path of the configuration.
config : path, optional
    A configuration file of ndtd, or Autoware's ndt_scan_matcher.param.yaml.
options : dict, optional
    As --set: {"preprocess.deskew": "time"}. Those of sockets, queues and recordings have no effect.

Raises
------
FileNotFoundError, OSError, ValueError, TypeError
    A map or a configuration that is missing or wrong, an option that is not known, an argument that is no message:
    one line that names it. What was refused has changed nothing.
)");
    localizer
        .def("__init__", &init, "map"_a = nb::none(), "unnamed"_a, "named"_a,
             nb::sig("def __init__(self, map: str | os.PathLike[str] | Map | None = None, *, "
                     "config: str | os.PathLike[str] | None = None, "
                     "options: collections.abc.Mapping[str, typing.Any] | None = None) -> None"))
        .def(
            "scan",
            [](Localizer &self, Stamp stamp_ns, nb::handle points, nb::args unnamed, nb::kwargs named) {
                Keywords given(named, "scan");
                refuse_unnamed(unnamed, "scan(stamp_ns, points, time_s=, intensity=)");
                const nb::object intensity = given.object("intensity"), time_s = given.object("time_s");
                const int64_t seq = given.integer("seq", -1, 0, INT64_MAX);
                const std::string frame_id = given.text("frame_id", "lidar");
                given.end();
                return self.scan(stamp_ns.ns("scan(stamp_ns, points)"), points, intensity, time_s,
                                 seq < 0 ? std::nullopt : std::optional<uint64_t>(seq), frame_id);
            },
            "stamp_ns"_a, "points"_a.none(), "unnamed"_a, "named"_a,
            nb::sig("def scan(self, stamp_ns: int, points: object | None, *, intensity: object | None = None, "
                    "time_s: object | None = None, seq: int | None = None, frame_id: str = 'lidar') -> Scan"),
            "Localises a scan. points: (N, 3) in the sensor frame [m]; time_s: (N,) relative to the stamp [s]; "
            "seq: "
            "default: one more than that of the scan before.")
        .def(
            "pose_at",
            [](Localizer &self, std::optional<Stamp> stamp_ns) {
                return self.pose_at(stamp_ns ? stamp_ns->ns("pose_at(stamp_ns)") : 0);
            },
            "stamp_ns"_a = nb::none(),
            nb::sig("def pose_at(self, stamp_ns: int | None = None) -> dict[str, typing.Any]"),
            "The pose of the base at any time: stamp_ns, pose (4, 4), covariance (6, 6), twist (6,) or None, kind "
            "('smoothed' between the scans of the last seconds, 'filtered', 'predicted' by up to "
            "output.max_ahead_s), "
            "state, scan_ns. None: at the newest stamp of all data. LookupError where there is none, with the "
            "reason "
            "first: no_pose, before_window, too_far_ahead, not_trusted.")
        .def("set_map", &Localizer::set_map, "map"_a, nb::sig("def set_map(self, map: Map) -> None"),
             "The following scans are aligned with another map; on failure the former one stays.")
        .def_prop_ro("hash", &Localizer::hash,
                     "The trajectory hash of the scans so far, as `ndtd --replay` prints it.")
        .def_prop_ro(
            "warnings", &Localizer::warnings,
            "What the scans so far say of inputs, settings and the map, a line of each kind: times of points "
            "that cannot be used, odometry that lies, a map that does not fit.")
        .def("__repr__", [](Localizer &self) { return "ndtd.Localizer(hash " + self.hash() + ")"; });
    bind_inputs(localizer);
}

} // namespace ndt_python
