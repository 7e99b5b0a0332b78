/* The subcommands of ndt-bag: one file and one row in the table of bag_main.c each. */
#ifndef BAG_TOOL_H
#define BAG_TOOL_H

#include "bag_options.h"

extern const struct bag_command bag_pack_command;
extern const struct bag_command bag_info_command;
extern const struct bag_command bag_check_command;
extern const struct bag_command bag_cut_command;
extern const struct bag_command bag_dump_command;

/* Whether SIGINT or SIGTERM came; long work asks between records. */
int bag_interrupted(void);

#endif
