# guard_launches, after the emulation: in the tests of this tree, and injected into other trees by tools/dev/sass-guard/sass-guard
# (CMAKE_PROJECT_INCLUDE), so that both are measured with the same inputs.
function(ndt_guard_launches)
  set(emulation ${CMAKE_SOURCE_DIR}/tests/kernels/cuda_emulation)
  add_executable(guard_launches ${NDT_GUARD_FOLDER}/guard_launches.c ${CMAKE_SOURCE_DIR}/tests/kernels/solve_cases.c
    ${CMAKE_SOURCE_DIR}/tests/kernels/street_world.c $<TARGET_OBJECTS:ndt_cuda_emulated>
    $<TARGET_OBJECTS:ndt_emulated_kernels>)
  target_include_directories(guard_launches PRIVATE ${emulation} ${emulation}/include ${emulation}/..
    ${CMAKE_SOURCE_DIR}/gpu ${CMAKE_SOURCE_DIR}/gpu/include ${CMAKE_SOURCE_DIR}/src/backends/include ${CMAKE_SOURCE_DIR}/src/core)
  file(STRINGS ${CMAKE_SOURCE_DIR}/gpu/gpu_job.h single REGEX "^struct ndt_gpu_single")
  if(single) # an argument that earlier trees do not have
    target_compile_definitions(guard_launches PRIVATE NDT_GUARD_SINGLE)
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/core/include/ndt/pose_scores.h)
    target_compile_definitions(guard_launches PRIVATE NDT_GUARD_SCORES)
  endif()
  target_link_libraries(guard_launches PRIVATE ndt_core_private ndt_flags ${CMAKE_DL_LIBS} m)
  foreach(name run allocate release register unregister)
    target_link_options(guard_launches PRIVATE LINKER:--wrap=emulated_${name})
  endforeach()
  set_target_properties(guard_launches PROPERTIES LINKER_LANGUAGE CXX ENABLE_EXPORTS ON)
endfunction()

get_property(is_included GLOBAL PROPERTY NDT_GUARD_LAUNCHES)
if(NOT is_included)
  set_property(GLOBAL PROPERTY NDT_GUARD_LAUNCHES ON)
  set(NDT_GUARD_FOLDER ${CMAKE_CURRENT_LIST_DIR})
  if(TARGET ndt_cuda_emulated)
    ndt_guard_launches()
  else() # injected: once everything else is there
    enable_language(CXX)
    cmake_language(DEFER CALL ndt_guard_launches)
  endif()
endif()
