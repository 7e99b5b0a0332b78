/** @file
 * @brief ndt-map: the program. */
#include "map_commands.h"

static const struct tool_command *const commands[] = {&map_info_command, &map_tile_command, &map_picture_command,
                                                      &map_quality_command, NULL};

static const struct tool_command program = {
    .name = "ndt-map",
    .summary = "describes maps, tiles them, draws them and rates their places",
    .details =
        "A map is what ndtd --map takes: a point cloud (.pcd, .ply, .bin), a folder of tiles with or without "
        "Autoware's pointcloud_map_metadata.yaml, or a compiled map (.ndtmap), which has no points.",
    .commands = commands,
};

int main(int argc, char **argv)
{
    return tool_main(&program, argc, argv);
}
