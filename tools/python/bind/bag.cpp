// ndtd.BagWriter and ndtd.BagReader
#include <cmath>
#include <cstring>

#include "common.hpp"
#include "ndt_io/bag.h"
#include "ndt_proto/message.h"

namespace ndt_python
{

// The stamp of a call whose other arguments may have been given first: read in the call, so that the line tells the
// order.
struct Stamp {
    nb::handle given;

    int64_t ns(const char *call) const;
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

namespace ndt_python
{

using namespace nb::literals;

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
        throw nb::type_error(
            (std::string(call) + ": stamp_ns: a whole number is wanted, not " + class_name(given)).c_str());
    }
    const long long out = PyLong_AsLongLong(whole.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        throw nb::value_error((std::string(call) + ": stamp_ns: beyond 64 bits").c_str());
    }
    return out;
}

class BagWriter
{
  public:
    BagWriter(nb::handle path, bool append)
    {
        ndt_error error;
        const std::string name = path_text(path);
        ndt_status status;
        {
            nb::gil_scoped_release release;
            status = ndt_bag_create(&writer_, name.c_str(), append, &error);
        }
        check_file(status, error, name);
        ndt_buffer_init(&frame_);
    }
    ~BagWriter()
    {
        ndt_bag_discard(writer_);
        ndt_buffer_free(&frame_);
    }
    BagWriter(const BagWriter &) = delete;
    BagWriter &operator=(const BagWriter &) = delete;

    void scan(int64_t stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s, uint64_t seq,
              const std::string &frame_id, std::optional<int64_t> receive_ns);
    void pose(ndt_message_type type, int64_t stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance,
              const std::string &frame_id, std::optional<int64_t> receive_ns);
    void imu(int64_t stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
             const std::string &frame_id, std::optional<int64_t> receive_ns);
    void gnss(int64_t stamp_ns, nb::handle position, nb::handle deviation, const std::string &antenna,
              std::optional<int64_t> receive_ns);
    uint64_t records()
    {
        const Turn turn(lock_);
        check_open();
        return ndt_bag_writer_records(writer_);
    }
    uint64_t bytes()
    {
        const Turn turn(lock_);
        check_open();
        return ndt_bag_writer_offset(writer_);
    }
    void close();
    void discard();

  private:
    void write(ndt_message_type type, int64_t receive_ns);
    void check_open() const;

    std::mutex lock_; // a write releases the interpreter

    ndt_bag_writer *writer_ = nullptr;
    ndt_buffer frame_;
    Cloud cloud_;
};

void BagWriter::check_open() const
{
    if (!writer_)
        throw nb::value_error("the bag is closed");
}

void BagWriter::write(ndt_message_type type, int64_t receive_ns)
{
    ndt_error error;
    ndt_bag_record record = {};
    record.type = type;
    record.length = static_cast<uint32_t>(frame_.size);
    record.receive_time_ns = receive_ns;
    record.payload = frame_.data;
    ndt_status status;
    {
        nb::gil_scoped_release release; // a pipe may wait for its reader
        status = ndt_bag_write(writer_, &record, &error);
    }
    check(status, error);
}

void BagWriter::scan(int64_t stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s, uint64_t seq,
                     const std::string &frame_id, std::optional<int64_t> receive_ns)
{
    ndt_scan_message message = {};
    ndt_error error;
    const Turn turn(lock_);
    check_open();
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
    write(NDT_MESSAGE_SCAN, receive_ns.value_or(stamp_ns));
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

void BagWriter::pose(ndt_message_type type, int64_t stamp_ns, nb::handle pose, nb::handle twist,
                     nb::handle covariance, const std::string &frame_id, std::optional<int64_t> receive_ns)
{
    ndt_pose_message message = {};
    ndt_error error;
    double numbers[6];
    const Turn turn(lock_);
    check_open();
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, frame_id, "frame_id");
    message.has_pose = !pose.is_none();
    if (message.has_pose)
        message.pose = read_recorded_pose(pose);
    message.has_twist = !twist.is_none();
    if (message.has_twist) {
        read_numbers(numbers, 6, twist, "twist");
        std::memcpy(message.twist.v_mps, numbers, sizeof(message.twist.v_mps));
        std::memcpy(message.twist.w_radps, numbers + 3, sizeof(message.twist.w_radps));
    }
    message.has_covariance = !covariance.is_none();
    if (message.has_covariance)
        read_numbers(message.covariance, 36, covariance, "covariance");
    check(ndt_pose_message_encode(&frame_, type, &message, &error), error);
    write(type, receive_ns.value_or(stamp_ns));
}

void BagWriter::imu(int64_t stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
                    const std::string &frame_id, std::optional<int64_t> receive_ns)
{
    ndt_imu_message message = {};
    ndt_error error;
    const Turn turn(lock_);
    check_open();
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, frame_id, "frame_id");
    read_numbers(message.angular_velocity_radps, 3, angular_velocity, "angular_velocity");
    message.has_acceleration = !linear_acceleration.is_none();
    if (message.has_acceleration)
        read_numbers(message.linear_acceleration_mps2, 3, linear_acceleration, "linear_acceleration");
    check(ndt_imu_encode(&frame_, &message, &error), error);
    write(NDT_MESSAGE_IMU, receive_ns.value_or(stamp_ns));
}

void BagWriter::gnss(int64_t stamp_ns, nb::handle position, nb::handle deviation, const std::string &antenna,
                     std::optional<int64_t> receive_ns)
{
    ndt_gnss_message message = {};
    ndt_error error;
    const Turn turn(lock_);
    check_open();
    message.stamp_ns = stamp_ns;
    set_name(message.frame_id, "map", "frame_id");
    read_numbers(message.position_m, 3, position, "position");
    message.has_deviation = !deviation.is_none();
    if (message.has_deviation)
        read_numbers(message.deviation_m, 3, deviation, "deviation");
    message.has_antenna = !antenna.empty();
    set_name(message.antenna, antenna, "antenna");
    check(ndt_gnss_encode(&frame_, &message, &error), error);
    write(NDT_MESSAGE_GNSS, receive_ns.value_or(stamp_ns));
}

void BagWriter::close()
{
    const Turn turn(lock_);
    ndt_error error;
    ndt_bag_writer *writer = writer_;
    writer_ = nullptr;
    if (writer)
        check(ndt_bag_finish(writer, &error), error);
}

void BagWriter::discard()
{
    const Turn turn(lock_);
    ndt_bag_discard(writer_);
    writer_ = nullptr;
}

// ---- reader ----

struct Record {
    std::string type;
    int64_t receive_ns;
    nb::bytes payload;
};

class BagReader
{
  public:
    explicit BagReader(nb::handle path)
    {
        ndt_error error;
        const std::string name = path_text(path);
        ndt_status status;
        ndt_progress_init(&waiting_, &BagReader::look_for_signals, this, 0.1);
        {
            nb::gil_scoped_release release;
            status = ndt_bag_open_any(&reader_, name.c_str(), &waiting_, &error);
        }
        if (status != NDT_ERR_CANCELLED)
            check_file(status, error, name);
        check_waited(status, error);
    }
    ~BagReader() { ndt_bag_close(reader_); }
    BagReader(const BagReader &) = delete;
    BagReader &operator=(const BagReader &) = delete;

    Record next();

  private:
    // Ctrl-C while a pipe is waited for.
    static void look_for_signals(void *self, const ndt_progress *)
    {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0)
            ndt_progress_cancel(&static_cast<BagReader *>(self)->waiting_);
    }
    static void check_waited(ndt_status status, const ndt_error &error)
    {
        if (status == NDT_ERR_CANCELLED && PyErr_Occurred())
            throw nb::python_error();
        check(status, error);
    }

    std::mutex lock_;
    ndt_bag_reader *reader_ = nullptr;
    ndt_progress waiting_ = {};
};

Record BagReader::next()
{
    ndt_bag_record record;
    ndt_error error;
    ndt_status status;
    const Turn turn(lock_);
    {
        nb::gil_scoped_release release;
        status = ndt_bag_next(reader_, &record, &error);
    }
    if (status == NDT_END)
        throw nb::stop_iteration();
    check_waited(status, error);
    return Record{ndt_message_name(static_cast<ndt_message_type>(record.type)), record.receive_time_ns,
                  nb::bytes(record.payload, record.length)};
}

// x y z of a scan's payload as ndarrays: points (N, 3), intensity, time_s.
static nb::dict decode_scan(const nb::bytes &payload)
{
    ndt_scan_message message;
    ndt_error error;
    Cloud cloud;
    check(ndt_scan_decode(reinterpret_cast<const uint8_t *>(payload.c_str()), payload.size(), &message,
                          &cloud.cloud, &error),
          error);
    nb::dict out;
    out["seq"] = message.seq;
    out["stamp_ns"] = message.stamp_ns;
    out["frame_id"] = std::string(message.frame_id);
    out["points"] = make_points(cloud.cloud);
    out["origin"] = make_doubles<3>(cloud.cloud.origin_m);
    out["intensity"] = make_column(cloud.cloud.intensity, cloud.cloud.count);
    out["time_s"] = make_column(cloud.cloud.time_s, cloud.cloud.count);
    return out;
}

void bind_bag(nb::module_ &module)
{
    nb::class_<BagWriter>(
        module, "BagWriter",
        R"(Writes a bag (bag.bin) for `ndtd --replay`. A context manager: left with an exception, the file is removed.

    with ndtd.BagWriter("drive.bag") as bag:
        bag.scan(stamp_ns, points, time_s=times)

`-` is standard output: a pipe or FIFO is written once, whole records in order; what a failure leaves has been read.
append=True continues an existing file after its last whole record: `records` says how many it has.

Times: stamp_ns of the data, receive_ns when it came (default: the stamp); the order of the calls is that of the
replay. Poses: (4, 4), or 7 numbers x y z qx qy qz qw. ValueError: a number that ndtd would refuse.
)")
        .def(nb::init<nb::handle, bool>(), "path"_a, "append"_a = false,
             nb::sig("def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None"))
        .def(
            "scan",
            [](BagWriter &self, Stamp stamp_ns, nb::handle points, nb::handle intensity, nb::handle time_s,
               uint64_t seq, const std::string &frame_id, std::optional<int64_t> receive_ns) {
                self.scan(stamp_ns.ns("scan(stamp_ns, points)"), points, intensity, time_s, seq, frame_id,
                          receive_ns);
            },
            "stamp_ns"_a, "points"_a.none(), nb::kw_only(), "intensity"_a = nb::none(), "time_s"_a = nb::none(),
            "seq"_a = 0, "frame_id"_a = "lidar", "receive_ns"_a = nb::none(),
            "points: (N, 3) in the sensor frame [m]; time_s: (N,) relative to the stamp [s].")
        .def(
            "odometry",
            [](BagWriter &self, Stamp stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance,
               const std::string &frame_id, std::optional<int64_t> receive_ns) {
                self.pose(NDT_MESSAGE_ODOMETRY, stamp_ns.ns("odometry(stamp_ns, pose=, twist=)"), pose, twist,
                          covariance, frame_id, receive_ns);
            },
            "stamp_ns"_a, nb::kw_only(), "pose"_a = nb::none(), "twist"_a = nb::none(), "covariance"_a = nb::none(),
            "frame_id"_a = "odom", "receive_ns"_a = nb::none(),
            "T_odom_base, or the twist vx vy vz wx wy wz of the base in the base frame, or both.")
        .def(
            "initial_pose",
            [](BagWriter &self, Stamp stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance,
               std::optional<int64_t> receive_ns) {
                self.pose(NDT_MESSAGE_INITIAL_POSE, stamp_ns.ns("initial_pose(stamp_ns, pose)"), pose, twist,
                          covariance, "map", receive_ns);
            },
            "stamp_ns"_a, "pose"_a, nb::kw_only(), "twist"_a = nb::none(), "covariance"_a = nb::none(),
            "receive_ns"_a = nb::none(), "T_map_base.")
        .def(
            "truth",
            [](BagWriter &self, Stamp stamp_ns, nb::handle pose, std::optional<int64_t> receive_ns) {
                self.pose(NDT_MESSAGE_TRUTH, stamp_ns.ns("truth(stamp_ns, pose)"), pose, nb::none(), nb::none(),
                          "map", receive_ns);
            },
            "stamp_ns"_a, "pose"_a, nb::kw_only(), "receive_ns"_a = nb::none(), "T_map_base: ground truth.")
        .def(
            "imu",
            [](BagWriter &self, Stamp stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
               const std::string &frame_id, std::optional<int64_t> receive_ns) {
                self.imu(stamp_ns.ns("imu(stamp_ns, angular_velocity)"), angular_velocity, linear_acceleration,
                         frame_id, receive_ns);
            },
            "stamp_ns"_a, "angular_velocity"_a, "linear_acceleration"_a = nb::none(), nb::kw_only(),
            "frame_id"_a = "imu", "receive_ns"_a = nb::none(), "[rad/s], [m/s^2]: +9.81 on z at rest.")
        .def(
            "gnss",
            [](BagWriter &self, Stamp stamp_ns, nb::handle position, nb::handle deviation,
               const std::string &antenna, std::optional<int64_t> receive_ns) {
                self.gnss(stamp_ns.ns("gnss(stamp_ns, position)"), position, deviation, antenna, receive_ns);
            },
            "stamp_ns"_a, "position"_a, "deviation"_a = nb::none(), nb::kw_only(), "antenna"_a = "",
            "receive_ns"_a = nb::none(),
            "x y z of the antenna in the map frame [m], standard deviations [m]; antenna: the frame of its "
            "transform.")
        .def(
            "transform",
            [](BagWriter &self, Stamp stamp_ns, const std::string &frame_id, nb::handle pose,
               std::optional<int64_t> receive_ns) {
                self.pose(NDT_MESSAGE_TRANSFORM, stamp_ns.ns("transform(stamp_ns, frame_id, pose)"), pose,
                          nb::none(), nb::none(), frame_id, receive_ns);
            },
            "stamp_ns"_a, "frame_id"_a, "pose"_a, nb::kw_only(), "receive_ns"_a = nb::none(),
            "T_base_frame of a sensor: where it is from the next scan on, unless the configuration says it.")
        .def_prop_ro("records", &BagWriter::records, "Whole records in the bag, with those that append=True found.")
        .def_prop_ro("bytes", &BagWriter::bytes, "Bytes of the bag so far.")
        .def("close", &BagWriter::close, "Flushes to the disk; later calls write nothing.")
        .def("discard", &BagWriter::discard, "Removes what was written.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __enter__(self) -> BagWriter"))
        .def(
            "__exit__",
            [](BagWriter &self, nb::handle type, nb::handle, nb::handle) {
                type.is_none() ? self.close() : self.discard();
            },
            "type"_a.none(), "value"_a.none(), "traceback"_a.none());
    nb::class_<Record>(module, "Record", "One message of a bag.")
        .def_ro("type", &Record::type, "'scan', 'odometry', 'imu', 'gnss', 'initial_pose', 'truth' ...")
        .def_ro("receive_ns", &Record::receive_ns, "When the message came [ns].")
        .def_ro("payload", &Record::payload, "The message as it was received (msgpack).")
        .def("__repr__", [](const Record &self) {
            return "ndtd.Record(" + self.type + ", " + std::to_string(self.receive_ns) + " ns, " +
                   std::to_string(self.payload.size()) + " bytes)";
        });
    nb::class_<BagReader>(module, "BagReader", "Iterates over the records of a bag; `-` is standard input.")
        .def(nb::init<nb::handle>(), "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
        .def(
            "__iter__", [](nb::handle self) { return nb::borrow(self); },
            nb::sig("def __iter__(self) -> BagReader"))
        .def("__next__", &BagReader::next);
    module.def("decode_scan", &decode_scan, "payload"_a,
               nb::sig("def decode_scan(payload: bytes) -> dict[str, typing.Any]"),
               "The payload of a scan: dict of seq, stamp_ns, frame_id, points (N, 3), origin (3,), intensity and "
               "time_s (N,) or None.");
}

} // namespace ndt_python
