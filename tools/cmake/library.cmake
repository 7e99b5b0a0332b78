# libndtd.so: all libraries in one, for other programs. It exports what the installed headers declare, no more. The
# ABI holds within a minor version: the soname is libndtd.so.MAJOR.MINOR.
set(NDT_LIBRARIES localizer config base backends odometry track search io proto core) # a library stands before those that it needs
set(NDT_LIBRARY_HEADERS ${PROJECT_SOURCE_DIR}/src/localizer/include/ndtd/session.h)
foreach(folder src/core src/track src/odometry src/search src/io proto)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/include/*/*.h)
  list(APPEND NDT_LIBRARY_HEADERS ${headers})
endforeach()
if(NOT NDT_SHARED)
  return()
endif()

pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
set(abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
include(CheckLinkerFlag)
set(symbols ${PROJECT_BINARY_DIR}/libndtd.symbols)
set(collect ${PROJECT_SOURCE_DIR}/tools/cmake/public_symbols.sh)
add_custom_command(OUTPUT ${symbols} VERBATIM COMMAND sh ${collect} NDTD_${abi} ${symbols} ${NDT_LIBRARY_HEADERS}
  DEPENDS ${collect} ${NDT_LIBRARY_HEADERS} COMMENT "Collecting the symbols of libndtd")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/libndtd.c CONTENT "/* All code is in the archives. */\n")
add_library(ndtd_shared SHARED ${PROJECT_BINARY_DIR}/libndtd.c ${symbols})
set_target_properties(ndtd_shared PROPERTIES OUTPUT_NAME ndtd VERSION ${PROJECT_VERSION} SOVERSION ${abi}
  LINK_DEPENDS ${symbols})
foreach(name ${NDT_LIBRARIES})
  list(APPEND archives $<TARGET_FILE:ndt_${name}>)
  add_dependencies(ndtd_shared ndt_${name})
  set_property(TARGET ndtd_shared APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:ndt_${name}>)
endforeach()
# The list has the inline functions of the headers, too, for which lld wants to be asked.
set(flags)
foreach(flag -Wl,-Bsymbolic-functions -Wl,--undefined-version)
  string(MAKE_C_IDENTIFIER "NDT_HAVE${flag}" known)
  check_linker_flag(C ${flag} ${known})
  if(${known})
    list(APPEND flags ${flag})
  endif()
endforeach()
target_link_libraries(ndtd_shared PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive
  -Wl,--version-script=${symbols} ${flags} -Wl,--no-undefined -Wl,-z,relro -Wl,-z,now
  PkgConfig::YAML ${LZF_LIBRARY} ${MSGPACK_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} m)
