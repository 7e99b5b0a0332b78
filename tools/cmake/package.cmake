# The .deb of `cpack -G DEB`: what a package has beyond `cmake --install`, added to its staging folder by a script that
# runs before the package is made.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME ndtd)
set(CPACK_PACKAGE_VENDOR "ndtd developers")
# Who makes the package, as Debian's tools are told it; otherwise an address in the domain that is reserved for examples.
set(CPACK_PACKAGE_CONTACT "ndtd developers <ndtd@ndtd.example>")
if(DEFINED ENV{DEBEMAIL})
  set(maker "$ENV{DEBFULLNAME}")
  if(NOT maker)
    set(maker "ndtd developers")
  endif()
  set(CPACK_PACKAGE_CONTACT "${maker} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "Matches LiDAR scans against a point cloud map (Normal Distributions
Transform) and gives a pose, a covariance and scores for every scan, over
ZeroMQ or from a recorded drive. With tools for recordings, libraries
and their headers.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR ON) # for /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ${NDT_SHARED})
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libyaml-dev, liblzf-dev, libmsgpack-dev | libmsgpack-c-dev")
file(WRITE ${PROJECT_BINARY_DIR}/conffiles "/etc/ndtd/ndtd.yaml\n")
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/conffiles ${debian}/postinst ${debian}/prerm
  ${debian}/postrm)
if(NDT_SHARED)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/triggers)
endif()
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Copyright, changelog, the user, and compressed man pages. The date is SOURCE_DATE_EPOCH where that is set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/changelog "ndtd (${PROJECT_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md of the source.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(WRITE ${PROJECT_BINARY_DIR}/complete_package.cmake "
set(usr \"\${CPACK_TEMPORARY_DIRECTORY}/usr\")
set(mode FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
file(COPY \"${debian}/copyright\" \"${PROJECT_BINARY_DIR}/changelog\" DESTINATION \"\${usr}/share/doc/ndtd\" \${mode})
file(COPY \"${debian}/lintian-overrides\" DESTINATION \"\${usr}/share/lintian/overrides\" \${mode})
file(RENAME \"\${usr}/share/lintian/overrides/lintian-overrides\" \"\${usr}/share/lintian/overrides/ndtd\")
file(COPY \"${debian}/ndtd.sysusers\" DESTINATION \"\${usr}/lib/sysusers.d\" \${mode})
file(RENAME \"\${usr}/lib/sysusers.d/ndtd.sysusers\" \"\${usr}/lib/sysusers.d/ndtd.conf\")
if(EXISTS \"\${usr}/share/zsh/site-functions\")
  file(RENAME \"\${usr}/share/zsh/site-functions\" \"\${usr}/share/zsh/vendor-completions\")
endif()
file(GLOB pages \"\${usr}/share/man/man1/*.1\" \"\${usr}/share/doc/ndtd/changelog\")
execute_process(COMMAND gzip -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)
")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/complete_package.cmake)
# The package of the daemon must not depend on PCL, which only the comparison in ndt-bench uses.
if(NDT_PCL_FOUND)
  file(APPEND ${PROJECT_BINARY_DIR}/complete_package.cmake
    "file(GLOB files \"\${usr}/*/ndt-bench\" \"\${usr}/share/*/*/ndt-bench*\")\nfile(REMOVE \${files})\n")
  message(STATUS "cpack: leaves out ndt-bench, which is linked with PCL; configure with NDT_PEER_PCL=OFF to have it")
endif()
include(CPack)
