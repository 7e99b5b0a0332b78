/** @file
 * @brief Scores of a case at several poses: those of every plan are the bits of the plain C. */
#ifndef KERNEL_SCORES_H
#define KERNEL_SCORES_H

#include "kernel_cases.h"
#include "kernel_plan.h"

enum { KERNEL_SCORE_POSES = 9 };

/* The pose of the case, some around it, some that match nothing; and what the plain C says. */
struct kernel_scores {
    struct ndt_score_request request; /* borrows the poses */
    struct ndt_score_pose poses[KERNEL_SCORE_POSES];
    struct ndt_pose_score expected[KERNEL_SCORE_POSES];
};
NDT_MUST_CHECK enum ndt_status kernel_scores_expect(struct kernel_scores *out, const struct kernel_inputs *inputs,
                                                    enum ndt_neighbours neighbours, struct ndt_error *err);
/* Whether the plan, whose map and scan are set, gives these bits; otherwise writes why. sums: of the plan at the
 * pose of the case. */
int kernel_scores_agree(const struct kernel_scores *scores, const struct kernel_plan *plan,
                        const struct ndt_eval *sums, char *why, size_t size);

#endif
