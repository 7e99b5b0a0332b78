# ndt-web: a library of its parts, which tests link, and the program. Left out without libmicrohttpd.
file(GLOB web_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
list(REMOVE_ITEM web_sources ${CMAKE_CURRENT_LIST_DIR}/web_main.c)
file(GLOB web_page CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/page/*.html ${CMAKE_CURRENT_LIST_DIR}/page/*.js
  ${CMAKE_CURRENT_LIST_DIR}/page/*.css ${CMAKE_CURRENT_LIST_DIR}/page/*.svg)
set(web_page_table ${PROJECT_BINARY_DIR}/web_page_table.c)
add_custom_command(OUTPUT ${web_page_table} VERBATIM
  COMMAND ${CMAKE_COMMAND} -DOUT=${web_page_table} -P ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake -- ${web_page}
  DEPENDS ${web_page} ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake)

add_library(ndt_web_parts OBJECT ${web_sources} ${web_page_table})
target_include_directories(ndt_web_parts PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(ndt_web_parts PUBLIC ndt_tool_common PkgConfig::MICROHTTPD m PRIVATE ndt_flags)
add_executable(ndt-web ${CMAKE_CURRENT_LIST_DIR}/web_main.c)
target_link_libraries(ndt-web PRIVATE ndt_web_parts ndt_flags)
install(TARGETS ndt-web)
