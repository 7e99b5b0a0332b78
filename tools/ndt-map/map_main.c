/** @file
 * @brief ndt-map: the program. */
#include <string.h>

#include "map_commands.h"

static const struct tool_command *const commands[] = {&map_info_command, &map_tile_command, &map_picture_command,
                                                      &map_quality_command, NULL};

static const struct tool_command program = {
    .name = "ndt-map",
    .summary = "makes maps, describes them, tiles them, draws them and rates their places",
    .details =
        "A map is what ndtd --map takes: a point cloud (.pcd, .ply, .bin), a folder of tiles with or without "
        "Autoware's pointcloud_map_metadata.yaml, or a compiled map (.ndtmap), which has no points.\n\n"
        "ndt-map build RECORDING... -o MAP makes a map from recordings of drives: ndt-map build --help.\n"
        "ndt-map from-glim DIR -o MAP makes one from a dump of GLIM: ndt-map from-glim --help.\n"
        "ndt-map update MAP RECORDING... -o OVERLAY finds what has changed since: ndt-map update --help.\n"
        "ndt-map changes OVERLAY shows what an overlay changes: ndt-map changes --help.\n"
        "ndt-import map IN... -o DIR makes one from LAS, text, arrays and other clouds: ndt-import map --help.",
    .commands = commands,
};

int main(int argc, char **argv)
{
    static const char *const in_python[] = {"from-glim", "update", "changes"};
    if (argc > 1 && strcmp(argv[1], "build") == 0)
        return map_build_main(argv + 1);
    for (size_t i = 0; argc > 1 && i < sizeof(in_python) / sizeof(in_python[0]); i++)
        if (strcmp(argv[1], in_python[i]) == 0)
            return map_build_main(argv); /* map_build_main reads the word itself */
    return tool_main(&program, argc, argv);
}
