// The result of one scan, of a replay and of a Localizer alike, and the settings of both.
#pragma once

#include "ndtd/pipeline.h"
#include "ndtd/reference_trajectory.h"
#include "ndtd/settings.h"
#include "results.hpp"

namespace ndt_python
{

struct Scan {
    ndtd_scan_record record; // its trace is the next member
    Trace trace;
    bool is_trusted;
};

Scan make_scan(const ndtd_scan_record &record, const ndt_map *map); // map: of the trace's levels

// The hash that `ndtd --replay` prints, of the scans so far.
class TrajectoryHash
{
  public:
    void add(const ndtd_scan_record &record);
    std::string text() const;

  private:
    uint64_t value_ = NDTD_TRAJECTORY_HASH_START;
};

// map: a path or None; config: a file or None; options: a dict or None. As --map, --config and --set.
ndtd_settings read_settings(nb::handle map, nb::handle config, nb::handle options);

} // namespace ndt_python
