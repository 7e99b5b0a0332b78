# Rules of `cmake --install` (programs are installed where they are built). Components: runtime, library, development,
# documentation, cuda and, by python_package.cmake, python, of which package.cmake makes a Debian package each.
#
# libndtd.so is one shared library with everything; the static ones are its parts: a program that links one links its
# dependencies too (pkg-config --static; the CMake package names them in ndtdConfig.cmake). pkg-config and CMake files
# locate the libraries relative to themselves, so the tree can be moved.

get_filename_component(NDT_MSGPACK_NAME ${MSGPACK_LIBRARY} NAME_WE)
string(REGEX REPLACE "^lib" "" NDT_MSGPACK_NAME ${NDT_MSGPACK_NAME}) # msgpackc or msgpack-c
if(TARGET ndt_cuda_module)
  install(TARGETS ndt_cuda_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ndtd COMPONENT cuda)
endif()

# ndt_install_pc(NAME "What it is" "Libs" "Requires" "Requires.private" "Libs.private")
function(ndt_install_pc name about libs requires requires_private libs_private)
  file(RELATIVE_PATH up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" up ${up})
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.pc "prefix=\${pcfiledir}/${up}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: ${name}
Description: ${about}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Requires.private: ${requires_private}
Libs: -L\${libdir} ${libs}
Libs.private: ${libs_private}
Cflags: -I\${includedir}
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
foreach(name ${NDT_LIBRARIES})
  install(TARGETS ndt_${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endforeach()
foreach(folder src/core src/track src/odometry src/search src/io proto)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/src/localizer/include/ndtd/session.h
  ${PROJECT_SOURCE_DIR}/src/localizer/include/ndtd/localizer.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ndtd
  COMPONENT development)
ndt_install_pc(ndt-core "NDT matching: poses, maps, alignment" "-lndt_core" "" "" "-lm -pthread")
ndt_install_pc(ndt-track "Estimator of pose and motion around NDT matching" "-lndt_track" "ndt-core" "" "")
ndt_install_pc(ndt-odometry "LiDAR odometry without a map" "-lndt_odometry" "ndt-track" "" "")
ndt_install_pc(ndt-search "Localisation from nothing: places of scans in maps" "-lndt_search" "ndt-core" "" "")
ndt_install_pc(ndt-io "Clouds, maps, bags and trajectories in files" "-lndt_io" "ndt-core" "yaml-0.1" "-llzf")
ndt_install_pc(ndt-proto "Messages of ndtd" "-lndt_proto" "ndt-core" "" "-l${NDT_MSGPACK_NAME}")
ndt_install_pc(ndt-localizer "Scans, motion and a map in, poses out"
  "-lndt_localizer -lndt_config -lndt_base -lndt_backends"
  "ndt-odometry ndt-search ndt-io ndt-proto" "" "-ldl")
if(NDT_SHARED)
  install(TARGETS ndtd_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
  ndt_install_pc(ndtd "NDT localiser: all of its libraries in one" "-lndtd" "" "" "")
endif()
install(DIRECTORY tools/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development)

include(CMakePackageConfigHelpers)
set(ndt_package ${CMAKE_INSTALL_LIBDIR}/cmake/ndtd)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ndtdConfig.cmake.in ${PROJECT_BINARY_DIR}/ndtdConfig.cmake
  INSTALL_DESTINATION ${ndt_package} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ndtdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ndtdConfig.cmake ${PROJECT_BINARY_DIR}/ndtdConfigVersion.cmake
  DESTINATION ${ndt_package} COMPONENT development)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md proto/SCHEMA.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation OPTIONAL # an image is built without
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN docs/site EXCLUDE)
install(FILES config/autoware.yaml config/kitti.yaml config/ndtd.yaml config/monitoring/prometheus-scrape.yaml
  config/monitoring/prometheus-alerts.yaml config/monitoring/grafana-dashboard.json DESTINATION ${CMAKE_INSTALL_DATADIR}/ndtd)
# The clients of the Python package, which need no compiled part: PYTHONPATH=.../share/ndtd/python. The rest comes by
# pip install ./tools/python.
install(FILES tools/python/ndtd/__init__.py tools/python/ndtd/client.py tools/python/ndtd/poses.py tools/python/ndtd/_extras.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/ndtd/python/ndtd)
file(WRITE ${PROJECT_BINARY_DIR}/python/_version.py
  "\"\"\"The version of the project, as CMakeLists.txt has it.\"\"\"\n__version__ = \"${PROJECT_VERSION}\"\n")
install(FILES ${PROJECT_BINARY_DIR}/python/_version.py DESTINATION ${CMAKE_INSTALL_DATADIR}/ndtd/python/ndtd)
install(FILES tools/python/examples/drive_daemon.py DESTINATION ${CMAKE_INSTALL_DATADIR}/ndtd/python)

# All that is installed, for a build of less (tools/quickstart): CMakeLists.txt includes the script before the other rules.
add_custom_target(installed DEPENDS programs)
list(TRANSFORM NDT_LIBRARIES PREPEND ndt_ OUTPUT_VARIABLE ndt_parts)
foreach(part ndtd_shared ndt_cuda_module)
  if(TARGET ${part})
    list(APPEND ndt_parts ${part})
  endif()
endforeach()
add_dependencies(installed ${ndt_parts})
foreach(part ndtd ${NDT_TOOLS} ${ndt_parts})
  set_property(TARGET installed APPEND PROPERTY NDT_FILES $<TARGET_FILE:${part}>)
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/build_installed.cmake CONTENT "
foreach(file \"$<JOIN:$<TARGET_GENEX_EVAL:installed,$<TARGET_PROPERTY:installed,NDT_FILES>>,\" \">\")
  if(NOT EXISTS \${file})
    message(STATUS \"\${file} is not built: building what is installed\")
    execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target installed COMMAND_ERROR_IS_FATAL ANY)
    break()
  endif()
endforeach()
")

# Man pages (if help2man is found) and completion for bash and zsh, all from --help: targets `man`, `bash` and `zsh`.
# Programs of a cross build run under its emulator; those of a sanitizer build are not for installation.
find_program(NDT_HELP2MAN help2man)
find_program(NDT_BASH bash)
# ndt_describe(TARGET PREFIX SUFFIX DESTINATION)
function(ndt_describe what prefix suffix destination)
  set(script ${PROJECT_SOURCE_DIR}/tools/cmake/describe_program.sh)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  foreach(program ndtd ${NDT_TOOLS})
    set(out ${PROJECT_BINARY_DIR}/${what}/${prefix}${program}${suffix})
    add_custom_command(OUTPUT ${out} VERBATIM
      COMMAND ${CMAKE_COMMAND} -E env "NDT_EMULATOR=${emulator}"
        ${NDT_BASH} ${script} ${what} ${PROJECT_VERSION} $<TARGET_FILE:${program}> ${out}
      DEPENDS ${program} ndtd ${script})
    list(APPEND outputs ${out})
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${what})
  add_custom_target(${what} ALL DEPENDS ${outputs})
  add_dependencies(installed ${what})
  set_property(TARGET installed APPEND PROPERTY NDT_FILES ${outputs})
  install(FILES ${outputs} DESTINATION ${destination})
endfunction()
if(NDT_BASH AND NOT NDT_SANITIZE AND (CMAKE_CROSSCOMPILING_EMULATOR OR NOT CMAKE_CROSSCOMPILING))
  ndt_describe(bash "" "" ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  ndt_describe(zsh _ "" ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  if(NDT_HELP2MAN)
    ndt_describe(man "" .1 ${CMAKE_INSTALL_MANDIR}/man1)
  else()
    message(STATUS "man pages: help2man is not found, none are installed")
  endif()
endif()

# The configuration and the units that name it depend on the prefix given at installation: for /usr the configuration
# is in /etc, for any other prefix below the prefix. An existing configuration is not overwritten.
install(CODE "
  set(source \"${PROJECT_SOURCE_DIR}/config\")
  set(build \"${PROJECT_BINARY_DIR}\")
  set(units ndtd.service $<$<TARGET_EXISTS:ndt-web>:ndt-web.service>)
  set(bindir \"${CMAKE_INSTALL_BINDIR}\")
  set(datadir \"${CMAKE_INSTALL_DATADIR}\")")
install(CODE [[
  set(prefix "${CMAKE_INSTALL_PREFIX}")
  set(etc "${prefix}/etc/ndtd")
  if(prefix STREQUAL "/usr")
    set(etc "/etc/ndtd")
  endif()
  if(NOT EXISTS "$ENV{DESTDIR}${etc}/ndtd.yaml")
    file(INSTALL DESTINATION "${etc}" TYPE FILE FILES "${source}/ndtd.yaml")
  endif()
  foreach(unit ${units})
    file(READ "${source}/${unit}" text)
    string(REPLACE "/usr/bin/ndtd -c /etc/ndtd" "${prefix}/${bindir}/ndtd -c ${etc}" text "${text}")
    string(REPLACE "/usr/bin/ndt-web" "${prefix}/${bindir}/ndt-web" text "${text}")
    file(WRITE "${build}/${unit}" "${text}")
    file(INSTALL DESTINATION "${prefix}/lib/systemd/system" TYPE FILE FILES "${build}/${unit}")
  endforeach()
  file(READ "${build}/ndtd.service" text) # the template: a daemon for each robot, with files of its own
  string(REPLACE "/ndtd.yaml" "/%i.yaml" text "${text}")
  string(REPLACE "Description=NDT LiDAR localiser" "Description=NDT LiDAR localiser of %i" text "${text}")
  string(REGEX REPLACE "\n((Runtime|State|Working)Directory=[^\n]*ndtd)\n" "\n\\1/%i\n" text "${text}")
  file(WRITE "${build}/ndtd@.service" "${text}")
  file(INSTALL DESTINATION "${prefix}/lib/systemd/system" TYPE FILE FILES "${build}/ndtd@.service")
  file(READ "${source}/ndtd-gpu.conf" text) # a drop-in, for those who have a GPU
  string(REPLACE "/usr/bin/ndtd -c /etc/ndtd" "${prefix}/${bindir}/ndtd -c ${etc}" text "${text}")
  string(REPLACE "/usr/share" "${prefix}/${datadir}" text "${text}")
  file(WRITE "${build}/ndtd-gpu.conf" "${text}")
  file(INSTALL DESTINATION "${prefix}/${datadir}/ndtd" TYPE FILE FILES "${build}/ndtd-gpu.conf")]])

include(${CMAKE_CURRENT_LIST_DIR}/python_package.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
