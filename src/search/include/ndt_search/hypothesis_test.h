/** @file
 * @brief Hypothesis test of a pose: whether it may be accepted, by the searches from all views of the sensor so
 * far.
 *
 *     ndt_hypothesis_features_of(&result, i, &features); // candidate i of a search over every possible pose
 *     ndt_hypothesis_test_add(&evidence, &features, &T_map_sensor);
 *     ndt_hypothesis_test_accepts(&evidence, 1); // and ndt_hypothesis_test_probability(&evidence)
 *
 * A search has a best candidate in a wrong world as well, whose fit depends on sensor and map. The test therefore
 * compares candidates of one search: two shares of the same n points, those that fit at the candidate (p) and those
 * at the best other one (r), differ by
 *
 *     significance z = (p - r) / sqrt((p (1 - p) + r (1 - r) + 1 / (4 n)) / n)
 *
 * standard errors. A wrong best candidate is the largest of many values that are alike: z stays below 4. Few points
 * make z small; perceptual aliasing (a copied place, a corridor) makes z 0, for ever.
 *
 * Searches from one view are not independent, however many there are: their mean counts. A view is new after
 * NDT_HYPOTHESIS_STEP_M of motion or, with a narrow view, a turn of NDT_HYPOTHESIS_TURN_DEG. Views together have
 * the significance
 *
 *     Z = (w1 z1 + .. + wV zV) / sqrt(w1^2 + .. + wV^2)
 *
 * with w = 1 for the present view, 0.8 for the previous one, then 0.64, and so on.
 *
 * The memory fades: the evidence of a few unlucky scans is forgotten, and so is that of a long aisle that looked
 * like another.
 *
 *     probability = 1 / (1 + exp(-(a + b min(Z, 8) + [narrow] c u)))
 *
 * with u the share of points that have nothing near them in the map (1 - match_ratio; means fade as Z does). The
 * numbers are fitted to searches in right and wrong worlds. In a wrong world a wide view fits nowhere. A narrow
 * view, which shows less than half of the circle, may look at one object (a facade, an aisle) that stands
 * elsewhere, too, and the search may lose the right place among many that look alike. Guards for narrow views are
 * therefore: at least NDT_HYPOTHESIS_VIEWS views, at least NDT_HYPOTHESIS_POINTS points, and a map that explains
 * the points. One view alone may meet the same room in a wrong map: it needs a higher probability.
 *
 * Only searches over every possible pose count: the whole map, or everything within reach of an accepted pose. A
 * hypothesis that such a search does not find is contradicted. Searches with less than NDT_HYPOTHESIS_LEAST points
 * do not count. Pure functions without allocation. */
#ifndef NDT_SEARCH_HYPOTHESIS_TEST_H
#define NDT_SEARCH_HYPOTHESIS_TEST_H

#include "ndt/pose.h"
#include "ndt_search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NDT_HYPOTHESIS_STEP_M      1.0   /**< motion to a new view */
#define NDT_HYPOTHESIS_TURN_DEG    25.0  /**< turn to a new view, where the view is narrow */
#define NDT_HYPOTHESIS_LEAST       30    /**< least points of a search that counts */
#define NDT_HYPOTHESIS_NARROW      0.5   /**< part of the circle below which a view is narrow */
#define NDT_HYPOTHESIS_VIEWS       3     /**< narrow: least number of views */
#define NDT_HYPOTHESIS_POINTS      100   /**< narrow: least mean number of points */
#define NDT_HYPOTHESIS_UNEXPLAINED 0.03  /**< narrow: largest mean share of points that the map does not explain */
#define NDT_HYPOTHESIS_ACCEPTED    0.99  /**< least probability of an accepted pose */
#define NDT_HYPOTHESIS_AT_ONCE     0.999 /**< the same where one view is all there is */

/** Features of one pose in the result of one search. */
struct ndt_hypothesis_features {
    double inliers;       /**< share of the points that fit, see struct ndt_search_candidate */
    double rival_inliers; /**< largest share of the other candidates; 0: there is none */
    uint32_t points;      /**< number of points of both shares */
    double match_ratio;   /**< see struct ndt_scores */
    double sectors;       /**< share of the circle that is seen, see struct ndt_search_view */
    int is_found;         /**< 0: the search did not find the pose */
};

/** Writes the features of candidate `i` of a result; i >= result->count: of a pose that the search has not found.
 */
void ndt_hypothesis_features_of(const struct ndt_search_result *result, uint32_t i,
                                struct ndt_hypothesis_features *out);
/** The significance z of one search; negative where another candidate fits better. */
double ndt_hypothesis_test_difference(const struct ndt_hypothesis_features *features);

/** Evidence of the searches for one pose; all zero: none was added. */
struct ndt_hypothesis_test {
    uint32_t searches; /**< searches that were added */
    uint32_t views;    /**< views from which the pose was found */
    int is_found;      /**< the last search found the pose */
    /** The present view: sensor pose at its beginning, number of searches, sum of their z. */
    struct ndt_pose T_view;
    uint32_t view_searches;
    double view_sum;
    int is_view_found;
    /** The previous views: sums of w z and w^2. */
    double sum, weight2;
    /** Sums over searches that found the pose: of w, and of w times u, share of the circle, and points. */
    double weight, unexplained_sum, sectors_sum, points_sum;
};

/** Adds the evidence of a search; T_map_sensor: the sensor pose according to the hypothesis. */
void ndt_hypothesis_test_add(struct ndt_hypothesis_test *test, const struct ndt_hypothesis_features *features,
                             const struct ndt_pose *T_map_sensor);
/** The significance Z, the number of standard errors by which the pose stands above all others; 0 without a search.
 */
double ndt_hypothesis_test_significance(const struct ndt_hypothesis_test *test);
/** The probability that the pose is right, in [0, 1]. */
double ndt_hypothesis_test_probability(const struct ndt_hypothesis_test *test);
/** Whether the pose is accepted: probable enough, and found by the last search. is_guarded: the guards for narrow
 * views have to hold, too; 0: the searched poses certainly include the right one, because they lie within reach of
 * a pose that was right a moment ago. */
int ndt_hypothesis_test_accepts(const struct ndt_hypothesis_test *test, int is_guarded);

#ifdef __cplusplus
}
#endif
#endif
