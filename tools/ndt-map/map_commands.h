/** @file
 * @brief The commands of ndt-map. */
#ifndef MAP_COMMANDS_H
#define MAP_COMMANDS_H

#include "tool_options.h"

/* Replaces the process by ndt-map-build with the same arguments, behind argv[0]; the exit code where that fails. */
int map_build_main(char **argv);

extern const struct tool_command map_info_command, map_tile_command, map_picture_command, map_quality_command;

#endif
