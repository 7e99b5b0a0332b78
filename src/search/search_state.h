/* Private to the search: its state and its steps.
 *
 *     scan_upright.c -> scan_view.c -> search_dense.c -> search_refine.c -> search_align.c, in the order of
 * search.c */
#ifndef NDT_SEARCH_STATE_H
#define NDT_SEARCH_STATE_H

#include "ndt/pool.h"
#include "ndt_search/search.h"
#include "scan_view.h"
#include "score.h"

enum {
    NDT_HEADINGS_MAX = 720,
    NDT_BLOCKS_MAX = 4096, /* K1 */
    NDT_PLACES_MAX = 256,  /* K2 */
    NDT_REACH_MAX_M = 60   /* reach of the points of a scan */
};

/* A heading and a height that are tried: the points as offsets. */
struct ndt_hypothesis {
    uint32_t height_view;
    double heading_rad;
};

/* Eight by eight cells at one heading, with the score of the best cell. */
struct ndt_block {
    int32_t layer, y, x; /* first cell */
    uint32_t hypothesis;
    uint8_t score;
};

/* A cell of 0.5 m and a heading. */
struct ndt_place {
    int32_t layer, y, x;
    uint32_t height_view;
    float heading_rad;
    uint8_t score; /* score with the points of the refinement */
};

/* A list that grows. */
struct ndt_list {
    void *items;
    size_t count, capacity; /* number of items in use, and allocated */
};

struct ndt_search {
    struct ndt_search_config config;
    ndt_score_unit *score;
    struct ndt_pool *pool;
    struct ndt_backend *backend;
    struct ndt_aligner *aligner;
    struct ndt_map *map;
    struct ndt_field *field;
    const struct ndt_map_level *fine; /* the level of 1 m, for gaussian_fit */
    struct ndt_upright upright;
    struct ndt_scan_view view;
    struct ndt_dense_engine *engine; /* NULL: the pool scores */
    int has_engine_field;            /* the engine has the field */
    int is_engine_unused;            /* set by ndt_search_use_engine */
    struct ndt_error engine_failure; /* empty: no failure */
    struct ndt_aligner *lent;        /* NULL: `aligner` aligns */
    double lent_until_us;            /* 0: no deadline */
    struct ndt_error lent_failure;   /* empty: no failure */

    /* The current run. */
    const struct ndt_search_params *params;
    struct ndt_search_region region;    /* all zero: the whole map */
    struct ndt_search_control *control; /* may be NULL */
    const struct ndt_search_tier_params *tier;
    int is_any; /* sensors may be over unmeasured ground */
    size_t hypothesis_count;
    struct ndt_hypothesis *hypotheses; /* NDT_HEADINGS_MAX * NDT_SEARCH_HEIGHTS */
    struct ndt_list windows;           /* of struct ndt_dense_window */
    struct ndt_list peaks;             /* bytes: windows x hypotheses x 64 blocks */
    struct ndt_list offsets;           /* int32_t: hypotheses x points */
    struct ndt_list points;            /* struct ndt_score_points, for an engine; also the next list */
    struct ndt_list allowed;           /* uint64_t: windows x rows */
    struct ndt_list peaks_again;       /* peaks of a second pass */
    size_t histogram[NDT_SCORE_POINTS + 1];
    struct ndt_list blocks;         /* of struct ndt_block */
    struct ndt_list entries;        /* struct ndt_place, of all blocks */
    struct ndt_list order;          /* uint32_t: the entries, best score first */
    struct ndt_list places;         /* of struct ndt_place, the best distinct ones */
    struct ndt_list items, results; /* batch of struct ndt_align_item, and its struct ndt_align_result */
    struct ndt_list candidates;     /* of struct ndt_search_candidate, over all tiers */
    uint64_t evaluated_points;      /* sum over all alignments */
    unsigned done, total;           /* items, for the progress */
    unsigned done_from, done_to;    /* range of the step, in percent */
};

/* Makes room for `count` items of `size` bytes and sets count; the contents are lost. */
NDT_MUST_CHECK enum ndt_status ndt_list_resize(struct ndt_list *list, size_t count, size_t size,
                                               struct ndt_error *err);
int ndt_search_is_cancelled(const struct ndt_search *search);
/* Whether the region reaches the height of the upright frame above a ground, which is given relative to the origin
 * of the field: for one of the height views, or for any of them. */
int ndt_search_is_at_height(const struct ndt_search *search, double ground_m, uint32_t height_view);
int ndt_search_reaches_height(const struct ndt_search *search, double ground_m);
/* Sets the percentage that the other thread sees. */
void ndt_search_set_progress(struct ndt_search *search, unsigned percent);
/* Counts one item of the step as done; any thread. */
void ndt_search_advance(struct ndt_search *search);
/* Sets the number of items of the next step, and the percentage at its end. */
void ndt_search_expect(struct ndt_search *search, unsigned items, unsigned percent);

/* Scores the scan and sets search->blocks, best first; *poses: number of poses scored. */
NDT_MUST_CHECK enum ndt_status ndt_search_dense(struct ndt_search *search, uint64_t *poses, struct ndt_error *err);
/* Opens the engine (search_engine.c). After a failure the search goes on without it, for this field or for good. */
void ndt_search_engine_open(struct ndt_search *search);
void ndt_search_engine_close(struct ndt_search *search);
/* Gives the field to the engine; called once the search has it. */
void ndt_search_engine_set_field(struct ndt_search *search);
/* Scores a job on the engine; needs ndt_search_has_engine. 1: the peaks are set, or the search is cancelled; 0: the
 * engine has failed, and the threads score from now on. */
int ndt_search_engine_score(struct ndt_search *search, struct ndt_dense_job *job);

/* Refines the blocks and sets search->places, best first. */
NDT_MUST_CHECK enum ndt_status ndt_search_refine(struct ndt_search *search, struct ndt_error *err);
/* Aligns the places and appends the results to search->candidates. */
NDT_MUST_CHECK enum ndt_status ndt_search_align_places(struct ndt_search *search, struct ndt_error *err);
/* Sorts the candidates, aligns the best again, and fills the result. */
NDT_MUST_CHECK enum ndt_status ndt_search_finish(struct ndt_search *search, struct ndt_search_result *result,
                                                 struct ndt_error *err);

/* Mean and inliers of the first `count` points at a pose (search_gaussian_fit.c). */
void ndt_search_gaussian_fit(const struct ndt_map *map, const struct ndt_map_level *level,
                             const struct ndt_cloud *points, size_t count, const struct ndt_pose *T_map_sensor,
                             double *gaussian_fit, double *inliers);

/* Offset of a point in cells of cell_m, for positions at the centres of cells. */
static inline int32_t ndt_cell_offset(double v_m, double cell_m)
{
    const double cells = v_m / cell_m + 0.5;
    const int32_t whole = (int32_t)cells;
    return whole - (whole > cells);
}

#endif
