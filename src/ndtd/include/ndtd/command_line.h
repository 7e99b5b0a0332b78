/** @file
 * @brief The command line of ndtd, from one table of flags (command_line.c).
 *
 * A flag that sets an option names its row of the option table. Later settings override earlier ones: defaults,
 * then each --config, then --set and flags in their order. Every flag except --config and --set may occur at most
 * once. */
#ifndef NDTD_COMMAND_LINE_H
#define NDTD_COMMAND_LINE_H

#include "ndtd/config_file.h"
#include "ndtd/replay.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The task of this run of ndtd. */
enum ndtd_action {
    NDTD_NO_ACTION,
    NDTD_HELP,
    NDTD_HELP_OPTIONS,
    NDTD_SHOW_VERSION,
    NDTD_LIST_BACKENDS,
    NDTD_PRINT_CONFIG,
    NDTD_CHECK_CONFIG,
    NDTD_COMPILE_MAP,
    NDTD_AUTOTUNE,
    NDTD_REPLAY,
    NDTD_MAKE_KEYS,
    NDTD_LIVE /**< --config or --map without another action */
};

/** A parsed command line. */
struct ndtd_command {
    enum ndtd_action action;
    const char *action_flag;          /**< flag of the action, for messages */
    struct ndtd_config_files configs; /**< --config */
    const char *compiled;             /**< output of --compile-map */
    const char *table;                /**< second output of --autotune; may be NULL (disabled) */
    int all;                          /**< --all: with --help-options */
    int verbose;                      /**< -v: more about backends, or about files of Autoware */
    const char *key_prefix;           /**< prefix of the files that --make-keys writes */
    const char *record;               /**< bag that the daemon records from its start; may be NULL (disabled) */
    struct ndtd_replay_options replay;
    struct ndtd_settings settings;
    struct ndtd_faults faults; /**< all faults of the command line and the configuration */
    int argc;                  /**< borrowed, for ndtd_command_settings */
    char **argv;
};

/** Parses the command line and reads the configuration files. Texts are borrowed from argv. NDT_ERR_ARGUMENT with
 * the first of command->faults; the other members are then unspecified. */
NDT_MUST_CHECK enum ndt_status ndtd_command_parse(struct ndtd_command *command, int argc, char **argv,
                                                  struct ndt_error *err);
/** Reads every --config and the flags again, for a reload of changed files. */
NDT_MUST_CHECK enum ndt_status ndtd_command_settings(const struct ndtd_command *command,
                                                     struct ndtd_settings *settings, struct ndt_error *err);
/** Prints the usage and the flags. */
void ndtd_command_help(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
