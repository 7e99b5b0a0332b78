/** @file
 * @brief A recorded drive through the whole localiser: odometry, IMU and scans in, poses out, as TUM.
 *   example_session MAP BAG [NAME=VALUE...]     NAME=VALUE: an option, see ndtd --help-options
 * Prints the poses that `ndtd --replay BAG --map MAP --out FILE` writes, bit for bit. Needs libndtd. In a vehicle
 * the messages come from the sensors: ndtd_session_scan, _pose, _imu and _gnss take them in place of a bag's bytes.
 * Exit codes: 0 done, 2 usage, 3 failed. */
#include <stdio.h>
#include <string.h>

#include <ndt_io/bag.h>
#include <ndt_io/trajectory.h>
#include <ndtd/session.h>

static enum ndt_status set_options(struct ndtd_session *session, int count, char **options, struct ndt_error *err)
{
    enum ndt_status status = NDT_OK;
    int i;
    for (i = 0; status == NDT_OK && i < count; i++) {
        char *value = strchr(options[i], '=');
        if (!value)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is not NAME=VALUE", options[i]);
        *value = '\0';
        status = ndtd_session_set_option(session, options[i], value + 1, err);
    }
    return status;
}

/* Every message of the bag in its order; a pose for every scan that has one to trust. */
static enum ndt_status replay(struct ndtd_session *session, struct ndt_bag_reader *bag, struct ndt_error *err)
{
    struct ndt_result_message result;
    struct ndt_bag_record record;
    enum ndt_status status;
    while ((status = ndt_bag_next(bag, &record, err)) == NDT_OK) {
        int is_scan;
        status = ndtd_session_message(session, record.payload, record.length, &is_scan, &result, err);
        if (status != NDT_OK)
            return status;
        if (is_scan && ndtd_session_is_pose_trusted(session))
            ndt_trajectory_write_pose(stdout, NDT_TUM, result.stamp_ns, &result.result.T_map_sensor);
    }
    return status == NDT_END ? NDT_OK : status;
}

int main(int argc, char **argv)
{
    struct ndtd_session *session = NULL;
    struct ndt_bag_reader *bag = NULL;
    struct ndt_error err;
    enum ndt_status status;
    if (argc < 3) {
        fprintf(stderr, "usage: example_session MAP BAG [NAME=VALUE...]\n");
        return 2;
    }
    status = ndtd_session_create(&session, &err);
    if (status == NDT_OK)
        status = ndtd_session_set_option(session, "map.path", argv[1], &err);
    if (status == NDT_OK)
        status = set_options(session, argc - 3, argv + 3, &err);
    if (status == NDT_OK)
        status = ndtd_session_start(session, NULL, &err);
    if (status == NDT_OK)
        status = ndt_bag_open(&bag, argv[2], &err);
    if (status == NDT_OK)
        status = replay(session, bag, &err);
    if (status != NDT_OK)
        fprintf(stderr, "example_session: %s\n", err.text);
    if (bag)
        ndt_bag_close(bag);
    ndtd_session_destroy(session);
    return status == NDT_OK ? 0 : status == NDT_ERR_ARGUMENT ? 2 : 3;
}
