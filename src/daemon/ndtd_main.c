/* ndtd: the program. Everything it does is in the library; here are only the choice and the exit code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backends.h"
#include "ndtd/columns.h"
#include "ndtd/command_line.h"
#include "ndtd/map_compile.h"
#include "ndtd/options.h"

enum { EXIT_DONE = 0, EXIT_DIFFERS = 1, EXIT_USAGE = 2, EXIT_FAILED = 3 };

static void on_signal(int number)
{
    (void)number;
    ndtd_replay_stop();
}

static int fail(enum ndt_status status, const struct ndt_error *err)
{
    fprintf(stderr, "ndtd: %s\n", *err->text ? err->text : ndt_status_name(status));
    return status == NDT_ERR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

/* The lines of a plan, moved in under their backend. */
static void print_plan(const struct ndt_backend_ops *ops, const struct ndt_backend_config *config)
{
    char text[2000] = "";
    if (!ops->plan)
        return;
    ops->plan(config, text, sizeof(text));
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        printf("           %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void list_backends(const struct ndtd_command *command)
{
    char isas[128];
    for (size_t i = 0; ndt_backend_at(i); i++) {
        const struct ndt_backend_ops *ops = ndt_backend_at(i);
        struct ndt_error why = {""};
        int works = ops->probe(&why) == NDT_OK;
        printf("%-10s %s%s%s\n", ops->name, ops->about, works ? "" : "; not here: ", works ? "" : why.text);
        if (command->verbose)
            print_plan(ops, &command->settings.compute);
    }
    ndt_cpu_variants(isas, sizeof(isas));
    printf("CPU instruction sets (cpu.isa) that run here: %s\n", isas);
}

static int replay(const struct ndtd_command *command)
{
    struct ndt_error err = {""};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int differs;
    enum ndt_status status = ndtd_replay(&command->settings, &command->replay, &differs, &err);
    return status != NDT_OK ? fail(status, &err) : differs ? EXIT_DIFFERS : EXIT_DONE;
}

static int compile_map(const struct ndtd_command *command)
{
    struct ndt_error err = {""};
    enum ndt_status status = ndtd_map_compile(&command->settings, command->compiled, stdout, &err);
    return status != NDT_OK ? fail(status, &err) : EXIT_DONE;
}

static int act(const struct ndtd_command *command)
{
    switch (command->action) {
    case NDTD_REPLAY:
        return replay(command);
    case NDTD_COMPILE_MAP:
        return compile_map(command);
    case NDTD_PRINT_CONFIG:
        ndtd_options_print_config(stdout, &command->settings);
        break;
    case NDTD_CHECK_CONFIG:
        printf("%s: ok\n", command->config ? command->config : "defaults and --set");
        break;
    case NDTD_LIST_BACKENDS:
        list_backends(command);
        break;
    case NDTD_HELP_OPTIONS:
        ndtd_options_print_help(stdout);
        printf("\nColumns of --timing: row (iteration or scan), then\n");
        ndtd_columns_print_help(stdout);
        break;
    case NDTD_SHOW_VERSION:
        printf("ndtd " NDT_VERSION "\n");
        break;
    default:
        ndtd_command_help(stdout);
    }
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    struct ndt_error err = {""};
    struct ndtd_command command;
    enum ndt_status status = ndtd_command_parse(&command, argc, argv, &err);
    int code = status == NDT_OK ? act(&command) : fail(status, &err);
    if (fflush(stdout) != 0 && code == EXIT_DONE) {
        fprintf(stderr, "ndtd: standard output: %s\n", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
