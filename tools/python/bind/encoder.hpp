// Messages from the arguments of Python: those of BagWriter and of Localizer are the same.
#pragma once

#include "common.hpp"
#include "ndt_proto/message.h"

namespace ndt_python
{

// The stamp of a call whose other arguments may have been given first: read in the call, so that the line tells the
// order.
struct Stamp {
    nb::handle given;

    int64_t ns(const char *call) const;
};

// Encodes one message at a time. ValueError and TypeError name the argument.
class Encoder
{
  public:
    Encoder() { ndt_buffer_init(&frame_); }
    ~Encoder() { ndt_buffer_free(&frame_); }
    Encoder(const Encoder &) = delete;
    Encoder &operator=(const Encoder &) = delete;

    void scan(int64_t stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s, uint64_t seq,
              const std::string &frame_id);
    void pose(ndt_message_type type, int64_t stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance,
              const std::string &frame_id);
    void imu(int64_t stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
             const std::string &frame_id);
    void gnss(int64_t stamp_ns, nb::handle position, nb::handle deviation, const std::string &antenna);
    const ndt_buffer &frame() const { return frame_; } // the last one

  private:
    ndt_buffer frame_;
    Cloud cloud_;
};

} // namespace ndt_python

template <> struct nanobind::detail::type_caster<ndt_python::Stamp> {
    NB_TYPE_CASTER(ndt_python::Stamp, const_name("int"))
    bool from_python(handle source, uint8_t, cleanup_list *) noexcept
    {
        value.given = source;
        return true;
    }
};
