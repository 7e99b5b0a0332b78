/** @file
 * @brief Command lines of the tools: one table of options, read by the parser, `--help`, the man pages and the
 * shell completion.
 *
 * A tool describes itself in a `struct tool_command` and calls tool_main() from main(). Each row of its option
 * table names an option, the variable that receives the value and the limits of the value; what the variable holds
 * before is the default, and `--help` prints it. A tool with sub-commands lists them in `commands` and has neither
 * options nor `run`; `TOOL help COMMAND` is then the same as `TOOL COMMAND --help`.
 *
 *     static struct { uint64_t count; const char *format; } args = {.count = 10};
 *     static const struct tool_option options[] = {
 *         {"count", "N", TOOL_COUNT, &args.count, .min = 1, .max = INFINITY, .help = "stop after N lines"},
 *         {"format", "NAME", TOOL_TEXT, &args.format, .required = 1, .help = "text or json"},
 *     };
 *     static const struct tool_command command = {
 *         .name = "ndt-x", .summary = "prints results", TOOL_OPTIONS(options), .run = run};
 *     int main(int argc, char **argv) { return tool_main(&command, argc, argv); }
 *
 * Options are written `--name VALUE` or `--name=VALUE`, before or after the operands; `--` ends them, and a name
 * may be abbreviated if it is unique. When an option is repeated, the last value counts. Every tool has `--help`,
 * `-h` and `--version`. An error is one line on standard error: `TOOL: what, where, which limit`. */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/pose.h"
#include "ndt/status.h"

/** Kind of an option's value, and the type of the variable that receives it. */
enum tool_kind {
    TOOL_FLAG,    /**< int, becomes 1; takes no value */
    TOOL_TEXT,    /**< const char *, borrowed from argv */
    TOOL_CHOICE,  /**< int: index of the word in `choices` */
    TOOL_COUNT,   /**< uint64_t: whole number from min to max; UINT64_MAX as default is not printed */
    TOOL_REAL,    /**< double from min to max; NAN as default is not printed */
    TOOL_SECONDS, /**< int64_t [ns]; the text is in seconds, min and max too (at most 1e9); default INT64_MAX is not
                     printed */
    TOOL_RANGE,   /**< struct tool_range: "3-7", "3-", "-7" or "3"; numbers from 1 */
    TOOL_POSE,    /**< struct ndt_pose: "x,y,z,qx,qy,qz,qw", quaternion of length 1 +- 1 %, normalised, or
                     "x,y,z,yaw", yaw in degrees */
    TOOL_LIST,    /**< struct tool_list: texts separated by commas */
    TOOL_REALS,   /**< struct tool_reals: numbers separated by commas, each from min to max */
    TOOL_CUSTOM,  /**< `parse` is called with `value` */
};

enum { TOOL_MAX_OPTIONS = 48, TOOL_MAX_ITEMS = 32, TOOL_ITEM_SIZE = 64 };

struct tool_range {
    uint64_t first, last; /**< inclusive range; UINT64_MAX: open end */
};

struct tool_list {
    size_t count;
    char items[TOOL_MAX_ITEMS][TOOL_ITEM_SIZE];
};

struct tool_reals {
    size_t count;
    double values[TOOL_MAX_ITEMS];
};

/** The words that are not options; they are borrowed from argv. */
struct tool_operands {
    size_t count;
    char **words;
};

struct tool_option {
    const char *name;     /**< name without the dashes */
    const char *argument; /**< name of the value in --help, such as "FILE"; NULL for TOOL_FLAG */
    enum tool_kind kind;
    void *value;                /**< the variable */
    double min, max;            /**< limits of numbers; no limits when both are 0 */
    const char *const *choices; /**< words of TOOL_CHOICE, NULL at the end */
    int required;
    int *given; /**< becomes 1 when the option occurs; may be NULL */
    /** Parser of TOOL_CUSTOM. The error line is prefixed with the name of the option. */
    enum ndt_status (*parse)(void *value, const char *text, struct ndt_error *err);
    const char *help; /**< a phrase without full stop; the default is added in parentheses */
};

struct tool_command {
    const char *name;    /**< name of the program or of the sub-command */
    const char *summary; /**< predicate without full stop: "prints the results of a running ndtd" */
    const char *details; /**< paragraphs for --help, separated by "\n\n"; may be NULL */
    const struct tool_option *options;
    size_t option_count;
    const char *operand; /**< name of the operands in --help, such as "BAG"; NULL when there are none */
    size_t operand_min, operand_max;
    struct tool_operands *operands;
    int takes_numbers; /**< the operand is numbers with commas: "-1,2,0,90" is none of the options */
    enum ndt_status (*run)(struct ndt_error *err);
    const struct tool_command *const *commands; /**< sub-commands, NULL at the end; NULL for none */
};

/** Table and size, for a designated initialiser. */
#define TOOL_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])
/** `count` operands exactly, for a designated initialiser. */
#define TOOL_OPERANDS(label, least, most, target)                                                                  \
    .operand = (label), .operand_min = (least), .operand_max = (most), .operands = (target)

/** Exit codes of every tool. */
enum tool_exit { TOOL_DONE = 0, TOOL_USAGE = 2, TOOL_FAILED = 3 };

/** The whole of main(): installs the handlers of SIGINT and SIGTERM, parses, runs, prints the error line. Returns
 * the exit code: TOOL_USAGE for NDT_ERR_ARGUMENT, TOOL_FAILED for any other failure. */
int tool_main(const struct tool_command *command, int argc, char **argv);

/** Whether SIGINT or SIGTERM arrived; blocking calls then end with EINTR. Long operations check it between records.
 */
int tool_interrupted(void);

/** Parses argv[1] to argv[argc - 1] into the variables of the table. `*help` and `*version` become 1 for --help and
 * --version; nothing is stored then. Permutes argv. NDT_ERR_ARGUMENT with one line for invalid arguments. For
 * tests; tools call tool_main(). */
NDT_MUST_CHECK enum ndt_status tool_parse(const struct tool_command *command, int argc, char **argv, int *help,
                                          int *version, struct ndt_error *err);

/** Values for TOOL_CUSTOM rows; the error line says which limit is not met. max may be INFINITY. */
NDT_MUST_CHECK enum ndt_status tool_parse_count(const char *text, double min, double max, uint64_t *out,
                                                struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status tool_parse_real(const char *text, double min, double max, double *out,
                                               struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status tool_parse_pose(const char *text, struct ndt_pose *out, struct ndt_error *err);
NDT_MUST_CHECK enum ndt_status tool_parse_list(const char *text, struct tool_list *out, struct ndt_error *err);

#endif
