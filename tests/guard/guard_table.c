#include "guard_work.h"

/* One row per case. AVX-512 is not here: valgrind does not run it. */
static const struct guard_case cases[] = {
#define EVAL .prepare = guard_eval_prepare, .run = guard_eval_run
    {.name = "eval_radius_4m_avx2", EVAL, .isa = "avx2", .leaf_m = 4, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_1m_avx2", EVAL, .isa = "avx2", .leaf_m = 1, .neighbours = NDT_RADIUS},
    {.name = "eval_direct1_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_DIRECT1},
    {.name = "eval_direct7_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_DIRECT7},
    {.name = "eval_direct27_2m_avx2", EVAL, .isa = "avx2", .leaf_m = 2, .neighbours = NDT_DIRECT27},
    {.name = "eval_radius_4m_baseline", EVAL, .isa = "baseline", .leaf_m = 4, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_RADIUS},
    {.name = "eval_radius_1m_baseline", EVAL, .isa = "baseline", .leaf_m = 1, .neighbours = NDT_RADIUS},
    {.name = "eval_direct1_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_DIRECT1},
    {.name = "eval_direct7_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_DIRECT7},
    {.name = "eval_direct27_2m_baseline", EVAL, .isa = "baseline", .leaf_m = 2, .neighbours = NDT_DIRECT27},
#undef EVAL
    {.name = "align_robust",
     .prepare = guard_align_prepare,
     .run = guard_align_run,
     .isa = "avx2",
     .variant = NDT_ROBUST},
    {.name = "align_autoware",
     .prepare = guard_align_prepare,
     .run = guard_align_run,
     .isa = "avx2",
     .variant = NDT_AUTOWARE},
    {.name = "preprocess_120k", .prepare = guard_preprocess_prepare, .run = guard_preprocess_run},
    {.name = "preprocess_time_120k",
     .prepare = guard_preprocess_prepare,
     .run = guard_preprocess_run,
     .deskew = NDT_DESKEW_TIME},
    {.name = "preprocess_azimuth_120k",
     .prepare = guard_preprocess_prepare,
     .run = guard_preprocess_run,
     .deskew = NDT_DESKEW_AZIMUTH_CW},
    {.name = "preprocess_again", .prepare = guard_again_prepare, .run = guard_again_run, .deskew = NDT_DESKEW_TIME},
    {.name = "scan_decode_120k", .prepare = guard_scan_prepare, .run = guard_scan_decode_run},
    {.name = "bag_checksum_120k", .prepare = guard_scan_prepare, .run = guard_checksum_run},
    {.name = "result_encode", .prepare = guard_result_prepare, .run = guard_result_encode_run},
    {.name = "map_sums_200k", .prepare = guard_sums_prepare, .run = guard_sums_run, .once = 1},
    {.name = "map_build_200k", .prepare = guard_build_prepare, .run = guard_build_run, .once = 1},
};

const struct guard_case *guard_case_at(size_t i)
{
    return i < sizeof(cases) / sizeof(cases[0]) ? &cases[i] : NULL;
}
