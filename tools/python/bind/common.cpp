#include "common.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "ndt/limits.h"

namespace ndt_python
{

using namespace nb::literals;

[[noreturn]] static void raise(PyObject *type, const char *text)
{
    PyErr_SetString(type, text);
    throw nb::python_error();
}

void check(ndt_status status, const ndt_error &error)
{
    switch (status) {
    case NDT_OK:
    case NDT_END:
        return;
    case NDT_ERR_MEMORY:
        raise(PyExc_MemoryError, error.text);
    case NDT_ERR_IO:
        raise(PyExc_OSError, error.text);
    case NDT_ERR_ARGUMENT:
    case NDT_ERR_FORMAT:
    case NDT_ERR_LIMIT:
        raise(PyExc_ValueError, error.text);
    default:
        raise(PyExc_RuntimeError, error.text);
    }
}

void check_file(ndt_status status, const ndt_error &error, const std::string &path)
{
    if (status == NDT_ERR_UNSUPPORTED)
        raise(PyExc_ValueError, error.text);
    if (status != NDT_OK && status != NDT_END && path != "-" && access(path.c_str(), F_OK) != 0 && errno == ENOENT)
        raise(PyExc_FileNotFoundError, error.text);
    if (status == NDT_ERR_IO && errno == EACCES)
        raise(PyExc_PermissionError, error.text);
    check(status, error);
}

std::string class_name(nb::handle value)
{
    return nb::cast<std::string>(value.type().attr("__name__"));
}

nb::object notebook(const char *function, nb::handle self, const nb::kwargs &options)
{
    return nb::module_::import_("ndtd._notebook").attr(function)(self, **options);
}

std::string path_text(nb::handle path)
{
    const nb::object os = nb::module_::import_("os");
    return nb::cast<std::string>(os.attr("fsdecode")(os.attr("fspath")(path)));
}

static unsigned forks; // of this process since its first ancestor that loaded the module

Process::Process() : forks_(forks)
{
    static const int is_counted = pthread_atfork(nullptr, nullptr, [] { forks++; });
    static_cast<void>(is_counted);
}

bool Process::is_mine() const
{
    return forks_ == forks;
}

void Process::check(const char *what) const
{
    if (!is_mine())
        raise(PyExc_RuntimeError, (std::string(what) + ": made before fork(), which its threads did not survive; "
                                                       "make one in this process")
                                      .c_str());
}

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

static std::string shape_text(const Array &array)
{
    std::string text = "(";
    for (size_t i = 0; i < array.ndim(); i++)
        text += (i ? ", " : "") + std::to_string(array.shape(i));
    return text + (array.ndim() == 1 ? ",)" : ")");
}

[[noreturn]] static void refuse_type(nb::handle object, const char *what)
{
    std::string of = class_name(object);
    if (nb::hasattr(object, "dtype")) {
        const nb::object dtype = object.attr("dtype");
        of = "an array of " + nb::cast<std::string>(dtype.attr("__str__")());
        if (nb::hasattr(dtype, "names") && !dtype.attr("names").is_none())
            of += ": numpy.column_stack((a['x'], a['y'], a['z']))";
    }
    raise(PyExc_TypeError, (std::string(what) + ": an array of float32 or float64 is wanted, not " + of).c_str());
}

static Array to_array(nb::handle object, const char *what)
{
    Array array;
    if (nb::try_cast(object, array))
        return array;
    if (!nb::isinstance<nb::sequence>(object) || nb::isinstance<nb::str>(object) || nb::hasattr(object, "dtype"))
        refuse_type(object, what);
    nb::object converted; // a list of numbers
    try {
        converted = nb::module_::import_("numpy").attr("asarray")(object, "dtype"_a = "float64");
    } catch (nb::python_error &) {
        raise(PyExc_TypeError, (std::string(what) + ": an array of numbers is wanted, and all rows alike").c_str());
    }
    return nb::cast<Array>(converted);
}

template <class T, class Out>
static void copy_column(const T *from, int64_t stride, size_t count, double origin, Out *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = static_cast<Out>(static_cast<double>(from[static_cast<int64_t>(i) * stride]) - origin);
}

static void copy_floats(const float *from, int64_t stride, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = from[static_cast<int64_t>(i) * stride];
}

// The first finite point, rounded to multiples of 1024 m, where a coordinate is 2048 m or more: as the readers of
// files.
// Returns the largest coordinate.
static double choose_origin(const double *x, int64_t row, int64_t column, size_t count, double origin[3])
{
    double most = 0;
    const double *first = nullptr;
    for (size_t i = 0; i < count; i++) {
        const double *point = x + static_cast<int64_t>(i) * row;
        const double a = point[0], b = point[column], c = point[2 * column];
        if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c))
            continue;
        first = first ? first : point;
        most = std::fmax(most, std::fmax(std::fabs(a), std::fmax(std::fabs(b), std::fabs(c))));
    }
    for (int k = 0; k < 3; k++)
        origin[k] = first && most >= 2048 ? 1024 * std::round(first[k * column] / 1024) : 0;
    return most;
}

// Returns the largest coordinate if it is looked for.
static double transpose(ndt_cloud &out, const Array &array, bool is_float, Origin origin)
{
    const size_t count = array.shape(0);
    float *const columns[3] = {out.x_m, out.y_m, out.z_m};
    const int64_t row = array.stride(0), column = array.stride(1);
    double most = 0;
    std::memset(out.origin_m, 0, sizeof(out.origin_m));
    if (!is_float && origin == Origin::Near && count > 0)
        most = choose_origin(static_cast<const double *>(array.data()), row, column, count, out.origin_m);
    for (int k = 0; k < 3; k++) {
        if (is_float)
            copy_floats(static_cast<const float *>(array.data()) + k * column, row, count, columns[k]);
        else
            copy_column(static_cast<const double *>(array.data()) + k * column, row, count, out.origin_m[k],
                        columns[k]);
    }
    return most;
}

// Columns of what is taken for x y z by rows: no sensor has as many fields per point.
constexpr size_t LEAST_TRANSPOSED = 64;

void read_points(ndt_cloud &out, nb::handle points, Origin origin, const char *what)
{
    const auto array = to_array(points, what);
    const bool is_float = array.dtype() == nb::dtype<float>(), is_double = array.dtype() == nb::dtype<double>();
    if (!is_float && !is_double)
        refuse_type(points, what);
    const bool is_transposed = array.ndim() == 2 && array.shape(0) <= 4 && array.shape(1) >= LEAST_TRANSPOSED;
    if (array.ndim() != 2 || array.shape(1) < 3 || is_transposed)
        raise(PyExc_ValueError, (std::string(what) + ": an array of shape (N, 3) is wanted, not " +
                                 shape_text(array) + (is_transposed ? ": its transpose" : ""))
                                    .c_str());
    const size_t count = array.shape(0);
    if (count > NDT_CLOUD_MAX_POINTS)
        raise(PyExc_ValueError, (std::string(what) + ": " + std::to_string(count) + " points; the limit is " +
                                 std::to_string(NDT_CLOUD_MAX_POINTS))
                                    .c_str());
    ndt_error error;
    out.count = 0;
    check(ndt_cloud_reserve(&out, count, 0, &error), error);
    double most;
    if (count < 10000) {
        most = transpose(out, array, is_float, origin);
    } else {
        nb::gil_scoped_release release;
        most = transpose(out, array, is_float, origin);
    }
    if (most > NDT_LIMIT_POSITION_M)
        raise(PyExc_ValueError, (std::string(what) + ": a coordinate is beyond the limit of 1e8 m").c_str());
    out.count = count;
}

// One number per point into the optional array that `field` names.
static void read_column(ndt_cloud &out, unsigned field, nb::handle values, const char *what)
{
    const auto array = to_array(values, what);
    const bool is_float = array.dtype() == nb::dtype<float>();
    if (!is_float && array.dtype() != nb::dtype<double>())
        refuse_type(values, what);
    if (array.ndim() != 1 || array.shape(0) != out.count)
        raise(PyExc_ValueError, (std::string(what) + ": one number per point is wanted, (" +
                                 std::to_string(out.count) + ",), not " + shape_text(array))
                                    .c_str());
    ndt_error error;
    check(ndt_cloud_reserve(&out, out.count, field, &error), error);
    float *to = field == NDT_CLOUD_TIME ? out.time_s : out.intensity;
    if (is_float)
        copy_floats(static_cast<const float *>(array.data()), array.stride(0), out.count, to);
    else
        copy_column(static_cast<const double *>(array.data()), array.stride(0), out.count, 0, to);
}

void read_times(ndt_cloud &out, nb::handle times, const char *what)
{
    read_column(out, NDT_CLOUD_TIME, times, what);
}

void read_intensity(ndt_cloud &out, nb::handle values, const char *what)
{
    read_column(out, NDT_CLOUD_INTENSITY, values, what);
}

void read_numbers(double *out, size_t count, nb::handle numbers, const char *what)
{
    nb::ndarray<const double, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(numbers, array, false)) {
        nb::object doubles;
        try {
            doubles = nb::module_::import_("numpy").attr("ascontiguousarray")(numbers, "dtype"_a = "float64");
        } catch (nb::python_error &) {
            raise(PyExc_TypeError, (std::string(what) + ": " + std::to_string(count) + " numbers are wanted, not " +
                                    class_name(numbers))
                                       .c_str());
        }
        array = nb::cast<decltype(array)>(doubles);
    }
    if (array.size() != count)
        raise(PyExc_ValueError, (std::string(what) + ": " + std::to_string(count) + " numbers are wanted, not " +
                                 std::to_string(array.size()))
                                    .c_str());
    std::memcpy(out, array.data(), count * sizeof(double));
    for (size_t i = 0; i < count; i++)
        if (!std::isfinite(out[i]))
            raise(PyExc_ValueError, (std::string(what) + ": a number is not finite").c_str());
}

static bool is_rotation(const double R[9])
{
    double most = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const double dot = R[3 * i] * R[3 * j] + R[3 * i + 1] * R[3 * j + 1] + R[3 * i + 2] * R[3 * j + 2];
            most = std::fmax(most, std::fabs(dot - (i == j)));
        }
    const double determinant = R[0] * (R[4] * R[8] - R[5] * R[7]) - R[1] * (R[3] * R[8] - R[5] * R[6]) +
                               R[2] * (R[3] * R[7] - R[4] * R[6]);
    return most < 1e-3 && determinant > 0;
}

static void check_reach(const ndt_pose &pose, const char *what)
{
    for (double t_m : pose.t_m)
        if (std::fabs(t_m) > NDT_LIMIT_POSITION_M)
            raise(PyExc_ValueError,
                  (std::string(what) + ": a coordinate is beyond the limit of 1e8 m from the origin").c_str());
}

static ndt_pose pose_of_numbers(const double numbers[7], const char *what)
{
    ndt_pose out;
    std::memcpy(out.t_m, numbers, sizeof(out.t_m));
    std::memcpy(out.q_xyzw, numbers + 3, sizeof(out.q_xyzw));
    const double *q = out.q_xyzw, length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(length > 0.9 && length < 1.1)) { // as the option initial_pose.pose; angles are no quaternion
        char text[96];
        std::snprintf(text, sizeof(text), ": the quaternion has length %.4g, not 1", length);
        raise(PyExc_ValueError, (what + std::string(length > 0 ? text : ": the quaternion is zero")).c_str());
    }
    ndt_pose_normalize(&out);
    return out;
}

static ndt_pose pose_of_matrix(const double m[16], const char *what)
{
    const double R[9] = {m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]}, t[3] = {m[3], m[7], m[11]};
    if (!is_rotation(R) || std::fabs(m[12]) + std::fabs(m[13]) + std::fabs(m[14]) + std::fabs(m[15] - 1) > 1e-9)
        raise(PyExc_ValueError, (std::string(what) + ": the matrix is not a rigid transform").c_str());
    ndt_pose out = ndt_pose_from_rotation(R, t);
    ndt_pose_normalize(&out);
    return out;
}

ndt_pose read_pose(nb::handle pose, const char *what)
{
    if (pose.is_none())
        return ndt_pose_identity();
    const auto array = to_array(pose, what);
    const bool is_matrix = array.ndim() == 2 && array.shape(0) == 4 && array.shape(1) == 4;
    if (!is_matrix && (array.ndim() != 1 || array.shape(0) != 7))
        raise(PyExc_ValueError,
              (std::string(what) + ": a matrix of shape (4, 4) or 7 numbers x y z qx qy qz qw are wanted, not " +
               shape_text(array))
                  .c_str());
    double numbers[16];
    read_numbers(numbers, is_matrix ? 16 : 7, pose, what);
    const ndt_pose out = is_matrix ? pose_of_matrix(numbers, what) : pose_of_numbers(numbers, what);
    check_reach(out, what);
    return out;
}

Points make_points(const ndt_cloud &cloud)
{
    float *data = new float[3 * cloud.count + 1];
    nb::capsule owner(data, [](void *memory) noexcept { delete[] static_cast<float *>(memory); });
    for (size_t i = 0; i < cloud.count; i++) {
        data[3 * i] = cloud.x_m[i];
        data[3 * i + 1] = cloud.y_m[i];
        data[3 * i + 2] = cloud.z_m[i];
    }
    return Points(data, {cloud.count, 3}, owner);
}

nb::object make_column(const float *values, size_t count)
{
    if (!values)
        return nb::none();
    return nb::cast(make_array<nb::ndarray<nb::numpy, float, nb::shape<-1>>>(values, {count}));
}

Doubles<4, 4> make_matrix(const ndt_pose &pose)
{
    double R[9];
    ndt_pose_rotation(&pose, R);
    const double m[16] = {R[0], R[1], R[2], pose.t_m[0], R[3], R[4], R[5], pose.t_m[1],
                          R[6], R[7], R[8], pose.t_m[2], 0,    0,    0,    1};
    return make_doubles<4, 4>(m);
}

} // namespace ndt_python
