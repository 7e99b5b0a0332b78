#include "ndtd/trajectory_hash.h"

#include <string.h>

#include "ndt/hash.h"

static unsigned char *put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        *at++ = (unsigned char)(value >> (8 * i));
    return at;
}

static unsigned char *put_real(unsigned char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return put_u64(at, bits);
}

uint64_t ndtd_trajectory_hash(uint64_t hash, uint64_t seq, int64_t stamp_ns, enum ndt_outcome outcome,
                              const struct ndt_pose *T_map_sensor)
{
    unsigned char bytes[10 * 8], *at = bytes;
    at = put_u64(at, seq);
    at = put_u64(at, (uint64_t)stamp_ns);
    at = put_u64(at, (uint64_t)outcome);
    for (int i = 0; i < 3; i++)
        at = put_real(at, T_map_sensor->t_m[i]);
    for (int i = 0; i < 4; i++)
        at = put_real(at, T_map_sensor->q_xyzw[i]);
    return ndt_hash64(bytes, sizeof(bytes), hash);
}
