#include "tool_main.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { DONE = 0, USAGE = 2, FAILED = 3, HELP_COLUMN = 28 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

int tool_interrupted(void)
{
    return interrupted;
}

static void print_help(const struct bag_command *command)
{
    printf("usage: %s", command->name);
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].required)
            printf(" --%s %s", command->options[i].name, command->options[i].value);
    printf(" [options]\n\n%s %s.\n%s\n", command->name, command->summary, command->details);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct bag_option *option = &command->options[i];
        const int used =
            printf("  --%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
        printf("%*s%s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", option->help);
    }
    printf("  %-*s%s\n\nExit codes: 0 done, 2 usage, 3 failure while running.\n", HELP_COLUMN - 2, "--help",
           "this text");
}

int tool_main(const struct bag_command *command, int argc, char **argv)
{
    static char name[64];
    struct ndt_error err = {""};
    struct bag_args args;
    int help = 0;
    /* No SA_RESTART: whoever waits shall hear of it. */
    const struct sigaction action = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    snprintf(name, sizeof(name), "%s", command->name);
    if (argc > 0)
        argv[0] = name;
    enum ndt_status status = bag_args_parse(command, argc, argv, &args, &help, &err);
    if (status == NDT_OK && help)
        print_help(command);
    else if (status == NDT_OK)
        status = command->run(&args, &err);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == NDT_OK)
        status = ndt_fail(&err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    if (status == NDT_OK)
        return DONE;
    fprintf(stderr, "%s: %s\n", command->name, err.text);
    return status == NDT_ERR_ARGUMENT ? USAGE : FAILED;
}
