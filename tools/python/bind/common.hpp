// Shared by the bindings: arrays of NumPy to the types of the core, statuses to exceptions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <mutex>
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

// ---- errors ----

// Throws what fits: ValueError for arguments, formats and limits, OSError, MemoryError, RuntimeError.
void check(ndt_status status, const ndt_error &error);
// The same for what was read from or written to a file: FileNotFoundError, PermissionError, OSError where the
// system refused, ValueError where the content is wrong.
void check_file(ndt_status status, const ndt_error &error, const std::string &path);
std::string class_name(nb::handle value);

// A function of ndtd._notebook, which shows an object.
nb::object notebook(const char *function, nb::handle self, const nb::kwargs &options = nb::kwargs());
std::string path_text(nb::handle path); // str, bytes or os.PathLike; TypeError otherwise

// ---- threads and processes ----

// Holds a lock without holding up the interpreter, which the holder of the lock may need.
class Turn
{
  public:
    explicit Turn(std::mutex &lock) : lock_(lock, std::defer_lock)
    {
        if (!lock_.try_lock()) {
            nb::gil_scoped_release release;
            lock_.lock();
        }
    }

  private:
    std::unique_lock<std::mutex> lock_;
};

// Threads do not survive fork(): what has threads belongs to the process that made it.
class Process
{
  public:
    Process();
    bool is_mine() const;
    void check(const char *what) const; // RuntimeError in another process

  private:
    unsigned forks_;
};

// ---- arrays in ----

// A cloud that frees itself and keeps its memory for the next scan.
struct Cloud {
    ndt_cloud cloud;
    Cloud() { ndt_cloud_init(&cloud); }
    ~Cloud() { ndt_cloud_free(&cloud); }
    Cloud(const Cloud &) = delete;
    Cloud &operator=(const Cloud &) = delete;
};

enum class Origin { None, Near }; // Near: doubles far from zero keep their digits

// N x 3 or wider, float32 or float64, of any strides; further columns are not read. The one copy is the
// transposition into the arrays of the core. ValueError and TypeError name `what`.
void read_points(ndt_cloud &out, nb::handle points, Origin origin, const char *what);
// N times [s] into the points that were read.
void read_times(ndt_cloud &out, nb::handle times, const char *what);
void read_intensity(ndt_cloud &out, nb::handle values, const char *what);
// 4 x 4, or seven numbers x y z qx qy qz qw; None: the identity. ValueError unless it is a rigid transform.
ndt_pose read_pose(nb::handle pose, const char *what);
// `count` numbers of any shape; ValueError otherwise.
void read_numbers(double *out, size_t count, nb::handle numbers, const char *what);

// ---- arrays out ----

template <size_t... SHAPE> using Doubles = nb::ndarray<nb::numpy, double, nb::shape<SHAPE...>>;
using Points = nb::ndarray<nb::numpy, float, nb::shape<-1, 3>>;

// A new array of NumPy that owns its numbers.
template <class Array, class T> Array make_array(const T *values, std::initializer_list<size_t> shape)
{
    size_t count = 1;
    for (size_t length : shape)
        count *= length;
    T *data = new T[count ? count : 1];
    std::copy(values, values + count, data);
    nb::capsule owner(data, [](void *memory) noexcept { delete[] static_cast<T *>(memory); });
    return Array(data, shape.size(), shape.begin(), owner);
}

template <size_t... SHAPE> Doubles<SHAPE...> make_doubles(const double *values)
{
    return make_array<Doubles<SHAPE...>>(values, {SHAPE...});
}

Points make_points(const ndt_cloud &cloud);
nb::object make_column(const float *values, size_t count); // None for NULL
Doubles<4, 4> make_matrix(const ndt_pose &pose);

// ---- classes ----

void bind_map(nb::module_ &module);
void bind_results(nb::module_ &module);
void bind_align(nb::module_ &module);
void bind_preprocess(nb::module_ &module);
void bind_localize(nb::module_ &module);
void bind_odometry(nb::module_ &module);
void bind_replay(nb::module_ &module);
void bind_localizer(nb::module_ &module);
void bind_bag(nb::module_ &module);
void bind_read_cloud(nb::module_ &module);

} // namespace ndt_python
