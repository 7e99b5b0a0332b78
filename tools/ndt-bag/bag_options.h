/* The command line of a subcommand: a table of options, read by the parser and by --help alike. */
#ifndef BAG_OPTIONS_H
#define BAG_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt/pose.h"
#include "ndt/status.h"

enum { BAG_MAX_OPTIONS = 16 };

struct bag_option {
    const char *name;  /* without the dashes */
    const char *value; /* what follows it, such as "DIR"; NULL when nothing does */
    const char *help;  /* one line */
    int required;
};

/* What was given. `values` are in the order of the table: NULL when absent, "" for an option without value. */
struct bag_args {
    const char *values[BAG_MAX_OPTIONS];
    const char *operand; /* the bag; NULL for commands that take none */
};

struct bag_command {
    const char *name;
    const char *operand; /* such as "BAG", or NULL */
    const char *summary; /* one line */
    const char *details; /* paragraphs of --help, or "" */
    const struct bag_option *options;
    size_t option_count;
    enum ndt_status (*run)(const struct bag_args *args, struct ndt_error *err);
};

/* argv[0] is the command's name. *help becomes 1 when --help was among the options. */
NDT_MUST_CHECK enum ndt_status bag_args_parse(const struct bag_command *command, int argc, char **argv,
                                              struct bag_args *args, int *help, struct ndt_error *err);
void bag_command_help(FILE *file, const struct bag_command *command);

/* Values of options; `name` is for the error line. */
NDT_MUST_CHECK enum ndt_status bag_parse_count(const char *name, const char *text, uint64_t min, uint64_t max,
                                               uint64_t *out, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status bag_parse_seconds(const char *name, const char *text, int64_t *out_ns,
                                                 struct ndt_error *err);
/* "3-7", "3-", "-7" or "3"; numbers from 1, both ends belong to it. */
NDT_MUST_CHECK enum ndt_status bag_parse_range(const char *name, const char *text, uint64_t *first, uint64_t *last,
                                               struct ndt_error *err);
/* "x,y,z,qx,qy,qz,qw" with a quaternion of length 1 (up to 1 %, then scaled). */
NDT_MUST_CHECK enum ndt_status bag_parse_pose(const char *name, const char *text, struct ndt_pose *out,
                                              struct ndt_error *err);

#endif
