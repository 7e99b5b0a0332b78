// ndtd.Aligner and ndtd.Result
#include <cmath>
#include <cstring>
#include <mutex>

#include "backends.h"
#include "map.hpp"
#include "ndt/names.h"
#include "ndt_track/confidence.h"

namespace ndt_python
{

using namespace nb::literals;

struct Result {
    ndt_align_result result;
    double confidence;
    std::vector<ndt_iteration> trace;
    std::vector<double> leaves;
};

struct Prior {
    bool is_set = false;
    ndt_prior prior;
};

// A backend, an aligner and the scans that are handed to it; one call at a time.
class Aligner
{
  public:
    Aligner(const Map &map, const std::string &backend, int threads, size_t max_points,
            const ndt_align_params &params);
    ~Aligner();
    Aligner(const Aligner &) = delete;
    Aligner &operator=(const Aligner &) = delete;

    Result align(nb::handle points, nb::handle guess, nb::handle prior, double deadline_s);
    std::vector<Result> align_batch(nb::handle points, nb::handle guesses, double deadline_s);
    std::string describe() const;

  private:
    Result make_result(const ndt_align_result &result, bool has_trace) const;

    Map map_;
    ndt_backend *backend_ = nullptr;
    ndt_aligner *aligner_ = nullptr;
    ndt_align_params params_;
    std::vector<std::unique_ptr<Cloud>> clouds_;
    std::mutex lock_;
};

Aligner::Aligner(const Map &map, const std::string &backend, int threads, size_t max_points,
                 const ndt_align_params &params)
    : map_(map), params_(params)
{
    ndt_backend_config config;
    ndt_error error;
    ndt_status status;
    ndt_backend_config_default(&config);
    config.threads = threads;
    config.max_points = max_points;
    config.pin_threads = 0; // a library must not move the threads of its program
    {
        nb::gil_scoped_release release;
        status = ndt_backend_open_failover(&backend_, backend.c_str(), &config, &error);
        if (status == NDT_OK)
            status = ndt_aligner_create(&aligner_, backend_, &error);
        if (status == NDT_OK)
            status = ndt_aligner_set_map(aligner_, map_.get(), &error);
        if (status != NDT_OK) {
            ndt_aligner_destroy(aligner_);
            if (backend_)
                backend_->ops->close(backend_);
        }
    }
    check(status, error);
    clouds_.push_back(std::make_unique<Cloud>());
}

Aligner::~Aligner()
{
    nb::gil_scoped_release release;
    ndt_aligner_destroy(aligner_);
    backend_->ops->close(backend_);
}

// By what the scan alone says: a prior has no part.
static double confidence_of(const ndt_align_result &result, const ndt_align_params &params)
{
    if (!result.has_observation)
        return NAN;
    ndt_confidence_features features;
    ndt_confidence_set_scores(&features, &result.scores, &params);
    features.innovation = NAN;
    ndt_confidence_set_hold(&features, &result.observation, nullptr, nullptr);
    return ndt_confidence(&features);
}

Result Aligner::make_result(const ndt_align_result &result, bool has_trace) const
{
    Result out{result, confidence_of(result, params_), {}, {}};
    size_t count = 0;
    const ndt_iteration *rows = has_trace ? ndt_aligner_trace(aligner_, &count) : nullptr;
    if (rows)
        out.trace.assign(rows, rows + count);
    for (size_t i = 0; i < map_.get()->level_count; i++)
        out.leaves.push_back(map_.get()->levels[i].leaf_m);
    return out;
}

// (pose, covariance 6 x 6) or None.
static Prior read_prior(nb::handle prior)
{
    Prior out;
    if (prior.is_none())
        return out;
    nb::tuple both;
    if (!nb::try_cast(prior, both) || both.size() != 2)
        throw nb::value_error("prior: a pair (pose, covariance) is wanted");
    out.is_set = true;
    out.prior.T_map_sensor = read_pose(both[0], "prior pose");
    read_numbers(out.prior.covariance, 36, both[1], "prior covariance");
    return out;
}

Result Aligner::align(nb::handle points, nb::handle guess, nb::handle prior, double deadline_s)
{
    const ndt_pose T_map_guess = read_pose(guess, "guess");
    const Prior about = read_prior(prior);
    ndt_align_result result;
    ndt_error error;
    ndt_status status;
    std::unique_lock<std::mutex> turn(lock_, std::defer_lock);
    {
        nb::gil_scoped_release release; // the holder of the lock may need the interpreter
        turn.lock();
    }
    ndt_cloud &scan = clouds_[0]->cloud;
    read_points(scan, points, Origin::None, "points");
    ndt_align_params params = params_;
    params.prior = about.is_set ? &about.prior : nullptr;
    params.deadline_s = deadline_s;
    {
        nb::gil_scoped_release release;
        status = ndt_align(aligner_, &params, &scan, &T_map_guess, &result, &error);
    }
    check(status, error);
    return make_result(result, true);
}

// The scans: one array for all guesses, or a list of as many arrays as guesses.
static bool is_list(nb::handle points)
{
    return nb::isinstance<nb::list>(points) || nb::isinstance<nb::tuple>(points);
}

std::vector<Result> Aligner::align_batch(nb::handle points, nb::handle guesses, double deadline_s)
{
    std::vector<ndt_pose> poses;
    for (nb::handle guess : nb::iter(guesses))
        poses.push_back(read_pose(guess, "guesses"));
    const std::vector<nb::object> scans =
        is_list(points) ? nb::cast<std::vector<nb::object>>(points) : std::vector<nb::object>{nb::borrow(points)};
    if (is_list(points) && scans.size() != poses.size())
        throw nb::value_error(("points: a list of " + std::to_string(scans.size()) + " scans for " +
                               std::to_string(poses.size()) + " guesses")
                                  .c_str());
    std::vector<ndt_align_item> items(poses.size());
    std::vector<ndt_align_result> results(poses.size());
    ndt_error error;
    ndt_status status;
    std::unique_lock<std::mutex> turn(lock_, std::defer_lock);
    {
        nb::gil_scoped_release release;
        turn.lock();
    }
    while (clouds_.size() < scans.size())
        clouds_.push_back(std::make_unique<Cloud>());
    for (size_t i = 0; i < scans.size(); i++)
        read_points(clouds_[i]->cloud, scans[i], Origin::None, "points");
    for (size_t i = 0; i < items.size(); i++)
        items[i] = ndt_align_item{&clouds_[scans.size() == 1 ? 0 : i]->cloud, poses[i], nullptr};
    ndt_align_params params = params_;
    params.deadline_s = deadline_s;
    {
        nb::gil_scoped_release release;
        status = ndt_align_batch(aligner_, &params, items.data(), items.size(), results.data(), &error);
    }
    check(status, error);
    std::vector<Result> out;
    for (const ndt_align_result &result : results)
        out.push_back(make_result(result, false));
    return out;
}

std::string Aligner::describe() const
{
    char text[256] = "";
    if (backend_->ops->describe)
        backend_->ops->describe(backend_, text, sizeof(text));
    return std::string("ndtd.Aligner(") + text + ")";
}

// ---- parameters ----

static int label_value(const ndt_label *labels, const std::string &name, const char *what)
{
    std::string known;
    for (; labels->name; labels++) {
        if (name == labels->name)
            return labels->value;
        known += (known.empty() ? "" : ", ") + std::string(labels->name);
    }
    throw nb::value_error((std::string(what) + ": '" + name + "' is not known; there are: " + known).c_str());
}

// Levels of the map, each with the neighbours that are customary for it: radius on the finest, direct7 on the
// others.
static void set_levels(ndt_align_params &params, const Map &map, const std::optional<std::vector<double>> &levels,
                       const std::optional<std::string> &neighbours)
{
    const ndt_map *of = map.get();
    std::vector<double> leaves = levels.value_or(std::vector<double>{});
    for (size_t i = 0; !levels && i < of->level_count; i++)
        leaves.push_back(of->levels[i].leaf_m);
    if (leaves.empty() || leaves.size() > NDT_MAX_LEVELS)
        throw nb::value_error(("levels: 1 to " + std::to_string(NDT_MAX_LEVELS) + " are wanted").c_str());
    params.level_count = leaves.size();
    for (size_t i = 0; i < leaves.size(); i++) {
        params.levels[i].leaf_m = leaves[i];
        params.levels[i].neighbours = i + 1 < leaves.size() ? NDT_DIRECT7 : NDT_RADIUS;
        if (neighbours)
            params.levels[i].neighbours =
                static_cast<ndt_neighbours>(label_value(ndt_neighbours_labels, *neighbours, "neighbours"));
    }
}

static void init(Aligner *self, const Map &map, const std::string &backend, int threads, size_t max_points,
                 const std::optional<std::vector<double>> &levels, const std::optional<std::string> &neighbours,
                 const std::string &variant, int max_iterations, double score_threshold, double min_match_ratio)
{
    ndt_align_params params;
    ndt_align_params_default(&params);
    set_levels(params, map, levels, neighbours);
    params.variant = static_cast<ndt_variant>(label_value(ndt_variant_labels, variant, "variant"));
    params.max_iterations = max_iterations;
    params.score_threshold = score_threshold;
    params.min_match_ratio = min_match_ratio;
    params.wants_observation = 1;
    new (self) Aligner(map, backend, threads, max_points, params);
}

// ---- results ----

static nb::object pose_numbers(const ndt_pose &pose)
{
    const double numbers[7] = {pose.t_m[0],    pose.t_m[1],    pose.t_m[2],   pose.q_xyzw[0],
                               pose.q_xyzw[1], pose.q_xyzw[2], pose.q_xyzw[3]};
    return make_array({7}, numbers);
}

static nb::list trace(const Result &self)
{
    nb::list out;
    for (const ndt_iteration &row : self.trace) {
        nb::dict one;
        one["iteration"] = row.iteration;
        one["level"] = self.leaves[static_cast<size_t>(row.level)];
        one["evaluations"] = row.evaluations;
        one["score"] = row.score;
        one["gradient_norm"] = row.gradient_norm;
        one["step_m"] = row.step_m;
        one["step_rad"] = row.step_rad;
        one["matched"] = row.matched;
        one["pairs"] = row.pairs;
        one["eval_us"] = row.eval_us;
        one["solve_us"] = row.solve_us;
        one["pose"] = make_matrix(row.T_map_sensor);
        out.append(one);
    }
    return out;
}

static nb::object weak_axes(const Result &self)
{
    return make_array({static_cast<size_t>(self.result.weak_count), 6}, &self.result.weak_axes[0][0]);
}

static std::string describe(const Result &self)
{
    char text[256];
    const ndt_pose &pose = self.result.T_map_sensor;
    std::snprintf(text, sizeof(text),
                  "ndtd.Result(%s, x %.3f y %.3f z %.3f, nvtl_normalized %.3f, confidence %.3f, %d iterations)",
                  ndt_outcome_name(self.result.outcome), pose.t_m[0], pose.t_m[1], pose.t_m[2],
                  self.result.scores.nvtl_normalized, self.confidence, self.result.iterations);
    return text;
}

static void bind_result(nb::module_ &module)
{
    nb::class_<Result>(module, "Result",
                       "What an alignment found. Arrays are copies, made when they are asked for.")
        .def_prop_ro(
            "outcome", [](const Result &self) { return ndt_outcome_name(self.result.outcome); },
            "'converged', 'iteration_limit', 'deadline', 'low_score', 'degenerate', 'off_map', 'rejected' ...")
        .def_prop_ro("converged", [](const Result &self) { return self.result.outcome == NDT_CONVERGED; })
        .def_prop_ro(
            "reason", [](const Result &self) { return std::string(self.result.reason); },
            "One line; empty for 'converged'.")
        .def_prop_ro(
            "pose", [](const Result &self) { return make_matrix(self.result.T_map_sensor); },
            "T_map_sensor, ndarray (4, 4) float64: x_map = pose @ x_sensor.")
        .def_prop_ro(
            "xyz_quaternion", [](const Result &self) { return pose_numbers(self.result.T_map_sensor); },
            "ndarray (7,): x y z [m], qx qy qz qw.")
        .def_prop_ro(
            "covariance",
            [](const Result &self) -> nb::object {
                return self.result.has_covariance ? make_array({6, 6}, self.result.covariance) : nb::none();
            },
            nb::sig("def covariance(self) -> numpy.ndarray | None"),
            "ndarray (6, 6), x y z rx ry rz [m^2, m rad, rad^2] in the axes of the map, rotations at the sensor; "
            "None: the score has no maximum there, or a prior took part.")
        .def_prop_ro(
            "confidence", [](const Result &self) { return self.confidence; },
            "Probability in [0, 1] that the pose is within 0.5 m and 3 deg, by the scan alone; NaN: no point met a "
            "voxel.")
        .def_prop_ro(
            "scores", [](const Result &self) { return make_scores(self.result.scores); },
            "dict: transform_probability, nvtl, nvtl_normalized, match_ratio, coverage.")
        .def_prop_ro(
            "weak_axes", &weak_axes,
            "ndarray (0 to 3, 6): directions that the scan hardly observes, in the order of the covariance.")
        .def_prop_ro("iterations", [](const Result &self) { return self.result.iterations; })
        .def_prop_ro("evaluations", [](const Result &self) { return self.result.evaluations; })
        .def_prop_ro(
            "points", [](const Result &self) { return self.result.points; }, "Points that were aligned.")
        .def_prop_ro(
            "align_us", [](const Result &self) { return self.result.align_us; }, "Duration [us].")
        .def_prop_ro("trace", &trace, "list of dict, one per iteration; empty after align_batch.")
        .def("__repr__", &describe);
}

void bind_align(nb::module_ &module)
{
    ndt_align_params defaults;
    ndt_align_params_default(&defaults);
    bind_result(module);
    nb::class_<Aligner>(module, "Aligner", R"(Aligns scans with one map; keep it for a sequence of scans.

Equal inputs give bit-equal results, for any number of threads. Calls from several threads wait
for one another: use an Aligner per thread. The interpreter is released meanwhile.

Parameters
----------
map : Map
backend : {'auto', 'cpu', 'cuda', 'reference'}
threads : int
    Of the CPU backend; 0: one per core, at most 4.
max_points : int
    Larger scans are refused.
levels : sequence of float, optional
    Cell edges from coarse to fine [m], levels of the map. Default: all of the map.
neighbours : {'radius', 'direct1', 'direct7', 'direct27'}, optional
    On all levels. Default: radius on the finest, direct7 on the others.
variant : {'robust', 'autoware'}
    The step rule; 'autoware' uses the finest level only.
max_iterations : int
    Over all levels.
score_threshold : float
    Below this nvtl_normalized * match_ratio the outcome is 'low_score'.
min_match_ratio : float
    Below this share of matched points the outcome is 'degenerate'.
)")
        .def("__init__", &init, "map"_a, nb::kw_only(), "backend"_a = "auto", "threads"_a = 0,
             "max_points"_a = size_t{1} << 20, "levels"_a = nb::none(), "neighbours"_a = nb::none(),
             "variant"_a = "robust", "max_iterations"_a = defaults.max_iterations,
             "score_threshold"_a = defaults.score_threshold, "min_match_ratio"_a = defaults.min_match_ratio)
        .def("align", &Aligner::align, "points"_a, "guess"_a = nb::none(), nb::kw_only(), "prior"_a = nb::none(),
             "deadline_s"_a = 0.0, R"(Aligns a scan from a guess.

Parameters
----------
points : ndarray, shape (N, 3) or wider, float32 or float64
    In the sensor frame [m]; columns after the third are not read. Preprocess it first: ndtd.preprocess.
guess : ndarray (4, 4), or 7 numbers x y z qx qy qz qw
    T_map_sensor. Default: the identity.
prior : (pose, covariance (6, 6)), optional
    A prediction that takes part; covariance of the error d in T = pose Exp(d) [m^2, m rad, rad^2].
deadline_s : float
    Stop before this much time has passed; 0: never.

Returns
-------
Result

Raises
------
ValueError, TypeError
    A wrong shape or type, a transform that is not rigid, more points than max_points.
)")
        .def("align_batch", &Aligner::align_batch, "points"_a, "guesses"_a, nb::kw_only(), "deadline_s"_a = 0.0,
             R"(Aligns one scan from many guesses, or as many scans as guesses, together.

points: one array for all guesses, or a list with an array for each. guesses: sequence of poses.
Returns a list of Result, each bit-equal to that of align, without trace.)")
        .def("__repr__", &Aligner::describe);
}

} // namespace ndt_python
