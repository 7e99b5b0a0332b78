# The Python package for the Python of the system, the component python: module, commands and their man pages. Wheels are
# made by tools/package-wheel.
option(NDT_PYTHON "The component python, where Debian expects it; Python_EXECUTABLE is that of the system with nanobind" OFF)
if(NOT NDT_PYTHON)
  return()
endif()
enable_language(CXX)
include(tools/python/module.cmake)
set(NDT_PYTHON_SITE lib/python3/dist-packages/ndtd)
install(DIRECTORY tools/python/ndtd/ DESTINATION ${NDT_PYTHON_SITE} COMPONENT python PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/python/_version.py ${CMAKE_CURRENT_BINARY_DIR}/_core.pyi DESTINATION ${NDT_PYTHON_SITE}
  COMPONENT python)
install(TARGETS _core LIBRARY DESTINATION ${NDT_PYTHON_SITE} COMPONENT python)

# A complete package in the build folder, to ask its commands for their help.
set(tree ${PROJECT_BINARY_DIR}/python_tree)
add_custom_target(python_tree ALL VERBATIM
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/tools/python/ndtd ${tree}/ndtd
  COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/python/_version.py $<TARGET_FILE:_core> ${tree}/ndtd)
add_dependencies(python_tree _core _core_stub)
add_dependencies(installed python_tree)
set_property(TARGET installed APPEND PROPERTY NDT_FILES $<TARGET_FILE:_core>)

find_program(NDT_HELP2MAN help2man)
file(STRINGS tools/python/pyproject.toml commands REGEX "^ndt-.* = \"ndtd[.]")
foreach(row ${commands})
  string(REGEX MATCH "^([a-z0-9-]+) = \"ndtd[.]([a-z0-9_]+):([a-z]+)\"" row "${row}")
  set(name ${CMAKE_MATCH_1})
  set(module ${CMAKE_MATCH_2})
  file(WRITE ${PROJECT_BINARY_DIR}/python/${name}
    "#!/usr/bin/python3\nimport sys\nfrom ndtd.${module} import ${CMAKE_MATCH_3}\nsys.exit(${CMAKE_MATCH_3}())\n")
  file(CHMOD ${PROJECT_BINARY_DIR}/python/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/python/${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python)
  if(NDT_HELP2MAN)
    file(STRINGS tools/python/ndtd/${module}.py about LIMIT_COUNT 1)
    string(REGEX REPLACE "^\"*[a-z0-9-]+: (.*)[.].*" "\\1" about "${about}")
    set(page ${PROJECT_BINARY_DIR}/python_man/${name}.1)
    add_custom_command(TARGET python_tree POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/python_man
      COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${tree} PYTHONDONTWRITEBYTECODE=1 COLUMNS=80
        ${NDT_HELP2MAN} --no-info --section=1 --name=${about} --source=ndtd --version-string=${PROJECT_VERSION} --output=${page}
        ${PROJECT_BINARY_DIR}/python/${name})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT python)
  endif()
endforeach()
