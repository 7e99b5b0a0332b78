// Keyword arguments with checks that name the argument, what is wrong and the limit.
#pragma once

#include "common.hpp"
#include "ndt/names.h"

namespace ndt_python
{

// Arguments are taken by name; end() refuses those that are left and names the nearest that exists.
class Keywords
{
  public:
    Keywords(const nb::kwargs &given, const char *function) : given_(given), function_(function) {}

    nb::object object(const char *name); // None when it is not given
    double number(const char *name, double otherwise, double least, double most);
    int64_t integer(const char *name, int64_t otherwise, int64_t least, int64_t most);
    int label(const char *name, const ndt_label *labels, int otherwise);
    std::string text(const char *name, const std::string &otherwise);
    std::vector<double> numbers(const char *name, const std::vector<double> &otherwise, size_t most);
    void end() const;

  private:
    const nb::kwargs &given_;
    const char *function_;
    std::vector<const char *> known_;
    size_t taken_ = 0;
};

} // namespace ndt_python
