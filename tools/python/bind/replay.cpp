// ndtd.Replay and ndtd.Scan
#include <cmath>
#include <cstdio>
#include <cstring>

#include "common.hpp"
#include "ndt_proto/message.h"
#include "ndtd/bag_run.h"
#include "ndtd/config_file.h"
#include "ndtd/options.h"
#include "ndtd/reference_trajectory.h"
#include "ndtd/scan_state.h"

namespace ndt_python
{

using namespace nb::literals;

struct Scan {
    ndtd_scan_record record; // without the trace
    bool is_trusted;
};

class Replay
{
  public:
    Replay(const ndtd_settings &settings, const std::string &bag, uint64_t skip, uint64_t limit);
    ~Replay();
    Replay(const Replay &) = delete;
    Replay &operator=(const Replay &) = delete;

    Scan next();
    nb::object truth(int64_t stamp_ns);
    std::string hash() const;
    std::vector<std::string> warnings() const;

  private:
    ndtd_bag_run *run_ = nullptr;
    ndtd_trajectory_error truth_{};
    uint64_t hash_ = NDTD_TRAJECTORY_HASH_START;
};

Replay::Replay(const ndtd_settings &settings, const std::string &bag, uint64_t skip, uint64_t limit)
{
    const ndtd_bag_run_options options = {bag.c_str(), skip, limit};
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndtd_bag_run_open(&run_, &settings, &options, &truth_, &error);
    }
    if (status != NDT_OK)
        ndtd_trajectory_error_free(&truth_);
    check(status, error);
}

Replay::~Replay()
{
    nb::gil_scoped_release release;
    ndtd_bag_run_close(run_);
    ndtd_trajectory_error_free(&truth_);
}

Scan Replay::next()
{
    Scan out{};
    ndt_error error;
    ndt_status status;
    {
        nb::gil_scoped_release release;
        status = ndtd_bag_run_next(run_, &out.record, &error);
    }
    if (status == NDT_END) {
        check(ndtd_bag_run_check(run_, &error), error);
        throw nb::stop_iteration();
    }
    check(status, error);
    out.record.trace = nullptr; // borrowed
    out.record.trace_count = 0;
    out.is_trusted = ndtd_scan_has_trusted_pose(&out.record) != 0;
    hash_ = ndtd_trajectory_hash(hash_, out.record.seq, out.record.stamp_ns, out.record.result.outcome,
                                 &out.record.result.T_map_sensor);
    return out;
}

nb::object Replay::truth(int64_t stamp_ns)
{
    ndt_pose pose;
    if (!ndtd_trajectory_error_truth_at(&truth_, stamp_ns, &pose, nullptr))
        return nb::none();
    return make_matrix(pose);
}

std::string Replay::hash() const
{
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash_));
    return text;
}

static void add_line(void *context, const char *text)
{
    static_cast<std::vector<std::string> *>(context)->push_back(text);
}

std::vector<std::string> Replay::warnings() const
{
    std::vector<std::string> out;
    ndtd_bag_run_warnings(run_, add_line, &out);
    return out;
}

static std::string path_text(nb::handle path)
{
    return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
}

// As in --set: lists as "[a, b]", truth values in lower case.
static std::string option_text(nb::handle value)
{
    if (nb::isinstance<nb::bool_>(value))
        return nb::cast<bool>(value) ? "true" : "false";
    std::string text = nb::cast<std::string>(nb::str(value));
    if (nb::isinstance<nb::tuple>(value) && text.size() > 1)
        text = "[" + text.substr(1, text.size() - 2) + "]";
    if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
        std::string plain;
        for (char c : text)
            if (c != '\'')
                plain += c;
        return plain;
    }
    return text;
}

static void init(Replay *self, nb::object bag, nb::object map, nb::object config, const nb::dict &options,
                 uint64_t skip, uint64_t limit)
{
    ndtd_settings settings;
    ndt_error error;
    ndtd_settings_default(&settings);
    if (!config.is_none())
        check(ndtd_config_read(&settings, path_text(config).c_str(), &error), error);
    if (!map.is_none())
        check(ndtd_option_set_text(&settings, "map.path", path_text(map).c_str(), &error), error);
    for (auto [name, value] : options)
        check(ndtd_option_set_text(&settings, nb::cast<std::string>(name).c_str(), option_text(value).c_str(),
                                   &error),
              error);
    check(ndtd_settings_finish(&settings, &error), error);
    new (self) Replay(settings, path_text(bag), skip, limit);
}

static nb::object optional_number(double value)
{
    return std::isnan(value) ? nb::none() : nb::cast(value);
}

static nb::object pose_of(const Scan &self)
{
    if (!ndtd_outcome_has_pose(self.record.result.outcome))
        return nb::none();
    return make_matrix(self.record.result.T_map_sensor);
}

static nb::object twist_of(const Scan &self)
{
    if (!self.record.has_twist)
        return nb::none();
    const ndt_twist &of = self.record.twist;
    const double numbers[6] = {of.v_mps[0], of.v_mps[1], of.v_mps[2], of.w_radps[0], of.w_radps[1], of.w_radps[2]};
    return make_array({6}, numbers);
}

static std::string describe(const Scan &self)
{
    char text[200];
    const ndt_pose &pose = self.record.result.T_map_sensor;
    std::snprintf(text, sizeof(text), "ndtd.Scan(seq %llu, %s, %s, x %.3f y %.3f z %.3f, confidence %.3f)",
                  static_cast<unsigned long long>(self.record.seq), ndt_outcome_name(self.record.result.outcome),
                  ndt_state_name(self.record.state), pose.t_m[0], pose.t_m[1], pose.t_m[2], self.record.confidence);
    return text;
}

static void bind_scan(nb::module_ &module)
{
    nb::class_<Scan>(module, "Scan", "The result of one scan of a replay.")
        .def_prop_ro("seq", [](const Scan &self) { return self.record.seq; })
        .def_prop_ro(
            "stamp_ns", [](const Scan &self) { return self.record.stamp_ns; }, "Stamp of the scan [ns].")
        .def_prop_ro("outcome", [](const Scan &self) { return ndt_outcome_name(self.record.result.outcome); })
        .def_prop_ro("reason", [](const Scan &self) { return std::string(self.record.result.reason); })
        .def_prop_ro(
            "state", [](const Scan &self) { return ndt_state_name(self.record.state); },
            "'initialising', 'tracking', 'coasting', 'lost' or 'recovering', after this scan.")
        .def_prop_ro(
            "trusted", [](const Scan &self) { return self.is_trusted; }, "Whether the pose may be used.")
        .def_prop_ro("pose", &pose_of, nb::sig("def pose(self) -> numpy.ndarray | None"),
                     "T_map_base at the stamp, ndarray (4, 4); None: the scan has none.")
        .def_prop_ro(
            "covariance",
            [](const Scan &self) -> nb::object {
                return self.record.result.has_covariance ? make_array({6, 6}, self.record.result.covariance)
                                                         : nb::none();
            },
            nb::sig("def covariance(self) -> numpy.ndarray | None"),
            "ndarray (6, 6), x y z rx ry rz [m^2, m rad, rad^2], in the axes of the map.")
        .def_prop_ro("twist", &twist_of, nb::sig("def twist(self) -> numpy.ndarray | None"),
                     "ndarray (6,): vx vy vz [m/s], wx wy wz [rad/s] of the base, in the base frame.")
        .def_prop_ro(
            "confidence", [](const Scan &self) { return optional_number(self.record.confidence); },
            nb::sig("def confidence(self) -> float | None"), "Probability that the pose is right.")
        .def_prop_ro("scores", [](const Scan &self) { return make_scores(self.record.result.scores); })
        .def_prop_ro("iterations", [](const Scan &self) { return self.record.result.iterations; })
        .def_prop_ro(
            "points", [](const Scan &self) { return self.record.points_used; }, "Points that were aligned.")
        .def_prop_ro("align_us", [](const Scan &self) { return self.record.result.align_us; })
        .def("__repr__", &describe);
}

void bind_replay(nb::module_ &module)
{
    bind_scan(module);
    nb::class_<Replay>(module, "Replay",
                       R"(Iterates over the scans of a bag, as `ndtd --replay` does: same bits, no clock, no queue.

    for scan in ndtd.Replay("drive.bag", "map.pcd"):
        print(scan.stamp_ns, scan.outcome, scan.pose)

Parameters
----------
bag : path
map : path, optional
    Default: map.path of the configuration.
config : path, optional
    A configuration file of ndtd, or Autoware's ndt_scan_matcher.param.yaml.
options : dict, optional
    As --set: {"preprocess.deskew": "time", "ndt.levels": [2, 1]}.
skip, limit : int
    Scans left out at the start, and replayed at most (0: all).
)")
        .def("__init__", &init, "bag"_a, "map"_a = nb::none(), nb::kw_only(), "config"_a = nb::none(),
             "options"_a = nb::dict(), "skip"_a = 0, "limit"_a = 0)
        .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
        .def("__next__", &Replay::next)
        .def("truth", &Replay::truth, "stamp_ns"_a,
             nb::sig("def truth(self, stamp_ns: int) -> numpy.ndarray | None"),
             "Ground truth of the bag at a stamp, read so far: ndarray (4, 4), or None.")
        .def_prop_ro("hash", &Replay::hash,
                     "The trajectory hash of the scans so far, as `ndtd --replay` prints it.")
        .def_prop_ro("warnings", &Replay::warnings, "What went wrong without ending the replay, a line each.");
}

} // namespace ndt_python
