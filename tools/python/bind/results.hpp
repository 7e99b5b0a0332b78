// What alignments and replays return.
#pragma once

#include <cstring>

#include "common.hpp"

namespace ndt_python
{

struct Iteration {
    ndt_iteration row;
    double leaf_m; // of its level
};

using Trace = std::vector<Iteration>;

Trace make_trace(const ndt_map *map, const ndt_iteration *rows, size_t count); // rows may be NULL

struct Result {
    ndt_align_result result;
    double confidence;
    Trace trace;
};

// A struct without pointers as bytes, for pickle: between equal builds of the package.
template <class T> nb::bytes to_bytes(const T &from)
{
    return nb::bytes(&from, sizeof(T));
}

template <class T> T from_bytes(const nb::bytes &bytes, size_t at = 0)
{
    T out;
    if (bytes.size() < at + sizeof(T))
        throw nb::value_error("this was pickled by another build of ndtd");
    std::memcpy(static_cast<void *>(&out), bytes.c_str() + at, sizeof(T));
    return out;
}

nb::bytes trace_bytes(const Trace &trace);
Trace trace_of_bytes(const nb::bytes &bytes);

Doubles<4> make_quaternion(const ndt_pose &pose);
std::optional<Doubles<6, 6>> make_covariance(const ndt_align_result &result);

} // namespace ndt_python
