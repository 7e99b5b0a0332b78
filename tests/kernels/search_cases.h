/** @file
 * @brief A street, a scan in it, and searches for the place of the scan whose results are compared. */
#ifndef SEARCH_CASES_H
#define SEARCH_CASES_H

#include "ndt_search/search.h"

/** A map with its field, and a scan. */
struct search_case {
    struct ndt_map *map;
    struct ndt_field *field;
    struct ndt_cloud scan;
    struct ndt_pose truth;
};
/** has_ground: 0: the scan shows points above the ground only. Returns 0 and reports it where it fails. */
int search_case_make(struct search_case *out, double length_m, int has_ground);
void search_case_free(struct search_case *one);

/** A search with the field of the case; engine: or NULL. NULL: a failure, which is reported. */
struct ndt_search *search_case_open(const struct search_case *one, const struct ndt_dense_ops *engine,
                                    const char *isa);
/** Runs a tier; NDT_SEARCH_REGION: around the truth, with a heading. blocks: that are refined, 0: as many as by
 * default. Returns 0 and reports it where it fails. */
int search_case_run(const struct search_case *one, struct ndt_search *search, enum ndt_search_tier tier,
                    uint32_t blocks, struct ndt_search_result *out);
/** Whether all but times are the same bits; `text`: what differs. */
int search_case_same(const struct ndt_search_result *a, const struct ndt_search_result *b, char *text, size_t size);
/** Whether both have the same places, within the tolerance between backends: a score jumps where a point changes
 * its voxel (docs/gpu.md, Differences), so that a few end centimetres apart. */
int search_case_near(const struct ndt_search_result *a, const struct ndt_search_result *b, char *text, size_t size);

#endif
