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

  private:
    std::shared_ptr<ndt_map> map_;
};

} // namespace ndt_python
