# The Debian packages of `cpack -G DEB`, one for each component: what a package has beyond `cmake --install` is added to
# its staging folder by a script that runs before the packages are made.
set(NDT_MAINTAINER "" CACHE STRING "Who makes the Debian packages, NAME <ADDRESS>; empty: $DEBFULLNAME <$DEBEMAIL>")
set(maintainer "${NDT_MAINTAINER}")
if(NOT maintainer AND DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME}")
  if(NOT maintainer)
    set(maintainer "ndtd developers")
  endif()
  string(APPEND maintainer " <$ENV{DEBEMAIL}>")
elseif(NOT maintainer) # an address that says that there is none
  set(maintainer "ndtd developers <ndtd@ndtd.invalid>")
endif()
if(NOT maintainer MATCHES "^[^<>]+ <[^<> ]+@[^<> ]+>$")
  message(FATAL_ERROR "NDT_MAINTAINER is '${maintainer}', not NAME <ADDRESS>")
endif()
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME ndtd)
set(CPACK_PACKAGE_VENDOR "ndtd developers")
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR ON) # for /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime development documentation)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)
set(what "Matches LiDAR scans against a point cloud map (Normal Distributions
Transform) and gives a pose, a covariance and scores for every scan, over
ZeroMQ or from a recorded drive.")

# ndt_package(COMPONENT NAME SECTION "Summary" "What it has")
macro(ndt_package component name section summary about)
  string(TOUPPER ${component} key)
  set(NDT_PACKAGE_${component} ${name})
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${what}\n\n${about}")
endmacro()
ndt_package(runtime ndtd science "NDT localiser: LiDAR scans in, poses out"
  "The daemon, and tools for maps, recordings, simulation and its live page.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "ndtd-doc")
file(WRITE ${PROJECT_BINARY_DIR}/conffiles "/etc/ndtd/ndtd.yaml\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/conffiles ${debian}/postinst ${debian}/prerm
  ${debian}/postrm)
ndt_package(development libndtd-dev libdevel "NDT localiser as a library: headers and static libraries"
  "Headers, static libraries, files of pkg-config and CMake, examples.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libyaml-dev, liblzf-dev, libmsgpack-dev | libmsgpack-c-dev")
ndt_package(documentation ndtd-doc doc "NDT localiser: documentation" "The manual, and the format of the messages.")
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
set(library libndtd${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}) # as its soname, see library.cmake
if(TARGET ndt_cuda_module)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  ndt_package(cuda ndtd-cuda science "NDT localiser: CUDA backend"
    "The module with which daemon, tools and library use an NVIDIA GPU. It needs
the driver alone.")
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "ndtd (= ${PROJECT_VERSION}) | ${library} (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS "libcuda1")
  set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${debian}/library/postinst ${debian}/library/postrm)
  string(APPEND CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS ", ndtd-cuda")
endif()
if(NDT_SHARED)
  list(APPEND CPACK_COMPONENTS_ALL library)
  ndt_package(library ${library} libs "NDT localiser as a library" "The library alone, without sockets and daemon.")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
  file(WRITE ${PROJECT_BINARY_DIR}/shlibs
    "libndtd ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${library} (>= ${PROJECT_VERSION})\n")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/shlibs ${debian}/triggers
    ${debian}/library/postinst ${debian}/library/postrm)
  string(PREPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION}), ")
endif()
if(NDT_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  ndt_package(python python3-ndtd python "NDT localiser: Python package, importers, exporters and reports"
    "Maps, alignment, replay and the client of the daemon from Python, and the
commands ndt-import, ndt-export, ndt-report, ndt-tune, ndt-calibrate, ndt-fleet,
ndt-ros1-bridge and ndt-ros2-bridge.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${next}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "ndtd, python3-matplotlib, python3-msgpack, python3-pyproj, python3-yaml, python3-zmq")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-rospy") # ndt-ros1-bridge
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${debian}/python/postinst ${debian}/python/prerm)
endif()

# Copyright and changelog of each package, the user, and compressed man pages. The date is SOURCE_DATE_EPOCH where set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(script "
if(NOT EXISTS \"\${CPACK_TEMPORARY_DIRECTORY}/runtime\")
  return() # not of Debian's packages
endif()
set(mode FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(usr \"\${CPACK_TEMPORARY_DIRECTORY}/runtime/usr\")
file(COPY \"${debian}/ndtd.sysusers\" DESTINATION \"\${usr}/lib/sysusers.d\" \${mode})
file(RENAME \"\${usr}/lib/sysusers.d/ndtd.sysusers\" \"\${usr}/lib/sysusers.d/ndtd.conf\")
if(EXISTS \"\${usr}/share/zsh/site-functions\")
  file(RENAME \"\${usr}/share/zsh/site-functions\" \"\${usr}/share/zsh/vendor-completions\")
endif()
")
foreach(component ${CPACK_COMPONENTS_ALL})
  set(name ${NDT_PACKAGE_${component}})
  file(WRITE ${PROJECT_BINARY_DIR}/debian/${name}/changelog "ndtd (${PROJECT_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md of the source.

 -- ${maintainer}  ${date}
")
  string(APPEND script "file(COPY \"${debian}/copyright\" \"${PROJECT_BINARY_DIR}/debian/${name}/changelog\"
  DESTINATION \"\${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc/${name}\" \${mode})\n")
endforeach()
string(APPEND script "file(GLOB pages \"\${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man1/*.1\"
  \"\${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog\")
execute_process(COMMAND gzip -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)
")
# The package of the daemon must not depend on PCL, which only the comparison in ndt-bench uses.
if(NDT_PCL_FOUND)
  string(APPEND script "file(GLOB files \"\${usr}/*/ndt-bench\" \"\${usr}/share/*/*/ndt-bench*\")\nfile(REMOVE \${files})\n")
  message(STATUS "cpack: leaves out ndt-bench, which is linked with PCL; configure with NDT_PEER_PCL=OFF to have it")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/complete_package.cmake "${script}")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/complete_package.cmake)

# What Debian's packages are made with, before minutes go by.
file(WRITE ${PROJECT_BINARY_DIR}/can_package.cmake [[
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each component has its own
  foreach(program dpkg-shlibdeps file gzip)
    find_program(NDT_${program} ${program})
    if(NOT NDT_${program})
      message(FATAL_ERROR "cpack -G DEB needs ${program}: apt install dpkg-dev file gzip")
    endif()
  endforeach()
endif()
]])
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/can_package.cmake)
include(CPack)
