// Shared by the bindings: arrays of NumPy to the types of the core, statuses to exceptions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ndt/align.h"
#include "ndt/cloud.h"
#include "ndt/map.h"
#include "ndt/pose.h"

namespace nb = nanobind;

namespace ndt_python
{

// Throws what fits: ValueError for arguments, formats and limits, OSError, MemoryError, RuntimeError.
void check(ndt_status status, const ndt_error &error);

// A cloud that frees itself and keeps its memory for the next scan.
struct Cloud {
    ndt_cloud cloud;
    Cloud() { ndt_cloud_init(&cloud); }
    ~Cloud() { ndt_cloud_free(&cloud); }
    Cloud(const Cloud &) = delete;
    Cloud &operator=(const Cloud &) = delete;
};

enum class Origin { None, Near }; // Near: doubles far from zero keep their digits

// N x 3 or wider, float32 or float64, of any strides; further columns are not read. ValueError names `what`.
void read_points(ndt_cloud &out, nb::handle points, Origin origin, const char *what);
// N times [s] into the points that were read.
void read_times(ndt_cloud &out, nb::handle times, const char *what);
void read_intensity(ndt_cloud &out, nb::handle values, const char *what);
// 4 x 4, or seven numbers x y z qx qy qz qw. ValueError unless it is a rigid transform.
ndt_pose read_pose(nb::handle pose, const char *what);
// `count` numbers of any shape; ValueError otherwise.
void read_numbers(double *out, size_t count, nb::handle numbers, const char *what);

nb::object make_array(const std::vector<size_t> &shape, const double *values);
nb::object make_points(const ndt_cloud &cloud);
nb::object make_column(const float *values, size_t count); // None for NULL
nb::object make_matrix(const ndt_pose &pose);
nb::dict make_scores(const ndt_scores &scores);

void bind_map(nb::module_ &module);
void bind_align(nb::module_ &module);
void bind_preprocess(nb::module_ &module);
void bind_localize(nb::module_ &module);
void bind_replay(nb::module_ &module);
void bind_bag(nb::module_ &module);
void bind_read_cloud(nb::module_ &module);

} // namespace ndt_python
