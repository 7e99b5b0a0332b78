/* The command line of ndtd, from one table of flags (command_line.c); flags that stand for an option name
 * its row of the option table. Later settings win: defaults, then --config, then --set and flags in their
 * order. Every flag but --set is given once. */
#ifndef NDTD_COMMAND_LINE_H
#define NDTD_COMMAND_LINE_H

#include "ndtd/replay.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    NDTD_LIVE /* --config without another action */
};

struct ndtd_command {
    enum ndtd_action action;
    const char *action_flag; /* as written, for messages */
    const char *config;      /* path, NULL when there is none */
    const char *compiled;    /* what --compile-map writes */
    const char *table;       /* what --calibrate also writes */
    int verbose;             /* -v */
    const char *key_prefix;  /* of the files that --make-keys writes */
    const char *record;      /* a bag that the daemon writes from its start */
    struct ndtd_replay_options replay;
    struct ndtd_settings settings;
    int argc; /* borrowed, for reading everything again */
    char **argv;
};

/* Reads the configuration file too. Texts are borrowed from argv. NDT_ERR_ARGUMENT for everything wrong. */
NDT_MUST_CHECK enum ndt_status ndtd_command_parse(struct ndtd_command *command, int argc, char **argv,
                                                  struct ndt_error *err);
/* What --config and the flags say now: the file may have changed since. */
NDT_MUST_CHECK enum ndt_status ndtd_command_settings(const struct ndtd_command *command,
                                                     struct ndtd_settings *settings, struct ndt_error *err);
/* Short usage and the flags. */
void ndtd_command_help(FILE *file);

#ifdef __cplusplus
}
#endif
#endif
