# NDT_COMMIT: the commit that is built, 12 digits: the one that is given, the one that `git archive` wrote into
# commit.txt, or that of the working tree when it was configured; else "unknown". A new commit configures again.
set(NDT_COMMIT "" CACHE STRING "The commit that --version tells; empty: found out")
if(NDT_COMMIT)
  return()
endif()
set(NDT_COMMIT unknown)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt commit LIMIT_COUNT 1)
find_program(NDT_GIT git)
if(commit MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${commit} 0 12 NDT_COMMIT)
elseif(NDT_GIT AND EXISTS ${PROJECT_SOURCE_DIR}/.git) # not a repository around it
  execute_process(COMMAND ${NDT_GIT} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
    RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${NDT_GIT} -C ${PROJECT_SOURCE_DIR} rev-parse --path-format=absolute --git-path logs/HEAD
    OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(NDT_COMMIT ${commit})
  endif()
  if(log AND EXISTS ${log})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
  endif()
endif()
