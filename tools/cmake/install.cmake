# What `cmake --install` puts where (programs install themselves), and the .deb of `cpack -G DEB`.
#
# The libraries are static: who links one also links what it uses. pkg-config says that with --static; the CMake
# package says it in ndtdConfig.cmake. Both find themselves by where they lie, so the tree can be moved.

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

# The configuration and the unit that names it depend on the prefix given at installation: of /usr the configuration
# is in /etc, of any other prefix below it. A configuration that is there already is left alone.
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

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME ndtd)
set(CPACK_PACKAGE_VENDOR "ndtd developers")
set(CPACK_PACKAGE_CONTACT "ndtd developers <ndtd@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "Matches LiDAR scans against a point cloud map (Normal Distributions Transform) and
gives a pose, a covariance and scores for every scan, over ZeroMQ or from a
recorded drive. With tools for recordings, static libraries and their headers.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR ON) # for /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libyaml-dev, liblzf-dev, libmsgpack-dev | libmsgpack-c-dev")
file(WRITE ${PROJECT_BINARY_DIR}/conffiles "/etc/ndtd/ndtd.yaml\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/conffiles)
# A daemon's package must not bring PCL to a robot for the sake of a comparison.
if(NDT_PCL_FOUND)
  file(WRITE ${PROJECT_BINARY_DIR}/leave_out.cmake
    "file(REMOVE \"\${CPACK_TEMPORARY_DIRECTORY}/usr/bin/ndt-bench\")\n")
  set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/leave_out.cmake)
  message(STATUS "cpack: leaves out ndt-bench, which is linked with PCL; configure with NDT_PEER_PCL=OFF to have it")
endif()
include(CPack)
