/* Private to the core: a few hundred points on their way through the preprocessor, small enough to stay in the
 * first-level cache between its steps. */
#ifndef NDT_POINT_BLOCK_H
#define NDT_POINT_BLOCK_H

#include <stddef.h>

enum { NDT_BLOCK_POINTS = 256, NDT_BLOCK_PAD = 16 };

/* Four arrays of NDT_BLOCK_POINTS + NDT_BLOCK_PAD each, borrowed; what is behind `count` holds anything. */
struct ndt_point_block {
    size_t count;
    float *x_m, *y_m, *z_m;
    float *time_s;
};

#endif
