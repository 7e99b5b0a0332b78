#include "kernel_scores.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ndt/pose.h"
#include "ndt/random.h"

static void pose_of(const double p[6], struct ndt_score_pose *out)
{
    const struct ndt_pose pose = ndt_pose_from_euler(p);
    ndt_pose_rotation(&pose, out->R);
    memcpy(out->t_m, p, sizeof(out->t_m));
}

enum ndt_status kernel_scores_expect(struct kernel_scores *out, const struct kernel_inputs *inputs,
                                     enum ndt_neighbours neighbours, struct ndt_error *err)
{
    struct ndt_random random = ndt_random_stream(inputs->scan.cloud.count, 5, 0);
    size_t done;
    for (int i = 0; i < KERNEL_SCORE_POSES; i++) {
        double p[6];
        memcpy(p, inputs->p, sizeof(p));
        for (int k = 0; k < 6 && i > 0; k++)
            p[k] += ndt_random_between(&random, -1, 1) * (k < 3 ? 2 : 0.3);
        pose_of(p, &out->poses[i]);
    }
    out->poses[5].t_m[0] += 1e5;
    out->poses[6].t_m[1] = -1e12;
    out->poses[7].R[4] = 1e30;                           /* points beyond everything, and not finite after it */
    memset(out->poses[8].R, 0, sizeof(out->poses[8].R)); /* all points in one place */
    out->request = (struct ndt_score_request){
        .level = inputs->level, .neighbours = neighbours, .count = KERNEL_SCORE_POSES, .poses = out->poses};
    return ndt_score_poses_plain(inputs->map, &inputs->scan.cloud, &out->request, out->expected, &done, err);
}

/* Compares a score with the evaluation, which is checked against a reference of its own. */
static int is_near(const struct ndt_pose_score *score, const struct ndt_eval *sums, char *why, size_t size)
{
    const double allowed = 1e-12 + 2e-6 * (sums->pairs > 1 ? sums->pairs : 1);
    if (score->matched == (uint32_t)sums->matched && score->pairs == (uint32_t)sums->pairs &&
        fabs(score->score - sums->score) <= allowed && fabs(score->nearest_score - sums->nearest_score) <= allowed)
        return 1;
    snprintf(why, size, "scores %.9g %.9g of %u points and %u pairs, but eval says %.9g %.9g, %.0f, %.0f",
             score->score, score->nearest_score, score->matched, score->pairs, sums->score, sums->nearest_score,
             sums->matched, sums->pairs);
    return 0;
}

int kernel_scores_agree(const struct kernel_scores *scores, const struct kernel_plan *plan,
                        const struct ndt_eval *sums, char *why, size_t size)
{
    struct ndt_pose_score out[KERNEL_SCORE_POSES + 1];
    struct ndt_error err = {""};
    size_t done = 0;
    memset(out, 0xa5, sizeof(out));
    if (plan->ops->score_poses(plan->backend, &scores->request, out, &done, &err) != NDT_OK) {
        snprintf(why, size, "score_poses: %.180s", err.text);
        return 0;
    }
    for (size_t i = 0; i < KERNEL_SCORE_POSES; i++) {
        const struct ndt_pose_score *a = &out[i], *b = &scores->expected[i];
        if (memcmp(a, b, sizeof(*a)) == 0)
            continue;
        snprintf(why, size, "scores of pose %zu are %.17g %.17g %u %u, those of the plain C %.17g %.17g %u %u", i,
                 a->score, a->nearest_score, a->matched, a->pairs, b->score, b->nearest_score, b->matched,
                 b->pairs);
        return 0;
    }
    snprintf(why, size, "score_poses wrote behind the results, or miscounts");
    if (done != KERNEL_SCORE_POSES || ((const unsigned char *)&out[KERNEL_SCORE_POSES])[0] != 0xa5)
        return 0;
    return plan->ops != &ndt_cpu_backend || is_near(&out[0], sums, why, size);
}
