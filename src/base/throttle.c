#include "ndtd/throttle.h"

int ndtd_throttle_take(struct ndtd_throttle *throttle, double burst, double rate_hz, double now_us)
{
    const double returned = (now_us - throttle->at_us) * 1e-6 * rate_hz;
    throttle->used = throttle->used > returned ? throttle->used - returned : 0;
    throttle->at_us = now_us;
    if (throttle->used + 1 > burst)
        return 0;
    throttle->used += 1;
    return 1;
}
