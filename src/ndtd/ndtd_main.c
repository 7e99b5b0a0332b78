/** @file
 * @brief The program ndtd: dispatches to the library and maps its status to an exit code. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "backends.h"
#include "ndt/version.h"
#include "ndtd/timing_schema.h"
#include "ndtd/command_line.h"
#include "ndtd/backend_benchmark.h"
#include "ndtd/curve_keys.h"
#include "ndtd/live.h"
#include "ndtd/log.h"
#include "ndtd/map_compile.h"
#include "ndtd/options.h"
#include "ndtd/progress_line.h"

enum { EXIT_DONE = 0, EXIT_CHECK = 1, EXIT_USAGE = 2, EXIT_FAILED = 3 };

static void on_signal(int number)
{
    (void)number;
    ndtd_replay_stop();
}

static int finish(enum ndt_status status, const struct ndt_error *err)
{
    if (status == NDT_OK)
        return EXIT_DONE;
    fprintf(stderr, "ndtd: %s\n", *err->text ? err->text : ndt_status_name(status));
    return status == NDT_ERR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

static int replay(const struct ndtd_command *command)
{
    struct ndt_error err = {""};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* not under nohup; an import has no terminal to end it */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGCHLD, SIG_DFL); /* the caller may ignore it, and the status of an import would be lost */
    int failed = 0;
    const int code = finish(ndtd_replay(&command->settings, &command->replay, &failed, &err), &err);
    return code == EXIT_DONE && failed ? EXIT_CHECK : code;
}

static enum ndt_status reread(void *context, struct ndtd_settings *settings, struct ndt_error *err)
{
    return ndtd_command_settings(context, settings, err);
}

static int live(struct ndtd_command *command)
{
    struct ndt_error err = {""};
    const struct ndtd_live_options options = {
        .record = command->record, .configs = &command->configs, .reread = reread, .context = command};
    const enum ndt_status status = ndtd_live(&command->settings, &options, &err);
    if (status != NDT_OK && !ndtd_log_is_read(1000))
        return EXIT_FAILED;                                                     /* there is no reader */
    return status != NDT_OK && !*err.text ? EXIT_FAILED : finish(status, &err); /* without a text, the log has it */
}

static void print_result_keys(FILE *file)
{
    fprintf(file, "\nKeys of --results, of the message `result` and of ndt-echo --format json\n");
    for (size_t i = 0; ndt_result_key_at(i); i++) {
        const struct ndt_message_key *key = ndt_result_key_at(i);
        fprintf(file, "    %-22s %-11s %s\n", key->name, key->unit, key->about);
    }
}

static int make_keys(const char *prefix)
{
    struct ndt_error err = {""};
    const enum ndt_status status = ndtd_make_keys(prefix, &err);
    if (status == NDT_OK)
        printf("%s.secret stays on this machine, %s.public goes to the other side.\n"
               "Of the daemon: sockets.server_secret_key_file is %s.secret, its clients take --curve-server-key "
               "%s.public.\n"
               "Of a client: it takes --curve-keys %s.secret, and the line of %s.public goes into the daemon's "
               "sockets.allowed_clients_file.\n",
               prefix, prefix, prefix, prefix, prefix, prefix);
    return finish(status, &err);
}

static int act(struct ndtd_command *command)
{
    char names[4 * NDTD_PATH_MAX];
    struct ndt_error err = {""};
    switch (command->action) {
    case NDTD_REPLAY:
        return replay(command);
    case NDTD_LIVE:
        return live(command);
    case NDTD_MAKE_KEYS:
        return make_keys(command->key_prefix);
    case NDTD_COMPILE_MAP:
        return finish(ndtd_map_compile(&command->settings, command->compiled, stdout, &err), &err);
    case NDTD_AUTOTUNE:
        return finish(ndtd_backend_benchmark(&command->settings, command->table, stdout, &err), &err);
    case NDTD_PRINT_CONFIG:
        ndtd_options_print_config(stdout, &command->settings, NDTD_ALL_OPTIONS);
        break;
    case NDTD_CHECK_CONFIG:
        if (ndtd_live_check(&command->settings, &err) != NDT_OK)
            return finish(NDT_ERR_ARGUMENT, &err);
        printf("%s: ok\n", command->configs.count ? ndtd_config_files_text(&command->configs, names, sizeof(names))
                                                  : "defaults and --set");
        break;
    case NDTD_LIST_BACKENDS:
        ndtd_backends_print(stdout, &command->settings.compute, command->verbose);
        break;
    case NDTD_HELP_OPTIONS:
        ndtd_options_print_help(stdout, command->all ? NDTD_ALL_OPTIONS : NDTD_COMMON_OPTIONS);
        ndtd_timing_print_help(stdout);
        print_result_keys(stdout);
        break;
    case NDTD_SHOW_VERSION:
        printf("ndtd %s (commit %s)\n", ndt_version(), ndt_commit());
        break;
    default:
        ndtd_command_help(stdout);
    }
    return EXIT_DONE;
}

/* Opens standard input, output and error if they are closed, so that no file or socket takes their numbers. */
static int open_streams(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= 2)
        ;
    return fd < 0 || close(fd) == 0;
}

int main(int argc, char **argv)
{
    if (!open_streams())
        return EXIT_FAILED;
    struct ndt_error err = {""};
    struct ndtd_command command;
    ndt_backends_own_process();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of a file fails: output files stay whole or absent */
    enum ndt_status status = ndtd_command_parse(&command, argc, argv, &err);
    ndtd_faults_print(&command.faults, stderr);
    if (status == NDT_OK && command.action != NDTD_LIVE)
        ndtd_progress_line_enable();
    const int code = status == NDT_OK           ? act(&command)
                     : command.faults.count > 0 ? EXIT_USAGE
                                                : finish(status, &err);
    if (fflush(stdout) == 0 || code != EXIT_DONE)
        return code;
    perror("ndtd: standard output");
    return EXIT_FAILED;
}
