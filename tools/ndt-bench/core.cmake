# Sources of ndt-bench that need only the core and the backends: see bench.h. With NDT_CORE_ONLY they are the program, which
# tools/gpu-check runs on a machine with a GPU.
set(NDT_BENCH_CORE_SOURCES align batch candidate drive main overheads report sampler source street)
list(TRANSFORM NDT_BENCH_CORE_SOURCES REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tools/ndt-bench/bench_\\1.c")
list(APPEND NDT_BENCH_CORE_SOURCES ${PROJECT_SOURCE_DIR}/tools/common/tool_options.c
  ${PROJECT_SOURCE_DIR}/src/base/machine_name.c ${PROJECT_SOURCE_DIR}/src/base/nearest_name.c
  ${PROJECT_SOURCE_DIR}/src/base/progress_line.c)
set(NDT_BENCH_CORE_INCLUDES ${PROJECT_SOURCE_DIR}/tools/ndt-bench ${PROJECT_SOURCE_DIR}/tools/common
  ${PROJECT_SOURCE_DIR}/src/base/include)
if(NDT_CORE_ONLY)
  add_executable(ndt-bench ${NDT_BENCH_CORE_SOURCES})
  target_include_directories(ndt-bench PRIVATE ${NDT_BENCH_CORE_INCLUDES})
  target_compile_definitions(ndt-bench PRIVATE NDT_BENCH_CORE)
  target_link_libraries(ndt-bench PRIVATE ndt_backends ndt_flags m)
endif()
