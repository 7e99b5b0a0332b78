/* What the programs with one command share: options, --help, exit codes, interruption. The table of options and its
 * parser are those of ndt-bag's commands (bag_options.h). */
#ifndef TOOL_MAIN_H
#define TOOL_MAIN_H

#include "bag_options.h"

/* The whole of main(): parses, runs command->run, writes the error line. Exit codes: 0 done, 2 usage, 3 failure. */
int tool_main(const struct bag_command *command, int argc, char **argv);
/* Whether SIGINT or SIGTERM came; they end waiting calls with EINTR. */
int tool_interrupted(void);

#endif
