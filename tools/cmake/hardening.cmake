# What compiler and linker offer against memory errors that get past the checks, as far as they know it; see
# tests/cli/test_hardening.sh. Not with sanitizers, which watch more and do not combine with all of it. Measured on the
# matcher: below 1 % (docs/testing.md).
option(NDT_HARDEN "Stack protector, fortified library calls, full RELRO, PIE, control-flow and stack-clash protection" ON)
if(NOT NDT_HARDEN OR NDT_SANITIZE)
  return()
endif()
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
set(flags -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
if(NOT CMAKE_POSITION_INDEPENDENT_CODE) # code for shared libraries is independent already
  list(APPEND flags -fPIE)
endif()
foreach(flag ${flags})
  string(MAKE_C_IDENTIFIER "NDT_HAVE${flag}" known)
  check_c_compiler_flag(-Werror\;${flag} ${known})
  if(${known})
    target_compile_options(ndt_flags INTERFACE ${flag})
  endif()
endforeach()
foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -pie)
  string(MAKE_C_IDENTIFIER "NDT_HAVE${flag}" known)
  check_linker_flag(C ${flag} ${known})
  if(${known})
    target_link_options(ndt_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${flag}>)
  endif()
endforeach()
# Without optimisation the library cannot tell the sizes of objects. Level 3 would also follow sizes that are known only
# at run time, and costs 15 to 40 % of the kernels: vectors are loaded and stored by memcpy.
target_compile_options(ndt_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
  $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
