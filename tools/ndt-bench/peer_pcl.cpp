/* pcl::NormalDistributionsTransform behind bench_peer.h. PCL's default epsilon compares the squared translation,
 * so that it stops after one step; 1e-4 corresponds to Autoware's 0.01: a step below 1 cm. */
#include "bench_peer.h"

#include <chrono>
#include <cstdio>
#include <exception>

#include <pcl/point_cloud.h>
#include <pcl/point_types.h>
#include <pcl/registration/ndt.h>

namespace
{

using cloud = pcl::PointCloud<pcl::PointXYZ>;

cloud::Ptr make_cloud(const bench_peer_points &points)
{
    cloud::Ptr out(new cloud);
    out->reserve(points.count);
    for (size_t i = 0; i < points.count; i++)
        out->push_back(pcl::PointXYZ(points.x_m[i], points.y_m[i], points.z_m[i]));
    return out;
}

struct matcher {
    pcl::NormalDistributionsTransform<pcl::PointXYZ, pcl::PointXYZ> ndt;
};

void *open_matcher(const bench_peer_points *map, double leaf_m, char *why, size_t why_size)
{
    matcher *state = nullptr;
    try {
        state = new matcher;
        state->ndt.setResolution(static_cast<float>(leaf_m));
        state->ndt.setStepSize(0.1);
        state->ndt.setTransformationEpsilon(1e-4);
        state->ndt.setMaximumIterations(30);
        state->ndt.setInputTarget(make_cloud(*map));
        return state;
    } catch (const std::exception &error) {
        std::snprintf(why, why_size, "pcl: %s", error.what());
        delete state;
        return nullptr;
    }
}

void close_matcher(void *state)
{
    delete static_cast<matcher *>(state);
}

int align(void *state, const bench_peer_points *scan, const double guess[16], bench_peer_result *out, char *why,
          size_t why_size)
{
    try {
        auto &ndt = static_cast<matcher *>(state)->ndt;
        const cloud::Ptr source = make_cloud(*scan);
        Eigen::Matrix4f start;
        for (int i = 0; i < 16; i++)
            start(i / 4, i % 4) = static_cast<float>(guess[i]);
        cloud moved;
        const auto begin = std::chrono::steady_clock::now();
        ndt.setInputSource(source);
        ndt.align(moved, start);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        const Eigen::Matrix4f found = ndt.getFinalTransformation();
        for (int i = 0; i < 16; i++)
            out->T[i] = static_cast<double>(found(i / 4, i % 4));
        out->took_us = took.count();
        out->iterations = ndt.getFinalNumIteration();
        out->converged = ndt.hasConverged() ? 1 : 0;
        return 1;
    } catch (const std::exception &error) {
        std::snprintf(why, why_size, "pcl: %s", error.what());
        return 0;
    }
}

} // namespace

extern "C" const bench_peer_ops bench_peer_pcl = {
    "pcl",
    "pcl::NormalDistributionsTransform of PCL " PCL_VERSION_PRETTY ", step 0.1, epsilon 1e-4 (squared: 1 cm), "
    "at most 30 iterations, one thread",
    open_matcher,
    close_matcher,
    align,
};
