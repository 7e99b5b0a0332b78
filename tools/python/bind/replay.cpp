// ndtd.Replay and ndtd.Scan
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ndt_proto/message.h"
#include "ndtd/bag_run.h"
#include "ndtd/config_file.h"
#include "ndtd/importer.h"
#include "ndtd/options.h"
#include "ndtd/scan_state.h"
#include "scan.hpp"

namespace ndt_python
{

using namespace nb::literals;

Scan make_scan(const ndtd_scan_record &record, const ndt_map *map)
{
    Scan out{record, make_trace(map, record.trace, record.trace_count), ndtd_scan_has_trusted_pose(&record) != 0};
    out.record.trace = nullptr; // borrowed
    out.record.trace_count = 0;
    return out;
}

void TrajectoryHash::add(const ndtd_scan_record &record)
{
    value_ = ndtd_trajectory_hash(value_, record.seq, record.stamp_ns, record.result.outcome,
                                  &record.result.T_map_sensor);
}

std::string TrajectoryHash::text() const
{
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value_));
    return text;
}

class Replay
{
  public:
    Replay(const ndtd_settings &settings, const std::string &bag, uint64_t skip, uint64_t limit,
           std::vector<std::string> import_options);
    ~Replay();
    Replay(const Replay &) = delete;
    Replay &operator=(const Replay &) = delete;

    Scan next();
    std::optional<Doubles<4, 4>> truth(int64_t stamp_ns);
    std::string hash();
    std::vector<std::string> warnings();
    std::vector<std::string> hints();

  private:
    ndtd_bag_run *run_ = nullptr;
    ndtd_trajectory_error truth_{};
    Process process_;
    std::mutex lock_;
    TrajectoryHash hash_;
    std::vector<std::string> import_options_; // for ndt-import, as long as the run
    std::vector<const char *> import_arguments_;
};

Replay::Replay(const ndtd_settings &settings, const std::string &bag, uint64_t skip, uint64_t limit,
               std::vector<std::string> import_options)
    : import_options_(std::move(import_options))
{
    for (const std::string &option : import_options_)
        import_arguments_.push_back(option.c_str());
    const ndtd_bag_run_options options = {bag.c_str(), skip, limit, import_arguments_.data(),
                                          import_arguments_.size()};
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndtd_bag_run_open(&run_, &settings, &options, &truth_, &error);
    }
    if (status != NDT_OK)
        ndtd_trajectory_error_free(&truth_);
    if (status == NDT_ERR_IO) // the message names the file
        check_file(status, error, std::string(error.text).find(bag) == 0 ? bag : settings.map_path);
    check_file(status, error, bag);
}

Replay::~Replay()
{
    if (!process_.is_mine())
        return; // its threads are gone: they cannot be joined
    nb::gil_scoped_release release;
    ndtd_bag_run_close(run_);
    ndtd_trajectory_error_free(&truth_);
}

Scan Replay::next()
{
    ndtd_scan_record record;
    ndt_error error;
    ndt_status status;
    process_.check("Replay");
    const Turn turn(lock_);
    {
        nb::gil_scoped_release release;
        status = ndtd_bag_run_next(run_, &record, &error);
    }
    if (status == NDT_END) {
        check(ndtd_bag_run_check(run_, &error), error);
        throw nb::stop_iteration();
    }
    check(status, error);
    hash_.add(record);
    return make_scan(record, ndtd_bag_run_map(run_));
}

std::optional<Doubles<4, 4>> Replay::truth(int64_t stamp_ns)
{
    const Turn turn(lock_);
    ndt_pose pose;
    if (!ndtd_trajectory_error_truth_at(&truth_, stamp_ns, &pose, nullptr))
        return std::nullopt;
    return make_matrix(pose);
}

std::string Replay::hash()
{
    const Turn turn(lock_);
    return hash_.text();
}

static void add_line(void *context, const char *text)
{
    static_cast<std::vector<std::string> *>(context)->push_back(text);
}

std::vector<std::string> Replay::warnings()
{
    const Turn turn(lock_);
    std::vector<std::string> out;
    ndtd_bag_run_warnings(run_, add_line, &out);
    return out;
}

std::vector<std::string> Replay::hints()
{
    const Turn turn(lock_);
    const ndtd_hints *hints = ndtd_bag_run_hints(run_);
    std::vector<std::string> out;
    for (size_t i = 0; i < hints->count; i++)
        out.emplace_back(hints->text[i]);
    return out;
}

// As in --set: lists as "[a, b]", truth values in lower case; numbers and arrays of NumPy as those of Python,
// matrices by rows.
static std::string option_text(nb::handle given)
{
    if (nb::isinstance<nb::list>(given) && nb::len(given) > 0 && nb::isinstance<nb::list>(given[0])) {
        nb::list flat;
        for (nb::handle row : nb::iter(given))
            flat.attr("extend")(row);
        return option_text(flat);
    }
    if (nb::hasattr(given, "ravel") && nb::cast<int>(given.attr("ndim")) > 0)
        return option_text(given.attr("ravel")().attr("tolist")());
    const nb::object value = nb::hasattr(given, "tolist") ? given.attr("tolist")() : nb::borrow(given);
    if (nb::isinstance<nb::bool_>(value))
        return nb::cast<bool>(value) ? "true" : "false";
    if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value))
        return nb::cast<std::string>(value.attr("__str__")());
    std::string text;
    for (nb::handle one : nb::iter(value))
        text += (text.empty() ? "" : ", ") + option_text(one);
    return "[" + text + "]";
}

ndtd_settings read_settings(nb::handle map, nb::handle config, nb::handle options)
{
    ndtd_settings settings;
    ndt_error error;
    ndtd_settings_default(&settings);
    if (!config.is_none())
        check_file(ndtd_config_read(&settings, path_text(config).c_str(), &error), error, path_text(config));
    if (!map.is_none())
        check(ndtd_option_set_text(&settings, "map.path", path_text(map).c_str(), &error), error);
    if (!options.is_none() && !nb::isinstance<nb::dict>(options))
        throw nb::type_error(("options: a dict is wanted, not " + class_name(options)).c_str());
    if (!options.is_none())
        for (auto [name, value] : nb::borrow<nb::dict>(options)) {
            if (!nb::isinstance<nb::str>(name))
                throw nb::type_error(("options: a name is wanted, not " + class_name(name)).c_str());
            check(ndtd_option_set_text(&settings, nb::cast<std::string>(name).c_str(), option_text(value).c_str(),
                                       &error),
                  error);
        }
    check(ndtd_settings_finish(&settings, &error), error);
    return settings;
}

// The ndt-import of this Python is found in an environment that is not activated (not on PATH), too.
static void name_importer(const std::string &bag)
{
    if (getenv("NDT_IMPORT") || !ndtd_import_is_needed(bag.c_str()))
        return;
    const nb::object scripts = nb::module_::import_("sysconfig").attr("get_path")("scripts");
    const std::string path = nb::cast<std::string>(scripts) + "/ndt-import";
    if (access(path.c_str(), X_OK) == 0)
        setenv("NDT_IMPORT", path.c_str(), 0);
}

static void init(Replay *self, nb::object bag, nb::object map, nb::object config, nb::object options, int64_t skip,
                 int64_t limit, std::vector<std::string> import_options)
{
    if (skip < 0 || limit < 0)
        throw nb::value_error("skip, limit: 0 or more scans");
    name_importer(path_text(bag));
    new (self) Replay(read_settings(map, config, options), path_text(bag), static_cast<uint64_t>(skip),
                      static_cast<uint64_t>(limit), std::move(import_options));
}

static std::optional<double> optional_number(double value)
{
    return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

static const ndt_pose *pose_of(const Scan &self)
{
    return ndtd_outcome_has_pose(self.record.result.outcome) ? &self.record.result.T_map_sensor : nullptr;
}

static std::optional<Doubles<4, 4>> matrix_of(const Scan &self)
{
    return pose_of(self) ? std::optional(make_matrix(*pose_of(self))) : std::nullopt;
}

static std::optional<Doubles<3>> position_of(const Scan &self)
{
    return pose_of(self) ? std::optional(make_doubles<3>(pose_of(self)->t_m)) : std::nullopt;
}

static std::optional<Doubles<4>> quaternion_of(const Scan &self)
{
    return pose_of(self) ? std::optional(make_quaternion(*pose_of(self))) : std::nullopt;
}

static std::optional<std::string> sensor_of(const Scan &self)
{
    return self.record.has_sensor ? std::optional<std::string>(self.record.sensor.frame_id) : std::nullopt;
}

static std::optional<Doubles<4, 4>> mount_of(const Scan &self)
{
    return self.record.has_sensor ? std::optional(make_matrix(self.record.sensor.T_base_sensor)) : std::nullopt;
}

static std::optional<Doubles<4>> levels_of(const Scan &self)
{
    return self.record.has_protection ? std::optional(make_doubles<4>(self.record.protection.level)) : std::nullopt;
}

static std::optional<Doubles<6>> twist_of(const Scan &self)
{
    if (!self.record.has_twist)
        return std::nullopt;
    const ndt_twist &of = self.record.twist;
    const double numbers[6] = {of.v_mps[0], of.v_mps[1], of.v_mps[2], of.w_radps[0], of.w_radps[1], of.w_radps[2]};
    return make_doubles<6>(numbers);
}

static std::string describe(const Scan &self)
{
    char text[320];
    const ndt_align_result &result = self.record.result;
    const double *t_m = result.T_map_sensor.t_m;
    std::snprintf(text, sizeof(text), "ndtd.Scan(seq %llu, %s%s%s, %s, x %.3f y %.3f z %.3f, confidence %.3f)",
                  static_cast<unsigned long long>(self.record.seq), ndt_outcome_name(result.outcome),
                  *result.reason ? ": " : "", result.reason, ndt_state_name(self.record.state), t_m[0], t_m[1],
                  t_m[2], self.record.confidence);
    return text;
}

static nb::tuple scan_state(const Scan &self)
{
    return nb::make_tuple(to_bytes(self.record), trace_bytes(self.trace), self.is_trusted);
}

static void set_scan_state(Scan *self, const std::tuple<nb::bytes, nb::bytes, bool> &state)
{
    new (self) Scan{from_bytes<ndtd_scan_record>(std::get<0>(state)), trace_of_bytes(std::get<1>(state)),
                    std::get<2>(state)};
}

static void bind_scan(nb::module_ &module)
{
    nb::class_<Scan>(module, "Scan", "The result of one scan of a replay; may be pickled.")
        .def_prop_ro(
            "seq", [](const Scan &self) { return self.record.seq; }, "Number that the scan carries.")
        .def_prop_ro(
            "stamp_ns", [](const Scan &self) { return self.record.stamp_ns; }, "Stamp of the scan [ns].")
        .def_prop_ro(
            "outcome", [](const Scan &self) { return ndt_outcome_name(self.record.result.outcome); },
            "Of the alignment, as in Result.")
        .def_prop_ro(
            "reason", [](const Scan &self) { return std::string(self.record.result.reason); },
            "One line; empty for 'converged'.")
        .def_prop_ro(
            "state", [](const Scan &self) { return ndt_state_name(self.record.state); },
            "'initialising', 'tracking', 'coasting', 'lost', 'recovering' or 'extending', after this scan.")
        .def_prop_ro(
            "trusted", [](const Scan &self) { return self.is_trusted; }, "Whether the pose may be used.")
        .def_prop_ro("pose", &matrix_of, nb::rv_policy::automatic,
                     "T_map_base at the stamp, ndarray (4, 4); None: the scan has none.")
        .def_prop_ro("position", &position_of, nb::rv_policy::automatic,
                     "Of the base in the map, ndarray (3,) [m], or None.")
        .def_prop_ro("quaternion", &quaternion_of, nb::rv_policy::automatic, "x y z w, ndarray (4,), or None.")
        .def_prop_ro(
            "covariance", [](const Scan &self) { return make_covariance(self.record.result); },
            nb::rv_policy::automatic,
            "ndarray (6, 6), x y z rx ry rz [m^2, m rad, rad^2], in the axes of the map, or None.")
        .def_prop_ro("twist", &twist_of, nb::rv_policy::automatic,
                     "ndarray (6,): vx vy vz [m/s], wx wy wz [rad/s] of the base, in the base frame, or None.")
        .def_prop_ro("sensor", &sensor_of, "frame_id of the scan; None: it was not processed.")
        .def_prop_ro("T_base_sensor", &mount_of, nb::rv_policy::automatic,
                     "Where that sensor is on the vehicle, as the scan was processed, ndarray (4, 4), or None.")
        .def_prop_ro(
            "confidence", [](const Scan &self) { return optional_number(self.record.confidence); },
            "Probability in [0, 1] that the pose is right, or None.")
        .def_prop_ro(
            "protection_level", &levels_of, nb::rv_policy::automatic,
            "Bounds of the error: lateral, longitudinal, vertical [m], heading [rad], inf: none, ndarray (4,); "
            "None with integrity.risk 0.")
        .def_prop_ro(
            "unsafe", [](const Scan &self) { return self.record.protection.is_unsafe != 0; },
            "Whether the horizontal level is above integrity.alert_limit_m, or there is none.")
        .def_prop_ro(
            "protection_reason", [](const Scan &self) { return std::string(self.record.protection.reason); },
            "Why there is no level, or why the pose is unsafe; else empty.")
        .def_prop_ro(
            "scores", [](const Scan &self) { return self.record.result.scores; },
            "How well the scan fits the map at the pose.")
        .def_prop_ro(
            "iterations", [](const Scan &self) { return self.record.result.iterations; },
            "Newton steps of the solve that counts.")
        .def_prop_ro(
            "points", [](const Scan &self) { return self.record.points_used; }, "Points that were aligned.")
        .def_prop_ro(
            "align_us", [](const Scan &self) { return self.record.result.align_us; }, "Duration [us].")
        .def_prop_ro(
            "trace", [](const Scan &self) { return self.trace; }, "One Iteration after the other.")
        .def("__getstate__", &scan_state, nb::sig("def __getstate__(self) -> tuple[bytes, bytes, bool]"))
        .def("__setstate__", &set_scan_state)
        .def("_repr_html_", [](nb::handle self) { return notebook("scan_html", self); })
        .def("__repr__", &describe);
}

static nb::dict settings_text(nb::object config, nb::object options)
{
    const ndtd_settings settings = read_settings(nb::none(), config, options);
    nb::dict out;
    std::string text(8192, '\0'); // a path with every byte escaped fits
    for (size_t i = 0; i < ndtd_option_count(); i++)
        if (const ndtd_option *option = ndtd_option_at(i); !option->alias_of)
            out[option->name] = ndtd_option_format(&settings, option, text.data(), text.size());
    return out;
}

void bind_replay(nb::module_ &module)
{
    bind_scan(module);
    module.def("settings", &settings_text, "config"_a = nb::none(), "options"_a = nb::none(),
               nb::sig("def settings(config: str | os.PathLike[str] | None = None, options: "
                       "collections.abc.Mapping[str, typing.Any] | None = None) -> dict[str, str]"),
               "Every option of ndtd as ndtd --print-config writes it: the defaults, changed as in Replay.");
    nb::class_<Replay>(module, "Replay",
                       R"(Iterates over the scans of a bag, as `ndtd --replay` does: same bits, no clock, no queue.

    for scan in ndtd.Replay("drive.bag", "map.pcd"):
        print(scan.stamp_ns, scan.outcome, scan.pose)

Parameters
----------
bag : path
    Or any recording that ndt-import reads (drive.mcap, .bag, .db3, a folder): it is imported while it is replayed.
map : path, optional
    Default: map.path of the configuration.
config : path, optional
    A configuration file of ndtd, or Autoware's ndt_scan_matcher.param.yaml.
options : dict, optional
    As --set: {"preprocess.deskew": "time", "ndt.levels": [2, 1]}.
skip, limit : int
    Scans left out at the start, and replayed at most (0: all).
import_options : sequence of str
    For ndt-import: ["--scan", "/points"].

Raises
------
FileNotFoundError, OSError, ValueError, TypeError
    A file that is missing or wrong, an option that is not known (the message names the nearest).
    ValueError at the end of the iteration: the bag has no scan to replay.
)")
        .def(
            "__init__", &init, "bag"_a, "map"_a = nb::none(), nb::kw_only(), "config"_a = nb::none(),
            "options"_a = nb::none(), "skip"_a = 0, "limit"_a = 0, "import_options"_a = nb::make_tuple(),
            nb::sig("def __init__(self, bag: str | os.PathLike[str], map: str | os.PathLike[str] | None = None, *, "
                    "config: str | os.PathLike[str] | None = None, "
                    "options: collections.abc.Mapping[str, typing.Any] | None = None, skip: int = 0, "
                    "limit: int = 0, import_options: collections.abc.Sequence[str] = ()) -> None"))
        .def(
            "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __iter__(self) -> Replay"))
        .def("__next__", &Replay::next)
        .def("truth", &Replay::truth, "stamp_ns"_a,
             "T_map_base, the ground truth of the bag at a stamp, as far as the bag was read: ndarray (4, 4), or "
             "None.")
        .def_prop_ro("hash", &Replay::hash,
                     "The trajectory hash of the scans so far, as `ndtd --replay` prints it.")
        .def_prop_ro("warnings", &Replay::warnings, "What went wrong without ending the replay, a line each.")
        .def_prop_ro("hints", &Replay::hints,
                     "What may be set wrongly, a line each; after the last scan. See `ndtd --replay`.")
        .def("__repr__", [](Replay &self) { return "ndtd.Replay(hash " + self.hash() + ")"; });
}

} // namespace ndt_python
