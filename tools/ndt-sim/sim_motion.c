#include <math.h>

#include "sim.h"

/* Errors of the wheels and of their gyroscope: white noise, a scale of the wheels, a bias of the turn rate. */
static const double WHEEL_NOISE_MPS = 0.03, WHEEL_SCALE = 1.006;
static const double GYRO_NOISE_RADPS = 0.002, GYRO_BIAS_RADPS = 0.0008;

void sim_odometer_init(struct sim_odometer *odometer, double rate_hz, double scale, uint64_t seed)
{
    *odometer = (struct sim_odometer){.rate_hz = rate_hz,
                                      .scale = scale,
                                      .random = ndt_random_stream(seed, 10, 0),
                                      .T_odom_base = ndt_pose_identity()};
}

struct ndt_twist sim_odometer_measure(struct sim_odometer *odometer, const struct sim_drive *drive, double t_s)
{
    struct ndt_twist twist = sim_drive_twist(drive, t_s);
    for (int k = 0; k < 3; k++) {
        twist.v_mps[k] *= WHEEL_SCALE * odometer->scale;
        twist.v_mps[k] += WHEEL_NOISE_MPS * ndt_random_normal(&odometer->random);
        twist.w_radps[k] += GYRO_BIAS_RADPS;
        twist.w_radps[k] += GYRO_NOISE_RADPS * ndt_random_normal(&odometer->random);
    }
    if (odometer->count++ > 0) {
        const struct ndt_pose step = ndt_pose_exp(&twist, 1.0 / odometer->rate_hz);
        odometer->T_odom_base = ndt_pose_compose(&odometer->T_odom_base, &step);
        ndt_pose_normalize(&odometer->T_odom_base);
    }
    return twist;
}

struct sim_imu_sample sim_imu_measure(const struct sim_imu *imu, const struct sim_drive *drive, uint64_t index,
                                      double t_s)
{
    struct ndt_random biases = ndt_random_stream(imu->seed, 11, 0);
    struct ndt_random random = ndt_random_stream(imu->seed, 11, index + 1);
    const double gyro_radps = imu->gyro_noise * sqrt(imu->rate_hz);
    const double accelerometer_mps2 = imu->accelerometer_noise * sqrt(imu->rate_hz);
    const struct ndt_twist twist = sim_drive_twist(drive, t_s);
    struct sim_imu_sample sample;
    sim_drive_force(drive, t_s, sample.force_mps2);
    for (int k = 0; k < 3; k++) {
        const double gyro_sign = ndt_random_unit(&biases) < 0.5 ? -1.0 : 1.0;
        const double accelerometer_sign = ndt_random_unit(&biases) < 0.5 ? -1.0 : 1.0;
        sample.angular_velocity_radps[k] =
            twist.w_radps[k] + gyro_sign * imu->gyro_bias_radps + gyro_radps * ndt_random_normal(&random);
        sample.force_mps2[k] +=
            accelerometer_sign * imu->accelerometer_bias_mps2 + accelerometer_mps2 * ndt_random_normal(&random);
    }
    return sample;
}
