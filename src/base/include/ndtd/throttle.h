/** @file
 * @brief A throttle: allows an action a few times at once, then at a rate. Used by one thread. */
#ifndef NDTD_THROTTLE_H
#define NDTD_THROTTLE_H

#ifdef __cplusplus
extern "C" {
#endif

/** State; zero: `burst` times are free. */
struct ndtd_throttle {
    double used;  /**< used part of the burst */
    double at_us; /**< time of `used` */
};

/** Returns 1 if the action is allowed now, and counts it. burst: times at once; rate_hz: times per second in the
 * long run; now_us: monotonic. */
int ndtd_throttle_take(struct ndtd_throttle *throttle, double burst, double rate_hz, double now_us);

#ifdef __cplusplus
}
#endif
#endif
