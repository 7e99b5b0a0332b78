/** @file
 * @brief The largest numbers that inputs may have. What is beyond is no measurement: decoders refuse the message
 * and name the field, and the estimator never stores such a state. proto/SCHEMA.md lists them for clients. */
#ifndef NDT_LIMITS_H
#define NDT_LIMITS_H

#include <stdint.h>

#define NDT_LIMIT_POSITION_M                                                                                       \
    1e8 /**< coordinate of a pose or position: Earth and its frames; the sum of two                                \
           stays exact to 1e-7 m */
#define NDT_LIMIT_SPEED_MPS         1e3  /**< component of a velocity */
#define NDT_LIMIT_TURN_RADPS        1e2  /**< component of an angular velocity of the vehicle */
#define NDT_LIMIT_VARIANCE          1e12 /**< number of a covariance of a pose [m^2, m rad, rad^2] */
#define NDT_LIMIT_DEVIATION_M       1e6  /**< standard deviation of a position */
#define NDT_LIMIT_RATE_RADPS        1e3  /**< component of an angular velocity that an IMU measures */
#define NDT_LIMIT_ACCELERATION_MPS2 1e4  /**< component of an acceleration that an IMU measures */
/** Stamp, to either side of zero: 145 years. The difference of two stamps, and some seconds more, fits int64. */
#define NDT_LIMIT_STAMP_NS INT64_C(4600000000000000000)

#endif
