// ndtd.Result, ndtd.Scores and ndtd.Iteration
#include "results.hpp"

#include <cstdio>

#include "ndt/names.h"

namespace ndt_python
{

Trace make_trace(const ndt_map *map, const ndt_iteration *rows, size_t count)
{
    Trace out;
    out.reserve(rows ? count : 0);
    for (size_t i = 0; rows && i < count; i++)
        out.push_back(Iteration{rows[i], map->levels[rows[i].level].leaf_m});
    return out;
}

nb::bytes trace_bytes(const Trace &trace)
{
    return nb::bytes(trace.data(), trace.size() * sizeof(Iteration));
}

Trace trace_of_bytes(const nb::bytes &bytes)
{
    Trace out;
    for (size_t at = 0; at < bytes.size(); at += sizeof(Iteration))
        out.push_back(from_bytes<Iteration>(bytes, at));
    return out;
}

Doubles<4> make_quaternion(const ndt_pose &pose)
{
    return make_doubles<4>(pose.q_xyzw);
}

std::optional<Doubles<6, 6>> make_covariance(const ndt_align_result &result)
{
    if (!result.has_covariance)
        return std::nullopt;
    return make_doubles<6, 6>(result.covariance);
}

static nb::ndarray<nb::numpy, double, nb::shape<-1, 6>> weak_axes(const Result &self)
{
    return make_array<nb::ndarray<nb::numpy, double, nb::shape<-1, 6>>>(
        &self.result.weak_axes[0][0], {static_cast<size_t>(self.result.weak_count), 6});
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

static std::string describe_scores(const ndt_scores &self)
{
    char text[256];
    std::snprintf(text, sizeof(text),
                  "ndtd.Scores(transform_probability=%.6g, nvtl=%.6g, nvtl_normalized=%.6g, match_ratio=%.6g, "
                  "coverage=%.6g)",
                  self.transform_probability, self.nvtl, self.nvtl_normalized, self.match_ratio, self.coverage);
    return text;
}

static std::string describe_iteration(const Iteration &self)
{
    char text[160];
    std::snprintf(text, sizeof(text), "ndtd.Iteration(%d, level %g m, score %.6g, step %.3g m %.3g rad)",
                  self.row.iteration, self.leaf_m, self.row.score, self.row.step_m, self.row.step_rad);
    return text;
}

static void bind_scores(nb::module_ &module)
{
    nb::class_<ndt_scores>(module, "Scores", "How well a scan fits the map at its pose.")
        .def_ro("transform_probability", &ndt_scores::transform_probability, "Score over the number of points.")
        .def_ro("nvtl", &ndt_scores::nvtl,
                "Nearest voxel transformation likelihood: mean over the matched points, as in Autoware.")
        .def_ro("nvtl_normalized", &ndt_scores::nvtl_normalized,
                "nvtl in [0, 1]: comparable between sizes of cells.")
        .def_ro("match_ratio", &ndt_scores::match_ratio, "Points near a voxel over all points, in [0, 1].")
        .def_ro("coverage", &ndt_scores::coverage,
                "Part of 32 directions around the sensor with a matched point, in [0, 1].")
        .def("__getstate__", [](const ndt_scores &self) { return to_bytes(self); })
        .def("__setstate__",
             [](ndt_scores *self, const nb::bytes &state) { new (self) ndt_scores(from_bytes<ndt_scores>(state)); })
        .def("__repr__", &describe_scores);
}

static void bind_iteration(nb::module_ &module)
{
    nb::class_<Iteration>(module, "Iteration", "One Newton step of an alignment.")
        .def_prop_ro(
            "iteration", [](const Iteration &self) { return self.row.iteration; }, "From 0.")
        .def_prop_ro(
            "level", [](const Iteration &self) { return self.leaf_m; }, "Edge of the cells [m].")
        .def_prop_ro(
            "evaluations", [](const Iteration &self) { return self.row.evaluations; },
            "Of the score, since the iteration before.")
        .def_prop_ro(
            "score", [](const Iteration &self) { return self.row.score; },
            "At the pose where the iteration starts.")
        .def_prop_ro(
            "gradient_norm", [](const Iteration &self) { return self.row.gradient_norm; }, "Of the score there.")
        .def_prop_ro(
            "step_m", [](const Iteration &self) { return self.row.step_m; },
            "Length of the step [m]; 0: none was acceptable.")
        .def_prop_ro(
            "step_rad", [](const Iteration &self) { return self.row.step_rad; }, "[rad].")
        .def_prop_ro(
            "matched", [](const Iteration &self) { return self.row.matched; }, "Points near a voxel.")
        .def_prop_ro(
            "pairs", [](const Iteration &self) { return self.row.pairs; }, "Of points and voxels.")
        .def_prop_ro(
            "eval_us", [](const Iteration &self) { return self.row.eval_us; }, "[us].")
        .def_prop_ro(
            "solve_us", [](const Iteration &self) { return self.row.solve_us; }, "[us].")
        .def_prop_ro(
            "pose", [](const Iteration &self) { return make_matrix(self.row.T_map_sensor); },
            nb::rv_policy::automatic, "T_map_sensor after the step, ndarray (4, 4).")
        .def("__getstate__", [](const Iteration &self) { return to_bytes(self); })
        .def("__setstate__",
             [](Iteration *self, const nb::bytes &state) { new (self) Iteration(from_bytes<Iteration>(state)); })
        .def("__repr__", &describe_iteration);
}

static nb::tuple result_state(const Result &self)
{
    return nb::make_tuple(to_bytes(self.result), self.confidence, trace_bytes(self.trace));
}

static void set_result_state(Result *self, const std::tuple<nb::bytes, double, nb::bytes> &state)
{
    new (self) Result{from_bytes<ndt_align_result>(std::get<0>(state)), std::get<1>(state),
                      trace_of_bytes(std::get<2>(state))};
}

static void bind_result(nb::module_ &module)
{
    nb::class_<Result>(module, "Result",
                       "What an alignment found. Arrays are copies, made when they are asked for; may be pickled.")
        .def_prop_ro(
            "outcome", [](const Result &self) { return ndt_outcome_name(self.result.outcome); },
            "'converged', 'iteration_limit', 'deadline', 'low_score', 'degenerate', 'off_map', 'rejected'.")
        .def_prop_ro(
            "converged", [](const Result &self) { return self.result.outcome == NDT_CONVERGED; },
            "outcome == 'converged': the pose may be used.")
        .def_prop_ro(
            "reason", [](const Result &self) { return std::string(self.result.reason); },
            "One line; empty for 'converged'.")
        .def_prop_ro(
            "pose", [](const Result &self) { return make_matrix(self.result.T_map_sensor); },
            nb::rv_policy::automatic, "T_map_sensor, ndarray (4, 4) float64: x_map = pose @ x_sensor.")
        .def_prop_ro(
            "position", [](const Result &self) { return make_doubles<3>(self.result.T_map_sensor.t_m); },
            nb::rv_policy::automatic, "Of the sensor in the map, ndarray (3,) [m].")
        .def_prop_ro(
            "quaternion", [](const Result &self) { return make_quaternion(self.result.T_map_sensor); },
            nb::rv_policy::automatic, "x y z w, ndarray (4,).")
        .def_prop_ro(
            "covariance", [](const Result &self) { return make_covariance(self.result); }, nb::rv_policy::automatic,
            "ndarray (6, 6), x y z rx ry rz [m^2, m rad, rad^2] in the axes of the map, rotations at the "
            "sensor; None: the score has no maximum there, or a prior took part.")
        .def_prop_ro(
            "confidence", [](const Result &self) { return self.confidence; },
            "Probability in [0, 1] that the pose is within 0.5 m and 3 deg, by the scan alone; NaN: no "
            "point met a voxel.")
        .def_prop_ro(
            "scores", [](const Result &self) { return self.result.scores; },
            "How well the scan fits the map at the pose.")
        .def_prop_ro(
            "weak_axes", &weak_axes, nb::rv_policy::automatic,
            "ndarray (0 to 3, 6): directions that the scan hardly observes, in the order of the covariance.")
        .def_prop_ro(
            "iterations", [](const Result &self) { return self.result.iterations; },
            "Newton steps of the solve that counts.")
        .def_prop_ro(
            "evaluations", [](const Result &self) { return self.result.evaluations; }, "Of the score.")
        .def_prop_ro(
            "points", [](const Result &self) { return self.result.points; }, "Points that were aligned.")
        .def_prop_ro(
            "align_us", [](const Result &self) { return self.result.align_us; }, "Duration [us].")
        .def_prop_ro(
            "trace", [](const Result &self) { return self.trace; },
            "One Iteration after the other; empty after align_batch.")
        .def("__getstate__", &result_state, nb::sig("def __getstate__(self) -> tuple[bytes, float, bytes]"))
        .def("__setstate__", &set_result_state)
        .def("_repr_html_", [](nb::handle self) { return notebook("result_html", self); })
        .def("__repr__", &describe);
}

void bind_results(nb::module_ &module)
{
    bind_scores(module);
    bind_iteration(module);
    bind_result(module);
}

} // namespace ndt_python
