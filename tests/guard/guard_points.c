/* From the bytes of a scan to the points that are matched, and the result's way out. */
#include <stdio.h>

#include "guard_work.h"
#include "ndt_io/bag.h"

enum { TURN_POINTS = 120000, AGAIN_TIMES = 8, RESULTS = 100 };

enum ndt_status guard_preprocess_prepare(struct guard_work *work, struct ndt_error *err)
{
    ndt_preprocess_params_default(&work->preprocess);
    work->preprocess.deskew = work->item->deskew;
    enum ndt_status status = guard_lidar_turn(work, err);
    return status == NDT_OK ? ndt_preprocessor_create(&work->preprocessor, err) : status;
}

enum ndt_status guard_preprocess_run(struct guard_work *work, struct ndt_error *err)
{
    const struct ndt_cloud *points;
    double reference_s;
    enum ndt_status status = ndt_preprocess(work->preprocessor, &work->preprocess, &work->scan, 1, &work->twist,
                                            &points, &reference_s, err);
    if (status == NDT_OK && points->count != work->preprocess.sample_count)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu points are left, not %u", points->count,
                        work->preprocess.sample_count);
    return status;
}

enum ndt_status guard_again_prepare(struct guard_work *work, struct ndt_error *err)
{
    enum ndt_status status = guard_preprocess_prepare(work, err);
    return status == NDT_OK ? guard_preprocess_run(work, err) : status;
}

enum ndt_status guard_again_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_twist twist = work->twist;
    for (int i = 0; i < AGAIN_TIMES; i++) {
        const struct ndt_cloud *points;
        twist.v_mps[0] += 0.1;
        enum ndt_status status = ndt_preprocess_again(work->preprocessor, &twist, &points, err);
        if (status != NDT_OK)
            return status;
        if (points->count != work->preprocess.sample_count)
            return ndt_fail(err, NDT_ERR_LIMIT, "the second pass left %zu points", points->count);
    }
    return NDT_OK;
}

enum ndt_status guard_scan_prepare(struct guard_work *work, struct ndt_error *err)
{
    const struct ndt_scan_message message = {
        .seq = 7, .stamp_ns = INT64_C(1700000000000000000), .frame_id = "lidar"};
    enum ndt_status status = guard_lidar_turn(work, err);
    return status == NDT_OK ? ndt_scan_encode(&work->frame, &message, &work->scan, err) : status;
}

enum ndt_status guard_scan_decode_run(struct guard_work *work, struct ndt_error *err)
{
    struct ndt_scan_message message;
    enum ndt_status status = ndt_scan_decode(work->frame.data, work->frame.size, &message, &work->scan, err);
    if (status == NDT_OK && work->scan.count != TURN_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "%zu points were decoded", work->scan.count);
    return status;
}

enum ndt_status guard_checksum_run(struct guard_work *work, struct ndt_error *err)
{
    const uint32_t whole = ndt_crc32c(0, work->frame.data, work->frame.size);
    return whole != 0 ? NDT_OK : ndt_fail(err, NDT_ERR_LIMIT, "the checksum is 0");
}

enum ndt_status guard_result_prepare(struct guard_work *work, struct ndt_error *err)
{
    (void)err;
    struct ndt_result_message *message = &work->result;
    *message = (struct ndt_result_message){
        .seq = 7, .stamp_ns = INT64_C(1700000000000000000), .map_id = 1, .config_hash = 2, .decode_us = 100.5};
    snprintf(message->frame_id, sizeof(message->frame_id), "map");
    message->result.outcome = NDT_CONVERGED;
    message->result.T_map_sensor = ndt_pose_identity();
    message->result.has_covariance = 1;
    for (int i = 0; i < 36; i++)
        message->result.covariance[i] = i % 7 == 0 ? 1e-4 : 1e-6;
    message->result.scores = (struct ndt_scores){5.0, 4.0, 0.7, 0.9, 0.8};
    message->result.iterations = 6;
    message->result.evaluations = 9;
    return NDT_OK;
}

enum ndt_status guard_result_encode_run(struct guard_work *work, struct ndt_error *err)
{
    for (int i = 0; i < RESULTS; i++) {
        work->result.seq++;
        enum ndt_status status = ndt_result_encode(&work->frame, &work->result, err);
        if (status != NDT_OK)
            return status;
        if (work->frame.size < 36 * sizeof(double))
            return ndt_fail(err, NDT_ERR_LIMIT, "a result of %zu bytes", work->frame.size);
    }
    return NDT_OK;
}
