/* ndt-bag: makes bags from files, looks into them, cuts them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bag_tool.h"
#include "ndtd/nearest_name.h"

/* Exit codes, as of every program of the house. */
enum { DONE = 0, USAGE = 2, FAILED = 3 };

static const struct bag_command *const commands[] = {
    &bag_pack_command, &bag_info_command, &bag_check_command, &bag_cut_command, &bag_dump_command,
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

int bag_interrupted(void)
{
    return interrupted;
}

static void print_help(void)
{
    printf("usage: ndt-bag COMMAND ...\n\n"
           "A bag is a recorded drive: the raw messages, as they come over the wire.\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-8s%s\n", commands[i]->name, commands[i]->summary);
    printf("\nndt-bag COMMAND --help explains a command.\n"
           "Exit codes: 0 done, 2 usage, 3 failure while running (check: the bag is damaged).\n");
}

static const struct bag_command *find_command(const char *name, struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(name);
    char hint[128];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
        ndtd_nearest_offer(&nearest, commands[i]->name);
    }
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    (void)ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is no command%s%s", name, hint,
                   nearest.name ? "" : "; ndt-bag --help lists them");
    return NULL;
}

static enum ndt_status run_command(int argc, char **argv, struct ndt_error *err)
{
    struct bag_args args;
    int help = 0;
    const struct bag_command *command = find_command(argv[0], err);
    if (!command)
        return NDT_ERR_ARGUMENT;
    enum ndt_status status = bag_args_parse(command, argc, argv, &args, &help, err);
    if (status == NDT_OK && help)
        bag_command_help(stdout, command);
    else if (status == NDT_OK)
        status = command->run(&args, err);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == NDT_OK)
        status = ndt_fail(err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    return status;
}

int main(int argc, char **argv)
{
    struct ndt_error err = {""};
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help();
        return fflush(stdout) == 0 ? DONE : FAILED;
    }
    const enum ndt_status status =
        argc > 1 ? run_command(argc - 1, argv + 1, &err)
                 : ndt_fail(&err, NDT_ERR_ARGUMENT, "a command is missing; ndt-bag --help lists them");
    if (status == NDT_OK)
        return DONE;
    fprintf(stderr, "ndt-bag: %s\n", err.text);
    return status == NDT_ERR_ARGUMENT ? USAGE : FAILED;
}
