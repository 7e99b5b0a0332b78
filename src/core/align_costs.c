/* What the parts of an alignment take: expected, and corrected by what was seen. For deadlines only. */
#include <math.h>
#include <string.h>

#include "align_state.h"

void ndt_remember_cost(double *cost_us, double seen_us)
{
    *cost_us = *cost_us > 0 ? *cost_us + 0.2 * (fmin(seen_us, 3 * *cost_us) - *cost_us) : seen_us;
}

void ndt_aligner_set_costs(struct ndt_aligner *aligner, const struct ndt_align_costs *costs)
{
    aligner->costs = *costs;
    aligner->cost_points = 0;
    memset(aligner->level_us, 0, sizeof(aligner->level_us));
    aligner->assess_us = 0;
}

void ndt_aligner_costs(const struct ndt_aligner *aligner, struct ndt_align_costs *out)
{
    *out = (struct ndt_align_costs){.assess = {.fixed_us = aligner->assess_us}};
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        out->levels[i].fixed_us = aligner->level_us[i];
}

/* What was seen with the scans before holds for this one in proportion; nothing was: what is expected. */
static void expect(double *seen_us, const struct ndt_cost *cost, size_t before, size_t points)
{
    const double expected_us = cost->fixed_us + cost->point_us * (double)points;
    const double expected_before_us = cost->fixed_us + cost->point_us * (double)before;
    if (!(*seen_us > 0))
        *seen_us = expected_us;
    else if (before > 0 && expected_us > 0 && expected_before_us > 0)
        *seen_us *= expected_us / expected_before_us;
}

void ndt_expect_costs(struct ndt_aligner *aligner, size_t points)
{
    const size_t before = aligner->cost_points;
    aligner->cost_points = points;
    if (before == points)
        return;
    for (int i = 0; i < NDT_MAX_LEVELS; i++)
        expect(&aligner->level_us[i], &aligner->costs.levels[i], before, points);
    expect(&aligner->assess_us, &aligner->costs.assess, before, points);
}
