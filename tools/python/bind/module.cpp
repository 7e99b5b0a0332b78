#include "common.hpp"

NB_MODULE(_core, module)
{
    module.doc() = "The compiled part of ndtd: maps, alignment, preprocessing.";
    ndt_python::bind_map(module);
    ndt_python::bind_results(module);
    ndt_python::bind_align(module);
    ndt_python::bind_preprocess(module);
    ndt_python::bind_localize(module);
    ndt_python::bind_odometry(module);
    ndt_python::bind_replay(module);
    ndt_python::bind_localizer(module);
    ndt_python::bind_bag(module);
    ndt_python::bind_read_cloud(module);
}
