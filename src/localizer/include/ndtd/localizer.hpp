/** @file
 * @brief Localisation inside a C++17 program: ndtd/session.h with owners and exceptions. Header only.
 *
 *     ndtd::Localizer localizer;
 *     localizer.read_options("/etc/ndtd/ndtd.yaml");
 *     localizer.set_option("map.path", "map.pcd").start();
 *     ndtd::Cloud points;
 *     points.add(1.0f, 2.0f, 0.5f, 0.01f);  // x y z [m] in the frame of the sensor, time after the stamp [s]
 *     const ndt_result_message result = localizer.scan(stamp_ns, "lidar", points);
 *     if (localizer.is_pose_trusted())
 *         drive_by(result.result.T_map_sensor.t_m);
 *
 * Messages, results and what a call means are those of session.h: equal inputs give equal bits. A call that fails
 * throws ndtd::Error, whose text is one line, and leaves the localizer as it is. Objects move and do not copy; one
 * thread at a time for each. Link libndtd. */
#ifndef NDTD_LOCALIZER_HPP
#define NDTD_LOCALIZER_HPP

#if __cplusplus < 201703L
#error "ndtd/localizer.hpp needs C++17: -std=c++17, or set(CMAKE_CXX_STANDARD 17)"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "ndtd/session.h"

namespace ndtd
{

/** What a call that failed throws. */
class Error : public std::runtime_error
{
  public:
    Error(ndt_status status, const ndt_error &error) : std::runtime_error(error.text), status_(status) {}
    /** The kind of failure; its name: ndt_status_name. */
    ndt_status status() const noexcept { return status_; }

  private:
    ndt_status status_;
};

/** Points of a scan. Its memory is kept for the next one by clear(). */
class Cloud
{
  public:
    Cloud() noexcept { ndt_cloud_init(&cloud_); }
    ~Cloud() { ndt_cloud_free(&cloud_); }
    Cloud(Cloud &&other) noexcept : cloud_(other.cloud_) { ndt_cloud_init(&other.cloud_); }
    Cloud &operator=(Cloud &&other) noexcept
    {
        std::swap(cloud_, other.cloud_);
        return *this;
    }

    /** Room for so many points. */
    void reserve(std::size_t count, bool has_times = true)
    {
        ndt_error error;
        const ndt_status status =
            ndt_cloud_reserve(&cloud_, count, has_times ? unsigned{NDT_CLOUD_TIME} : 0u, &error);
        if (status != NDT_OK)
            throw Error(status, error);
    }
    /** Adds a point: x, y, z [m] in the frame of the sensor. A scan has times for all of its points or for none. */
    void add(float x_m, float y_m, float z_m) { put(x_m, y_m, z_m, false, 0); }
    /** The same, with its time relative to the stamp of the scan [s]. */
    void add(float x_m, float y_m, float z_m, float time_s) { put(x_m, y_m, z_m, true, time_s); }
    void clear() noexcept { cloud_.count = 0; }
    std::size_t size() const noexcept { return cloud_.count; }
    /** For functions in C: owned by this object. */
    ndt_cloud *get() noexcept { return &cloud_; }
    const ndt_cloud *get() const noexcept { return &cloud_; }

  private:
    void put(float x_m, float y_m, float z_m, bool has_time, float time_s)
    {
        const bool is_first_time = has_time && !cloud_.time_s;
        if (cloud_.count == cloud_.capacity || is_first_time)
            reserve(cloud_.count < 512 ? 1024 : 2 * cloud_.count, has_time);
        for (std::size_t i = 0; is_first_time && i < cloud_.count; i++)
            cloud_.time_s[i] = 0;
        cloud_.x_m[cloud_.count] = x_m;
        cloud_.y_m[cloud_.count] = y_m;
        cloud_.z_m[cloud_.count] = z_m;
        if (cloud_.time_s)
            cloud_.time_s[cloud_.count] = time_s;
        cloud_.count++;
    }
    ndt_cloud cloud_;
};

/** See the top of this file. */
class Localizer
{
  public:
    Localizer()
    {
        ndtd_session *session = nullptr;
        call(ndtd_session_create, &session);
        session_.reset(session);
    }

    /** @name Before start()
     * @{ */
    Localizer &read_options(const std::string &path)
    {
        call(ndtd_session_read_options, session_.get(), path.c_str());
        return *this;
    }
    Localizer &set_option(const std::string &name, const std::string &value)
    {
        call(ndtd_session_set_option, session_.get(), name.c_str(), value.c_str());
        return *this;
    }
    /** map: a reference is taken; nullptr: the map of the option map.path. */
    Localizer &start(ndt_map *map = nullptr)
    {
        call(ndtd_session_start, session_.get(), map);
        return *this;
    }
    /** @} */

    /** @name After start(), in the order of the stamps
     * @{ */
    ndt_result_message scan(const ndt_scan_message &header, const Cloud &points)
    {
        ndt_result_message result;
        call(ndtd_session_scan, session_.get(), &header, points.get(), &result);
        return result;
    }
    /** The same for a scan of the sensor `frame_id`, numbered from 0. */
    ndt_result_message scan(std::int64_t stamp_ns, const std::string &frame_id, const Cloud &points)
    {
        ndt_scan_message header{};
        header.seq = seq_;
        header.stamp_ns = stamp_ns;
        std::snprintf(header.frame_id, sizeof(header.frame_id), "%s", frame_id.c_str());
        const ndt_result_message result = scan(header, points);
        seq_++;
        return result;
    }
    void initial_pose(const ndt_pose_message &pose)
    {
        call(ndtd_session_pose, session_.get(), NDT_MESSAGE_INITIAL_POSE, &pose);
    }
    void odometry(const ndt_pose_message &odometry)
    {
        call(ndtd_session_pose, session_.get(), NDT_MESSAGE_ODOMETRY, &odometry);
    }
    void imu(const ndt_imu_message &imu) { call(ndtd_session_imu, session_.get(), &imu); }
    void gnss(const ndt_gnss_message &gnss) { call(ndtd_session_gnss, session_.get(), &gnss); }
    /** An encoded message, such as the payload of a bag record; the result, if it was a scan. */
    std::optional<ndt_result_message> message(const void *data, std::size_t size)
    {
        ndt_result_message result;
        int is_scan = 0;
        call(ndtd_session_message, session_.get(), data, size, &is_scan, &result);
        return is_scan ? std::optional<ndt_result_message>(result) : std::nullopt;
    }
    /** The pose at any time (stamp 0: at the newest data); none: `reason`, if it is not null, tells why. */
    std::optional<ndt_moment_message> pose_at(std::int64_t stamp_ns, std::string *reason = nullptr) const
    {
        ndt_error error{};
        ndt_moment_message moment;
        const ndt_status status = ndtd_session_pose_at(session_.get(), stamp_ns, &moment, &error);
        if (status == NDT_OK)
            return moment;
        if (status != NDT_END)
            throw Error(status, error);
        if (reason)
            *reason = error.text;
        return std::nullopt;
    }
    bool is_pose_trusted() const { return ndtd_session_is_pose_trusted(session_.get()) != 0; }
    void set_map(ndt_map *map) { call(ndtd_session_set_map, session_.get(), map); }
    /** @} */

    /** For functions in C: owned by this object. */
    ndtd_session *get() noexcept { return session_.get(); }

  private:
    template <class Function, class... Arguments> static void call(Function function, Arguments... arguments)
    {
        ndt_error error{};
        const ndt_status status = function(arguments..., &error);
        if (status != NDT_OK)
            throw Error(status, error);
    }
    struct Destroy {
        void operator()(ndtd_session *session) const noexcept { ndtd_session_destroy(session); }
    };
    std::unique_ptr<ndtd_session, Destroy> session_;
    std::uint64_t seq_ = 0;
};

} // namespace ndtd
#endif
