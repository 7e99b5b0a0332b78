/** @file
 * @brief ndt-map build: hands over to ndt-map-build of the Python package. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "map_commands.h"
#include "ndtd/child_program.h"

static const char NAME[] = "ndt-map build";

int map_build_main(char **argv)
{
    char program[PATH_MAX];
    struct ndt_error why = {""};
    if (ndtd_child_program_find(program, "NDT_MAP_BUILD", "ndt-map-build", &why) != NDT_OK) {
        if (*why.text)
            fprintf(stderr, "%s: %s\n", NAME, why.text);
        else
            fprintf(stderr,
                    "%s: ndt-map-build, which makes maps, is not installed: in the sources of ndtd, pip install "
                    "'./tools/python[ros,map]'\n",
                    NAME);
        return TOOL_FAILED;
    }
    execv(program, argv);
    fprintf(stderr, "%s: cannot start %s: %s\n", NAME, program, strerror(errno));
    return TOOL_FAILED;
}
