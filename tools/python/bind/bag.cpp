// ndtd.BagWriter and ndtd.BagReader
#include "encoder.hpp"
#include "ndt_io/bag.h"

namespace ndt_python
{

using namespace nb::literals;

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
    }
    ~BagWriter() { ndt_bag_discard(writer_); }
    BagWriter(const BagWriter &) = delete;
    BagWriter &operator=(const BagWriter &) = delete;

    // Encodes with a call of the encoder, and writes the message.
    template <class Encode> void write(ndt_message_type type, int64_t receive_ns, const Encode &encode)
    {
        const Turn turn(lock_);
        check_open();
        encode(encoder_);
        write_encoded(type, receive_ns);
    }
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
    void write_encoded(ndt_message_type type, int64_t receive_ns);
    void check_open() const;

    std::mutex lock_; // a write releases the interpreter

    ndt_bag_writer *writer_ = nullptr;
    Encoder encoder_;
};

void BagWriter::check_open() const
{
    if (!writer_)
        throw nb::value_error("the bag is closed");
}

void BagWriter::write_encoded(ndt_message_type type, int64_t receive_ns)
{
    ndt_error error;
    ndt_bag_record record = {};
    record.type = type;
    record.length = static_cast<uint32_t>(encoder_.frame().size);
    record.receive_time_ns = receive_ns;
    record.payload = encoder_.frame().data;
    ndt_status status;
    {
        nb::gil_scoped_release release; // a pipe may wait for its reader
        status = ndt_bag_write(writer_, &record, &error);
    }
    check(status, error);
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
                const int64_t ns = stamp_ns.ns("scan(stamp_ns, points)");
                self.write(NDT_MESSAGE_SCAN, receive_ns.value_or(ns),
                           [&](Encoder &encoder) { encoder.scan(ns, points, intensity, time_s, seq, frame_id); });
            },
            "stamp_ns"_a, "points"_a.none(), nb::kw_only(), "intensity"_a = nb::none(), "time_s"_a = nb::none(),
            "seq"_a = 0, "frame_id"_a = "lidar", "receive_ns"_a = nb::none(),
            "points: (N, 3) in the sensor frame [m]; time_s: (N,) relative to the stamp [s].")
        .def(
            "odometry",
            [](BagWriter &self, Stamp stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance,
               const std::string &frame_id, std::optional<int64_t> receive_ns) {
                const int64_t ns = stamp_ns.ns("odometry(stamp_ns, pose=, twist=)");
                self.write(NDT_MESSAGE_ODOMETRY, receive_ns.value_or(ns), [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_ODOMETRY, ns, pose, twist, covariance, frame_id);
                });
            },
            "stamp_ns"_a, nb::kw_only(), "pose"_a = nb::none(), "twist"_a = nb::none(), "covariance"_a = nb::none(),
            "frame_id"_a = "odom", "receive_ns"_a = nb::none(),
            "T_odom_base, or the twist vx vy vz wx wy wz of the base in the base frame, or both.")
        .def(
            "initial_pose",
            [](BagWriter &self, Stamp stamp_ns, nb::handle pose, nb::handle twist, nb::handle covariance,
               std::optional<int64_t> receive_ns) {
                const int64_t ns = stamp_ns.ns("initial_pose(stamp_ns, pose)");
                self.write(NDT_MESSAGE_INITIAL_POSE, receive_ns.value_or(ns), [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_INITIAL_POSE, ns, pose, twist, covariance, "map");
                });
            },
            "stamp_ns"_a, "pose"_a, nb::kw_only(), "twist"_a = nb::none(), "covariance"_a = nb::none(),
            "receive_ns"_a = nb::none(), "T_map_base.")
        .def(
            "truth",
            [](BagWriter &self, Stamp stamp_ns, nb::handle pose, std::optional<int64_t> receive_ns) {
                const int64_t ns = stamp_ns.ns("truth(stamp_ns, pose)");
                self.write(NDT_MESSAGE_TRUTH, receive_ns.value_or(ns), [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_TRUTH, ns, pose, nb::none(), nb::none(), "map");
                });
            },
            "stamp_ns"_a, "pose"_a, nb::kw_only(), "receive_ns"_a = nb::none(), "T_map_base: ground truth.")
        .def(
            "imu",
            [](BagWriter &self, Stamp stamp_ns, nb::handle angular_velocity, nb::handle linear_acceleration,
               const std::string &frame_id, std::optional<int64_t> receive_ns) {
                const int64_t ns = stamp_ns.ns("imu(stamp_ns, angular_velocity)");
                self.write(NDT_MESSAGE_IMU, receive_ns.value_or(ns), [&](Encoder &encoder) {
                    encoder.imu(ns, angular_velocity, linear_acceleration, frame_id);
                });
            },
            "stamp_ns"_a, "angular_velocity"_a, "linear_acceleration"_a = nb::none(), nb::kw_only(),
            "frame_id"_a = "imu", "receive_ns"_a = nb::none(), "[rad/s], [m/s^2]: +9.81 on z at rest.")
        .def(
            "gnss",
            [](BagWriter &self, Stamp stamp_ns, nb::handle position, nb::handle deviation,
               const std::string &antenna, std::optional<int64_t> receive_ns) {
                const int64_t ns = stamp_ns.ns("gnss(stamp_ns, position)");
                self.write(NDT_MESSAGE_GNSS, receive_ns.value_or(ns),
                           [&](Encoder &encoder) { encoder.gnss(ns, position, deviation, antenna); });
            },
            "stamp_ns"_a, "position"_a, "deviation"_a = nb::none(), nb::kw_only(), "antenna"_a = "",
            "receive_ns"_a = nb::none(),
            "x y z of the antenna in the map frame [m], standard deviations [m]; antenna: the frame of its "
            "transform.")
        .def(
            "transform",
            [](BagWriter &self, Stamp stamp_ns, const std::string &frame_id, nb::handle pose,
               std::optional<int64_t> receive_ns) {
                const int64_t ns = stamp_ns.ns("transform(stamp_ns, frame_id, pose)");
                self.write(NDT_MESSAGE_TRANSFORM, receive_ns.value_or(ns), [&](Encoder &encoder) {
                    encoder.pose(NDT_MESSAGE_TRANSFORM, ns, pose, nb::none(), nb::none(), frame_id);
                });
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
