#include "common.hpp"

#include <cmath>
#include <cstring>

namespace ndt_python
{

using namespace nb::literals;

void check(ndt_status status, const ndt_error &error)
{
    switch (status) {
    case NDT_OK:
    case NDT_END:
        return;
    case NDT_ERR_MEMORY:
        PyErr_SetString(PyExc_MemoryError, error.text);
        break;
    case NDT_ERR_IO:
        PyErr_SetString(PyExc_OSError, error.text);
        break;
    case NDT_ERR_ARGUMENT:
    case NDT_ERR_FORMAT:
    case NDT_ERR_LIMIT:
        PyErr_SetString(PyExc_ValueError, error.text);
        break;
    default:
        PyErr_SetString(PyExc_RuntimeError, error.text);
    }
    throw nb::python_error();
}

static std::string shape_text(const nb::ndarray<nb::ro, nb::device::cpu> &array)
{
    std::string text = "(";
    for (size_t i = 0; i < array.ndim(); i++)
        text += (i ? ", " : "") + std::to_string(array.shape(i));
    return text + ")";
}

static nb::ndarray<nb::ro, nb::device::cpu> to_array(nb::handle object, const char *what)
{
    nb::ndarray<nb::ro, nb::device::cpu> array;
    if (!nb::try_cast(object, array)) {
        nb::object converted = nb::module_::import_("numpy").attr("asarray")(object); // lists of numbers
        if (!nb::try_cast(converted, array))
            throw nb::type_error((std::string(what) + ": an array of numbers is wanted").c_str());
    }
    return array;
}

// Calls read(i, value) for the numbers of a column.
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
static void choose_origin(const double *x, int64_t row, int64_t column, size_t count, double origin[3])
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
}

void read_points(ndt_cloud &out, nb::handle points, Origin origin, const char *what)
{
    const auto array = to_array(points, what);
    const bool is_float = array.dtype() == nb::dtype<float>(), is_double = array.dtype() == nb::dtype<double>();
    if (array.ndim() != 2 || array.shape(1) < 3)
        throw nb::value_error(
            (std::string(what) + ": an array of shape (N, 3) is wanted, not " + shape_text(array)).c_str());
    if (!is_float && !is_double)
        throw nb::type_error((std::string(what) + ": float32 or float64 is wanted").c_str());
    const size_t count = array.shape(0);
    if (count > NDT_CLOUD_MAX_POINTS)
        throw nb::value_error((std::string(what) + ": " + std::to_string(count) + " points; the limit is " +
                               std::to_string(NDT_CLOUD_MAX_POINTS))
                                  .c_str());
    ndt_error error;
    out.count = 0;
    check(ndt_cloud_reserve(&out, count, 0, &error), error);
    float *const columns[3] = {out.x_m, out.y_m, out.z_m};
    const int64_t row = array.stride(0), column = array.stride(1);
    std::memset(out.origin_m, 0, sizeof(out.origin_m));
    if (is_double && origin == Origin::Near && count > 0)
        choose_origin(static_cast<const double *>(array.data()), row, column, count, out.origin_m);
    for (int k = 0; k < 3; k++) {
        if (is_float)
            copy_floats(static_cast<const float *>(array.data()) + k * column, row, count, columns[k]);
        else
            copy_column(static_cast<const double *>(array.data()) + k * column, row, count, out.origin_m[k],
                        columns[k]);
    }
    out.count = count;
}

// One number per point into the optional array that `field` names.
static void read_column(ndt_cloud &out, unsigned field, nb::handle values, const char *what)
{
    const auto array = to_array(values, what);
    if (array.ndim() != 1 || array.shape(0) != out.count)
        throw nb::value_error((std::string(what) + ": one number per point is wanted, (" +
                               std::to_string(out.count) + ",), not " + shape_text(array))
                                  .c_str());
    ndt_error error;
    check(ndt_cloud_reserve(&out, out.count, field, &error), error);
    float *to = field == NDT_CLOUD_TIME ? out.time_s : out.intensity;
    if (array.dtype() == nb::dtype<float>())
        copy_floats(static_cast<const float *>(array.data()), array.stride(0), out.count, to);
    else if (array.dtype() == nb::dtype<double>())
        copy_column(static_cast<const double *>(array.data()), array.stride(0), out.count, 0, to);
    else
        throw nb::type_error((std::string(what) + ": float32 or float64 is wanted").c_str());
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
    nb::object doubles = nb::module_::import_("numpy").attr("ascontiguousarray")(numbers, "dtype"_a = "float64");
    const auto array = nb::cast<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>(doubles);
    if (array.size() != count)
        throw nb::value_error((std::string(what) + ": " + std::to_string(count) + " numbers are wanted, not " +
                               std::to_string(array.size()))
                                  .c_str());
    std::memcpy(out, array.data(), count * sizeof(double));
    for (size_t i = 0; i < count; i++)
        if (!std::isfinite(out[i]))
            throw nb::value_error((std::string(what) + ": a number is not finite").c_str());
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

ndt_pose read_pose(nb::handle pose, const char *what)
{
    if (pose.is_none())
        return ndt_pose_identity();
    const auto array = to_array(pose, what);
    ndt_pose out;
    if (array.ndim() == 1 && array.shape(0) == 7) {
        double numbers[7];
        read_numbers(numbers, 7, pose, what);
        std::memcpy(out.t_m, numbers, sizeof(out.t_m));
        std::memcpy(out.q_xyzw, numbers + 3, sizeof(out.q_xyzw));
        if (!ndt_pose_normalize(&out))
            throw nb::value_error((std::string(what) + ": the quaternion is zero").c_str());
        return out;
    }
    if (array.ndim() != 2 || array.shape(0) != 4 || array.shape(1) != 4)
        throw nb::value_error((std::string(what) +
                               ": a matrix of shape (4, 4) or 7 numbers x y z qx qy qz qw are wanted, not " +
                               shape_text(array))
                                  .c_str());
    double m[16];
    read_numbers(m, 16, pose, what);
    const double R[9] = {m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]}, t[3] = {m[3], m[7], m[11]};
    if (!is_rotation(R) || std::fabs(m[12]) + std::fabs(m[13]) + std::fabs(m[14]) + std::fabs(m[15] - 1) > 1e-9)
        throw nb::value_error((std::string(what) + ": the matrix is not a rigid transform").c_str());
    out = ndt_pose_from_rotation(R, t);
    ndt_pose_normalize(&out);
    return out;
}

template <class T> static nb::object to_numpy(std::unique_ptr<T[]> data, const std::vector<size_t> &shape)
{
    T *raw = data.release();
    nb::capsule owner(raw, [](void *memory) noexcept { delete[] static_cast<T *>(memory); });
    return nb::cast(nb::ndarray<nb::numpy, T>(raw, shape.size(), shape.data(), owner));
}

nb::object make_array(const std::vector<size_t> &shape, const double *values)
{
    size_t count = 1;
    for (size_t length : shape)
        count *= length;
    auto data = std::make_unique<double[]>(count);
    std::memcpy(data.get(), values, count * sizeof(double));
    return to_numpy(std::move(data), shape);
}

nb::object make_points(const ndt_cloud &cloud)
{
    auto data = std::make_unique<float[]>(3 * cloud.count);
    for (size_t i = 0; i < cloud.count; i++) {
        data[3 * i] = cloud.x_m[i];
        data[3 * i + 1] = cloud.y_m[i];
        data[3 * i + 2] = cloud.z_m[i];
    }
    return to_numpy(std::move(data), {cloud.count, 3});
}

nb::object make_column(const float *values, size_t count)
{
    if (!values)
        return nb::none();
    auto data = std::make_unique<float[]>(count);
    std::memcpy(data.get(), values, count * sizeof(float));
    return to_numpy(std::move(data), {count});
}

nb::object make_matrix(const ndt_pose &pose)
{
    double R[9];
    ndt_pose_rotation(&pose, R);
    const double m[16] = {R[0], R[1], R[2], pose.t_m[0], R[3], R[4], R[5], pose.t_m[1],
                          R[6], R[7], R[8], pose.t_m[2], 0,    0,    0,    1};
    return make_array({4, 4}, m);
}

nb::dict make_scores(const ndt_scores &scores)
{
    nb::dict out;
    out["transform_probability"] = scores.transform_probability;
    out["nvtl"] = scores.nvtl;
    out["nvtl_normalized"] = scores.nvtl_normalized;
    out["match_ratio"] = scores.match_ratio;
    out["coverage"] = scores.coverage;
    return out;
}

} // namespace ndt_python
