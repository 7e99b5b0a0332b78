#pragma once

#include "common.hpp"

namespace ndt_python
{

// A reference to an immutable map.
class Map
{
  public:
    explicit Map(ndt_map *owned) : map_(owned, ndt_map_release) {}
    ndt_map *get() const { return map_.get(); }
    // The level with cells of this edge; ValueError names the argument and the levels that there are.
    const ndt_map_level &level(double leaf_m, const char *what) const;

  private:
    std::shared_ptr<ndt_map> map_;
};

const Map &read_map(nb::handle map); // TypeError otherwise

} // namespace ndt_python
