# Rules of `cmake --install` (programs are installed where they are built); package.cmake has the .deb.
#
# The libraries are static: a program that links one links its dependencies too (pkg-config --static; the CMake package
# names them in ndtdConfig.cmake). Both locate the libraries relative to themselves, so the tree can be moved.

get_filename_component(NDT_MSGPACK_NAME ${MSGPACK_LIBRARY} NAME_WE)
string(REGEX REPLACE "^lib" "" NDT_MSGPACK_NAME ${NDT_MSGPACK_NAME}) # msgpackc or msgpack-c

# ndt_install_library(NAME FOLDER "What it is" "Requires" "Requires.private" "Libs.private")
function(ndt_install_library name folder about requires requires_private libs_private)
  install(TARGETS ndt_${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")
  file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" up ${up})
  file(WRITE ${PROJECT_BINARY_DIR}/ndt-${name}.pc "prefix=\${pcfiledir}/${up}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: ndt-${name}
Description: ${about}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Requires.private: ${requires_private}
Libs: -L\${libdir} -lndt_${name}
Libs.private: ${libs_private}
Cflags: -I\${includedir}
")
  install(FILES ${PROJECT_BINARY_DIR}/ndt-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
ndt_install_library(core src/core "NDT matching: poses, maps, alignment" "" "" "-lm -pthread")
ndt_install_library(track src/track "Estimator of pose and motion around NDT matching" "ndt-core" "" "")
ndt_install_library(search src/search "Localisation from nothing: places of scans in maps" "ndt-core" "" "")
ndt_install_library(io src/io "Clouds, maps, bags and trajectories in files" "ndt-core" "yaml-0.1" "-llzf")
ndt_install_library(proto proto "Messages of ndtd" "ndt-core" "" "-l${NDT_MSGPACK_NAME}")

include(CMakePackageConfigHelpers)
set(ndt_package ${CMAKE_INSTALL_LIBDIR}/cmake/ndtd)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ndtdConfig.cmake.in ${PROJECT_BINARY_DIR}/ndtdConfig.cmake
  INSTALL_DESTINATION ${ndt_package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ndtdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ndtdConfig.cmake ${PROJECT_BINARY_DIR}/ndtdConfigVersion.cmake
  DESTINATION ${ndt_package})

install(FILES README.md LICENSE proto/SCHEMA.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES config/autoware.yaml config/kitti.yaml config/ndtd.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/ndtd)
install(DIRECTORY tools/python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ndtd/python FILES_MATCHING PATTERN "*.py"
  PATTERN __pycache__ EXCLUDE)

# Man pages (if help2man is found) and bash completion, both from --help: targets `man` and `completion`. Programs of
# a cross build do not run here; those of a sanitizer build are not for installation.
find_program(NDT_HELP2MAN help2man)
find_program(NDT_BASH bash)
set(NDT_PROGRAMS ndtd ndt-bag ndt-sim ndt-bench ndt-send ndt-echo ndt-top ndt-ctl ndt-map)
# ndt_describe(TARGET SUFFIX DESTINATION)
function(ndt_describe what suffix destination)
  foreach(program ${NDT_PROGRAMS})
    set(out ${PROJECT_BINARY_DIR}/${what}/${program}${suffix})
    add_custom_command(OUTPUT ${out} VERBATIM
      COMMAND ${NDT_BASH} ${PROJECT_SOURCE_DIR}/tools/cmake/describe_program.sh ${what} ${PROJECT_VERSION}
        $<TARGET_FILE:${program}> ${out}
      DEPENDS ${program} ${PROJECT_SOURCE_DIR}/tools/cmake/describe_program.sh)
    list(APPEND outputs ${out})
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${what})
  add_custom_target(${what} ALL DEPENDS ${outputs})
  install(FILES ${outputs} DESTINATION ${destination})
endfunction()
if(NDT_BASH AND NOT CMAKE_CROSSCOMPILING AND NOT NDT_SANITIZE)
  ndt_describe(completion "" ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  if(NDT_HELP2MAN)
    ndt_describe(man .1 ${CMAKE_INSTALL_MANDIR}/man1)
  else()
    message(STATUS "man pages: help2man is not found, none are installed")
  endif()
endif()

# The configuration and the unit that names it depend on the prefix given at installation: for /usr the configuration
# is in /etc, for any other prefix below the prefix. An existing configuration is not overwritten.
install(CODE "
  set(source \"${PROJECT_SOURCE_DIR}/config\")
  set(unit \"${PROJECT_BINARY_DIR}/ndtd.service\")
  set(bindir \"${CMAKE_INSTALL_BINDIR}\")")
install(CODE [[
  set(prefix "${CMAKE_INSTALL_PREFIX}")
  set(etc "${prefix}/etc/ndtd")
  if(prefix STREQUAL "/usr")
    set(etc "/etc/ndtd")
  endif()
  if(NOT EXISTS "$ENV{DESTDIR}${etc}/ndtd.yaml")
    file(INSTALL DESTINATION "${etc}" TYPE FILE FILES "${source}/ndtd.yaml")
  endif()
  file(READ "${source}/ndtd.service" text)
  string(REPLACE "/usr/bin/ndtd -c /etc/ndtd" "${prefix}/${bindir}/ndtd -c ${etc}" text "${text}")
  file(WRITE "${unit}" "${text}")
  file(INSTALL DESTINATION "${prefix}/lib/systemd/system" TYPE FILE FILES "${unit}")]])

include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
