/** @file
 * @brief example_session.c in C++: a recorded drive through ndtd::Localizer, poses out, as TUM.
 *   example_localizer MAP BAG [NAME=VALUE...]     NAME=VALUE: an option, see ndtd --help-options
 * Scans are decoded here and given as points, as a driver of a sensor does; all else goes in as it was recorded.
 * Exit codes: 0 done, 2 usage, 3 failed. */
#include <cstdio>
#include <string>

#include <ndt_io/bag.h>
#include <ndt_io/trajectory.h>
#include <ndtd/localizer.hpp>

namespace
{

void check(ndt_status status, const ndt_error &error)
{
    if (status != NDT_OK && status != NDT_END)
        throw ndtd::Error(status, error);
}

class Bag
{
  public:
    explicit Bag(const char *path)
    {
        ndt_error error;
        check(ndt_bag_open(&reader_, path, &error), error);
    }
    ~Bag() { ndt_bag_close(reader_); }
    Bag(const Bag &) = delete;
    bool next(ndt_bag_record &record)
    {
        ndt_error error;
        const ndt_status status = ndt_bag_next(reader_, &record, &error);
        check(status, error);
        return status == NDT_OK;
    }

  private:
    ndt_bag_reader *reader_ = nullptr;
};

void replay(ndtd::Localizer &localizer, Bag &bag)
{
    ndtd::Cloud points;
    ndt_bag_record record;
    while (bag.next(record)) {
        ndt_error error;
        ndt_scan_message header;
        if (record.type != NDT_MESSAGE_SCAN) {
            localizer.message(record.payload, record.length);
            continue;
        }
        check(ndt_scan_decode(record.payload, record.length, &header, points.get(), &error), error);
        const ndt_result_message result = localizer.scan(header, points);
        if (localizer.is_pose_trusted())
            ndt_trajectory_write_pose(stdout, NDT_TUM, result.stamp_ns, &result.result.T_map_sensor);
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fprintf(stderr, "usage: example_localizer MAP BAG [NAME=VALUE...]\n");
        return 2;
    }
    try {
        ndtd::Localizer localizer;
        localizer.set_option("map.path", argv[1]);
        for (int i = 3; i < argc; i++) {
            const std::string option = argv[i];
            const std::size_t equals = option.find('=');
            localizer.set_option(option.substr(0, equals),
                                 equals == std::string::npos ? "" : option.substr(equals + 1));
        }
        localizer.start();
        Bag bag(argv[2]);
        replay(localizer, bag);
    } catch (const ndtd::Error &error) {
        std::fprintf(stderr, "example_localizer: %s\n", error.what());
        return error.status() == NDT_ERR_ARGUMENT ? 2 : 3;
    }
    return 0;
}
