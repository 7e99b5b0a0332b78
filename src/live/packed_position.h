/* Private: positions as one atomic word. */
#ifndef NDTD_PACKED_POSITION_H
#define NDTD_PACKED_POSITION_H

#include <math.h>
#include <stdint.h>

/* A position in whole centimetres, +-21 000 km: precise enough to choose tiles, and one atomic word. */
#define NDTD_UNKNOWN_POSITION ((uint64_t)0x80000000u << 32) /* position unknown */
#define NDTD_NOT_FOLLOWING                                                                                         \
    ((uint64_t)0x80000000u << 32 | 1) /* for the centre only: the map does not depend on the position */

static inline int ndtd_pack_position(const double position_m[2], uint64_t *out)
{
    const double limit_m = 2.0e7;
    if (!(fabs(position_m[0]) < limit_m && fabs(position_m[1]) < limit_m))
        return 0;
    *out = (uint64_t)(uint32_t)(int32_t)lround(100 * position_m[0]) << 32 |
           (uint32_t)(int32_t)lround(100 * position_m[1]);
    return 1;
}

static inline void ndtd_unpack_position(uint64_t packed, double position_m[2])
{
    position_m[0] = 0.01 * (int32_t)(uint32_t)(packed >> 32);
    position_m[1] = 0.01 * (int32_t)(uint32_t)packed;
}

static inline int ndtd_is_far(uint64_t position, uint64_t centre, double distance_m)
{
    double a_m[2], b_m[2];
    if (position == NDTD_UNKNOWN_POSITION || centre == NDTD_NOT_FOLLOWING)
        return 0;
    if (centre == NDTD_UNKNOWN_POSITION)
        return 1;
    ndtd_unpack_position(position, a_m);
    ndtd_unpack_position(centre, b_m);
    return hypot(a_m[0] - b_m[0], a_m[1] - b_m[1]) >= distance_m;
}

#endif
