// ndtd.Aligner
#include <cmath>

#include "backends.h"
#include "keywords.hpp"
#include "map.hpp"
#include "ndt_track/confidence.h"
#include "results.hpp"

namespace ndt_python
{

using namespace nb::literals;

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
    Process process_;
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
    if (!process_.is_mine())
        return; // its threads are gone: they cannot be joined
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
    size_t count = 0;
    const ndt_iteration *rows = has_trace ? ndt_aligner_trace(aligner_, &count) : nullptr;
    return Result{result, confidence_of(result, params_), make_trace(map_.get(), rows, count)};
}

static double read_deadline(double deadline_s)
{
    if (!(deadline_s >= 0 && deadline_s <= 3600))
        throw nb::value_error("deadline_s: 0 (none) to 3600 s are possible");
    return deadline_s;
}

// (pose, covariance 6 x 6) or None.
static Prior read_prior(nb::handle prior)
{
    Prior out;
    if (prior.is_none())
        return out;
    nb::tuple both;
    if (!nb::try_cast(prior, both) || both.size() != 2)
        throw nb::type_error("prior: a pair (pose, covariance) is wanted");
    out.is_set = true;
    out.prior.T_map_sensor = read_pose(both[0], "prior[0]");
    read_numbers(out.prior.covariance, 36, both[1], "prior[1]");
    return out;
}

Result Aligner::align(nb::handle points, nb::handle guess, nb::handle prior, double deadline_s)
{
    process_.check("Aligner");
    const ndt_pose T_map_guess = read_pose(guess, "guess");
    const Prior about = read_prior(prior);
    ndt_align_result result;
    ndt_error error;
    ndt_status status;
    const Turn turn(lock_);
    ndt_cloud &scan = clouds_[0]->cloud;
    read_points(scan, points, Origin::None, "points");
    ndt_align_params params = params_;
    params.prior = about.is_set ? &about.prior : nullptr;
    params.deadline_s = read_deadline(deadline_s);
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
    process_.check("Aligner");
    if (!nb::hasattr(guesses, "__iter__"))
        throw nb::type_error(("guesses: a sequence of poses is wanted, not " + class_name(guesses)).c_str());
    for (nb::handle guess : nb::iter(guesses))
        poses.push_back(read_pose(guess, ("guesses[" + std::to_string(poses.size()) + "]").c_str()));
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
    const Turn turn(lock_);
    while (clouds_.size() < scans.size())
        clouds_.push_back(std::make_unique<Cloud>());
    for (size_t i = 0; i < scans.size(); i++)
        read_points(clouds_[i]->cloud, scans[i], Origin::None, "points");
    for (size_t i = 0; i < items.size(); i++)
        items[i] = ndt_align_item{&clouds_[scans.size() == 1 ? 0 : i]->cloud, poses[i], nullptr};
    ndt_align_params params = params_;
    params.deadline_s = read_deadline(deadline_s);
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

// Levels of the map, each with the neighbours that are customary for it: radius on the finest, direct7 on the
// others.
static void set_levels(ndt_align_params &params, const Map &map, Keywords &options)
{
    const ndt_map *of = map.get();
    std::vector<double> all;
    for (size_t i = 0; i < of->level_count; i++)
        all.push_back(of->levels[i].leaf_m);
    const std::vector<double> leaves = options.numbers("levels", all, NDT_MAX_LEVELS);
    const int neighbours = options.label("neighbours", ndt_neighbours_labels, -1);
    params.level_count = leaves.size();
    for (size_t i = 0; i < leaves.size(); i++) {
        map.level(leaves[i], "levels");
        params.levels[i].leaf_m = leaves[i];
        params.levels[i].neighbours = i + 1 < leaves.size() ? NDT_DIRECT7 : NDT_RADIUS;
        if (neighbours >= 0)
            params.levels[i].neighbours = static_cast<ndt_neighbours>(neighbours);
    }
}

static void init(Aligner *self, const nb::handle of, const nb::kwargs &given)
{
    const Map &map = read_map(of);
    ndt_align_params params;
    ndt_align_params_default(&params);
    Keywords options(given, "Aligner");
    const std::string backend = options.text("backend", "auto");
    const auto threads = static_cast<int>(options.integer("threads", 0, 0, 64));
    const auto max_points = static_cast<size_t>(options.integer("max_points", 1 << 20, 1, NDT_CLOUD_MAX_POINTS));
    set_levels(params, map, options);
    params.variant = static_cast<ndt_variant>(options.label("variant", ndt_variant_labels, params.variant));
    params.max_iterations =
        static_cast<int>(options.integer("max_iterations", params.max_iterations, 0, NDT_MAX_ITERATIONS));
    params.score_threshold = options.number("score_threshold", params.score_threshold, 0, 1);
    params.min_match_ratio = options.number("min_match_ratio", params.min_match_ratio, 0, 1);
    options.end();
    params.wants_observation = 1;
    new (self) Aligner(map, backend, threads, max_points, params);
}

void bind_align(nb::module_ &module)
{
    nb::class_<Aligner>(module, "Aligner", R"(Aligns scans with one map; keep it for a sequence of scans.

Equal inputs give bit-equal results, for any number of threads. Calls from several threads wait
for one another: use an Aligner per thread. The interpreter is released meanwhile. After fork() the
child makes its own.

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
    Over all levels; 0: scores at the guess.
score_threshold : float
    Below this nvtl_normalized * match_ratio the outcome is 'low_score'.
min_match_ratio : float
    Below this share of matched points the outcome is 'degenerate'.
)")
        .def("__init__", &init, "map"_a.none(), "options"_a,
             nb::sig("def __init__(self, map: Map, *, backend: str = 'auto', threads: int = 0, "
                     "max_points: int = 1048576, levels: collections.abc.Sequence[float] | None = None, "
                     "neighbours: str | None = None, variant: str = 'robust', max_iterations: int = 30, "
                     "score_threshold: float = 0.35, min_match_ratio: float = 0.1) -> None"))
        .def("align", &Aligner::align, "points"_a.none(), "guess"_a = nb::none(), nb::kw_only(),
             "prior"_a = nb::none(), "deadline_s"_a = 0.0,
             nb::sig(
                 "def align(self, points: numpy.typing.ArrayLike, guess: numpy.typing.ArrayLike | None = None, *, "
                 "prior: tuple[numpy.typing.ArrayLike, numpy.typing.ArrayLike] | None = None, "
                 "deadline_s: float = 0.0) -> Result"),
             R"(Aligns a scan from a guess.

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
    A wrong shape or type, a transform that is not rigid, more points than max_points. A scan that
    cannot be matched is an outcome, not an error: empty or without finite points, off the map.
)")
        .def("align_batch", &Aligner::align_batch, "points"_a.none(), "guesses"_a.none(), nb::kw_only(),
             "deadline_s"_a = 0.0,
             nb::sig(
                 "def align_batch(self, points: numpy.typing.ArrayLike | collections.abc.Sequence[numpy.typing."
                 "ArrayLike], guesses: numpy.typing.ArrayLike | collections.abc.Iterable[numpy.typing.ArrayLike], "
                 "*, deadline_s: float = 0.0) -> list[Result]"),
             R"(Aligns one scan from many guesses, or as many scans as guesses, together.

points: one array for all guesses, or a list with an array for each. guesses: sequence of poses.
Returns a list of Result, each bit-equal to that of align, without trace. deadline_s: for all together.)")
        .def("__repr__", &Aligner::describe);
}

} // namespace ndt_python
