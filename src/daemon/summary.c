#include "ndtd/summary.h"

#include <string.h>

static const struct ndtd_stage stages[NDTD_STAGE_COUNT] = {
    {"decode", offsetof(struct ndtd_scan_record, decode_us)},
    {"queue", offsetof(struct ndtd_scan_record, queue_us)},
    {"preprocess", offsetof(struct ndtd_scan_record, preprocess_us)},
    {"upload", offsetof(struct ndtd_scan_record, upload_us)},
    {"align", offsetof(struct ndtd_scan_record, align_us)},
    {"publish", offsetof(struct ndtd_scan_record, publish_us)},
};

const struct ndtd_stage *ndtd_stage_at(size_t i)
{
    return i < NDTD_STAGE_COUNT ? &stages[i] : NULL;
}

static enum ndt_status add_matched(struct ndtd_summary *summary, const struct ndtd_scan_record *record,
                                   struct ndt_error *err)
{
    enum ndt_status status = ndtd_samples_add(&summary->align_ms, record->align_us / 1000, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&summary->iterations, record->result.iterations, err);
    if (status == NDT_OK)
        status = ndtd_samples_add(&summary->evaluations, record->result.evaluations, err);
    return status;
}

enum ndt_status ndtd_summary_add(struct ndtd_summary *summary, const struct ndtd_scan_record *record,
                                 struct ndt_error *err)
{
    summary->scans++;
    if ((unsigned)record->result.outcome < NDT_OUTCOME_COUNT)
        summary->outcomes[record->result.outcome]++;
    enum ndt_status status = record->result.evaluations > 0 ? add_matched(summary, record, err) : NDT_OK;
    for (size_t i = 0; i < NDTD_STAGE_COUNT && status == NDT_OK; i++) {
        double us;
        memcpy(&us, (const char *)record + stages[i].offset, sizeof(us));
        status = ndtd_samples_add(&summary->stage_us[i], us, err);
    }
    return status;
}

void ndtd_summary_free(struct ndtd_summary *summary)
{
    ndtd_samples_free(&summary->align_ms);
    ndtd_samples_free(&summary->iterations);
    ndtd_samples_free(&summary->evaluations);
    for (size_t i = 0; i < NDTD_STAGE_COUNT; i++)
        ndtd_samples_free(&summary->stage_us[i]);
    ndtd_errors_free(&summary->errors);
}
