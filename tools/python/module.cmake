# The compiled module _core of the Python package, for the interpreter Python_EXECUTABLE, which has nanobind.
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module
  OPTIONAL_COMPONENTS Development.SABIModule) # one wheel for 3.12 and later
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
  OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/bind/*.cpp)
nanobind_add_module(_core STABLE_ABI NB_STATIC ${sources})
target_compile_features(_core PRIVATE cxx_std_17)
target_link_libraries(_core PRIVATE ndt_daemon ndt_odometry)
set(NDT_PYTHON_STUB "" CACHE FILEPATH "_core.pyi of another build, for cross builds, which cannot load the module")
if(NDT_PYTHON_STUB)
  configure_file(${NDT_PYTHON_STUB} ${CMAKE_CURRENT_BINARY_DIR}/_core.pyi COPYONLY)
else()
  nanobind_add_stub(_core_stub MODULE _core OUTPUT _core.pyi PYTHON_PATH $<TARGET_FILE_DIR:_core> DEPENDS _core)
endif()
