#include "encoder.hpp"

#include <cmath>
#include <cstring>

namespace ndt_python
{

template <size_t SIZE> static void set_name(char (&to)[SIZE], const std::string &name, const char *what)
{
    if (name.size() >= SIZE)
        throw nb::value_error(
            (std::string(what) + ": '" + name + "' is longer than " + std::to_string(SIZE - 1) + " bytes").c_str());
    std::memcpy(to, name.c_str(), name.size() + 1);
}

int64_t Stamp::ns(const char *call) const
{
    const nb::object whole = nb::steal(PyNumber_Index(given.ptr()));
    if (!whole.is_valid()) {
        PyErr_Clear();
        const bool is_number = PyNumber_Check(given.ptr()) && !nb::hasattr(given, "ndim");
        throw nb::type_error((std::string(call) + ": stamp_ns: a whole number is wanted, not " + class_name(given) +
                              (is_number ? ": nanoseconds, as int(stamp_s * 1e9)" : ""))
                                 .c_str());
    }
    const long long out = PyLong_AsLongLong(whole.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        throw nb::value_error((std::string(call) + ": stamp_ns: beyond 64 bits").c_str());
    }
    return out;
}

void Encoder::scan(int64_t stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s, uint64_t seq,
                   const std::string &frame_id)
{
    ndt_scan_message message = {};
    ndt_error error;
    message.seq = seq;
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, frame_id, "frame_id");
    ndt_cloud &cloud = cloud_.cloud;
    read_points(cloud, points, Origin::Near, "points");
    const unsigned fields =
        (intensity.is_none() ? 0u : NDT_CLOUD_INTENSITY) | (time_s.is_none() ? 0u : NDT_CLOUD_TIME);
    if (cloud.fields & ~fields) { // arrays that a scan before this one had
        ndt_cloud_free(&cloud);
        ndt_cloud_init(&cloud);
        read_points(cloud, points, Origin::Near, "points");
    }
    if (!intensity.is_none())
        read_intensity(cloud, intensity, "intensity");
    if (!time_s.is_none())
        read_times(cloud, time_s, "time_s");
    check(ndt_scan_encode(&frame_, &message, &cloud, &error), error);
}

// A bag has the numbers that were recorded; who reads it normalises them.
static ndt_pose read_recorded_pose(nb::handle pose)
{
    ndt_pose out = read_pose(pose, "pose"), recorded = out;
    if (nb::len(pose) != 7)
        return out;
    double numbers[7], length = 0;
    read_numbers(numbers, 7, pose, "pose");
    std::memcpy(recorded.q_xyzw, numbers + 3, sizeof(recorded.q_xyzw));
    for (double q : recorded.q_xyzw)
        length += q * q;
    return std::fabs(length - 1) < 1e-3 ? recorded : out;
}

void Encoder::pose(ndt_message_type type, int64_t stamp_ns, nb::handle pose, nb::handle twist,
                   nb::handle covariance, const std::string &frame_id)
{
    ndt_pose_message message = {};
    ndt_error error;
    double numbers[6];
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, frame_id, "frame_id");
    message.has_pose = !pose.is_none();
    if (message.has_pose)
        message.pose = read_recorded_pose(pose);
    message.has_twist = !twist.is_none();
    if (message.has_twist) {
        read_numbers(numbers, 6, twist, "twist vx vy vz wx wy wz");
        std::memcpy(message.twist.v_mps, numbers, sizeof(message.twist.v_mps));
        std::memcpy(message.twist.w_radps, numbers + 3, sizeof(message.twist.w_radps));
    }
    message.has_covariance = !covariance.is_none();
    if (message.has_covariance)
        read_numbers(message.covariance, 36, covariance, "covariance");
    check(ndt_pose_message_encode(&frame_, type, &message, &error), error);
}

void Encoder::imu(int64_t stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
                  const std::string &frame_id)
{
    ndt_imu_message message = {};
    ndt_error error;
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, frame_id, "frame_id");
    read_numbers(message.angular_velocity_radps, 3, angular_velocity, "angular_velocity");
    message.has_acceleration = !linear_acceleration.is_none();
    if (message.has_acceleration)
        read_numbers(message.linear_acceleration_mps2, 3, linear_acceleration, "linear_acceleration");
    check(ndt_imu_encode(&frame_, &message, &error), error);
}

void Encoder::gnss(int64_t stamp_ns, nb::handle position, nb::handle deviation, const std::string &antenna)
{
    ndt_gnss_message message = {};
    ndt_error error;
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, "map", "frame_id");
    read_numbers(message.position_m, 3, position, "position");
    message.has_deviation = !deviation.is_none();
    if (message.has_deviation)
        read_numbers(message.deviation_m, 3, deviation, "deviation");
    message.has_antenna = !antenna.empty();
    set_name(message.antenna, antenna, "antenna");
    check(ndt_gnss_encode(&frame_, &message, &error), error);
}

} // namespace ndt_python
