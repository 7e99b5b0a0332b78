/** @file
 * @brief ndt-ctl: what its sub-commands share. */
#ifndef CTL_H
#define CTL_H

#include "control_client.h"
#include "tool_options.h"

/** Exit code besides those of every tool: the daemon answers, and the answer is no. */
enum { CTL_NO = 1 };

/** Values of the command line. */
struct ctl {
    const char *control;
    struct live_keys keys;
    int json;
    int64_t timeout_ns;
    struct tool_operands operands;
    int is_no; /**< the exit code is CTL_NO; a line on standard error says why */
};
extern struct ctl ctl;

/* clang-format off */
/** The option rows of every sub-command. */
#define CTL_OPTIONS                                                                                                \
    {"json", NULL, TOOL_FLAG, &ctl.json, .help = "print the reply as it is, as one JSON object"},                  \
    {"timeout", "S", TOOL_SECONDS, &ctl.timeout_ns, 1e-3, 2e6, .help = "wait S seconds for the daemon"},           \
    LIVE_CONTROL_OPTION(ctl.control),                                                                              \
    LIVE_KEY_OPTIONS(ctl.keys)
/* clang-format on */

/** Sub-commands with files of their own. */
extern const struct tool_command ctl_localize_command, ctl_map_command, ctl_tile_command, ctl_health_command;

/** Opens the connection of the command line. Each reply may take ctl.timeout_ns. */
NDT_MUST_CHECK enum ndt_status ctl_open(struct control_client **client, struct ndt_error *err);
/** Connects, asks, prints the reply (its values as text, nothing where it has none). */
NDT_MUST_CHECK enum ndt_status ctl_request(const struct ndt_request_message *request, struct ndt_error *err);
/** Prints the last reply, as text or as it is. */
NDT_MUST_CHECK enum ndt_status ctl_print(struct control_client *client, struct ndt_error *err);
/** The answer is no: says why on standard error, and the exit code is CTL_NO. */
void ctl_say_no(const char *format, ...) NDT_PRINTF(1, 2);
/** Sleeps between two questions. */
void ctl_nap(void);

#endif
