#include "tool_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ndt/version.h"
#include "ndtd/nearest_name.h"
#include "ndtd/progress_line.h"

enum { CODE_HELP = 256, CODE_VERSION, CODE_FIRST, HELP_WIDTH = 80, HELP_COLUMN_MAX = 28 };

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

/* ---- values ---- */

/* Sets the limits of an option; both 0: none. */
static void limits(const struct tool_option *option, double *min, double *max)
{
    const int has_limits = option->min != 0 || option->max != 0;
    *min = has_limits ? option->min : -INFINITY;
    *max = has_limits ? option->max : INFINITY;
}

enum ndt_status tool_parse_count(const char *text, double min, double max, uint64_t *out, struct ndt_error *err)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    const double low = min > 0 ? min : 0;
    if (isdigit((unsigned char)text[0]) && !*end && !errno && (double)value >= low && (double)value <= max) {
        *out = value;
        return NDT_OK;
    }
    return isfinite(max)
               ? ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a whole number from %.0f to %.0f", text, low, max)
               : ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a whole number from %.0f to 2^64 - 1", text, low);
}

static enum ndt_status parse_number(const char *text, const char *what, double min, double max, double *out,
                                    struct ndt_error *err)
{
    char *end;
    const double value = strtod(text, &end);
    if (end != text && !*end && isfinite(value) && value >= min && value <= max) {
        *out = value;
        return NDT_OK;
    }
    if (isinf(min) && isinf(max))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a finite %s", text, what);
    if (isinf(max))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a %s from %g on", text, what, min);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a %s from %g to %g", text, what, min, max);
}

enum ndt_status tool_parse_real(const char *text, double min, double max, double *out, struct ndt_error *err)
{
    return parse_number(text, "number", min, max, out, err);
}

static enum ndt_status parse_seconds(const char *text, double min, double max, int64_t *out_ns,
                                     struct ndt_error *err)
{
    static const double LONGEST_S = 1e9;
    double seconds;
    const enum ndt_status status =
        parse_number(text, "number of seconds", fmax(min, 0), fmin(max, LONGEST_S), &seconds, err);
    if (status == NDT_OK)
        *out_ns = (int64_t)llround(seconds * 1e9);
    return status;
}

static enum ndt_status parse_bound(const char *text, size_t length, uint64_t *out, struct ndt_error *err)
{
    char number[24];
    snprintf(number, sizeof(number), "%.*s", (int)length, text);
    return length ? tool_parse_count(number, 1, INFINITY, out, err) : NDT_OK;
}

static enum ndt_status parse_range(const char *text, struct tool_range *out, struct ndt_error *err)
{
    struct tool_range range = {1, UINT64_MAX};
    const char *dash = strchr(text, '-');
    const size_t length = dash ? (size_t)(dash - text) : strlen(text);
    enum ndt_status status = parse_bound(text, length, &range.first, err);
    if (status == NDT_OK && dash)
        status = parse_bound(dash + 1, strlen(dash + 1), &range.last, err);
    else if (status == NDT_OK)
        range.last = range.first;
    if (status == NDT_OK && (length + (dash ? strlen(dash + 1) : 0) == 0 || range.first > range.last))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a range such as 3-7, 3- or -7", text);
    if (status == NDT_OK)
        *out = range;
    return status;
}

enum ndt_status tool_parse_list(const char *text, struct tool_list *out, struct ndt_error *err)
{
    out->count = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (out->count == TOOL_MAX_ITEMS)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "more than %d values", TOOL_MAX_ITEMS);
        if (length == 0 || length >= TOOL_ITEM_SIZE)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a list separated by single commas", text);
        memcpy(out->items[out->count], at, length);
        out->items[out->count++][length] = '\0';
        at += length;
        if (!*at)
            return NDT_OK;
    }
}

static enum ndt_status parse_reals(const char *text, double min, double max, struct tool_reals *out,
                                   struct ndt_error *err)
{
    struct tool_list list;
    enum ndt_status status = tool_parse_list(text, &list, err);
    out->count = 0;
    for (size_t i = 0; status == NDT_OK && i < list.count; i++)
        status = tool_parse_real(list.items[i], min, max, &out->values[out->count++], err);
    return status;
}

enum { POSE_YAW = 4, POSE_QUATERNION = 7 };

enum ndt_status tool_parse_pose(const char *text, struct ndt_pose *out, struct ndt_error *err)
{
    static const double RAD_PER_DEG = 0.017453292519943295;
    struct tool_reals list;
    if (parse_reals(text, -INFINITY, INFINITY, &list, NULL) != NDT_OK ||
        (list.count != POSE_YAW && list.count != POSE_QUATERNION))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.100s' is not x,y,z,qx,qy,qz,qw or x,y,z,yaw [m, deg]", text);
    const double *values = list.values;
    if (list.count == POSE_YAW) {
        *out = ndt_pose_from_rpy(values, (double[]){0, 0, values[3] * RAD_PER_DEG});
        return NDT_OK;
    }
    const double *q = values + 3;
    const double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (fabs(length - 1.0) > 0.01)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "the quaternion has length %.6g, not 1", length);
    memcpy(out->t_m, values, sizeof(out->t_m));
    memcpy(out->q_xyzw, q, sizeof(out->q_xyzw));
    (void)ndt_pose_normalize(out);
    return NDT_OK;
}

/* "text, json or tum" */
static void list_choices(const char *const *choices, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; choices[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 i == 0           ? ""
                                 : choices[i + 1] ? ", "
                                                  : " or ",
                                 choices[i]);
}

static enum ndt_status parse_choice(const struct tool_option *option, const char *text, struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(text);
    char hint[128], names[128];
    for (int i = 0; option->choices[i]; i++) {
        ndtd_nearest_consider(&nearest, option->choices[i]);
        if (strcmp(text, option->choices[i]) == 0) {
            *(int *)option->value = i;
            return NDT_OK;
        }
    }
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    list_choices(option->choices, names, sizeof(names));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not %s%s", text, names, hint);
}

static enum ndt_status store(const struct tool_option *option, const char *text, struct ndt_error *err)
{
    double min, max;
    limits(option, &min, &max);
    switch (option->kind) {
    case TOOL_FLAG:
        *(int *)option->value = 1;
        return NDT_OK;
    case TOOL_TEXT:
        *(const char **)option->value = text;
        return NDT_OK;
    case TOOL_CHOICE:
        return parse_choice(option, text, err);
    case TOOL_COUNT:
        return tool_parse_count(text, min, max, option->value, err);
    case TOOL_REAL:
        return tool_parse_real(text, min, max, option->value, err);
    case TOOL_SECONDS:
        return parse_seconds(text, min, max, option->value, err);
    case TOOL_RANGE:
        return parse_range(text, option->value, err);
    case TOOL_POSE:
        return tool_parse_pose(text, option->value, err);
    case TOOL_LIST:
        return tool_parse_list(text, option->value, err);
    case TOOL_REALS:
        return parse_reals(text, min, max, option->value, err);
    case TOOL_CUSTOM:
        break;
    }
    return option->parse(option->value, text, err);
}

/* ---- command line ---- */

static enum ndt_status unknown_option(const struct tool_command *command, const char *text, struct ndt_error *err)
{
    char word[64], hint[128] = "; --help explains";
    const char *name = text + strspn(text, "-");
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "="), name);
    struct ndtd_nearest nearest = ndtd_nearest_start(word);
    for (size_t i = 0; i < command->option_count; i++)
        ndtd_nearest_consider(&nearest, command->options[i].name);
    ndtd_nearest_consider(&nearest, "help");
    ndtd_nearest_consider(&nearest, "version");
    size_t alike = 0; /* options with the letter of a short one, which other commands have */
    for (size_t i = 0; word[0] && !word[1] && i < command->option_count; i++)
        if (command->options[i].name[0] == word[0] && alike++ == 0)
            nearest.name = command->options[i].name;
    if (nearest.name && alike <= 1)
        snprintf(hint, sizeof(hint), "; did you mean --%s?", nearest.name);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s: %s has no such option%s", text, command->name, hint);
}

static enum ndt_status take_operands(const struct tool_command *command, int argc, char **argv,
                                     struct ndt_error *err)
{
    const size_t count = (size_t)(argc - optind), most = command->operand ? command->operand_max : 0;
    if (count > most)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s: one argument too many for %s; --help explains",
                        argv[(size_t)optind + most], command->name);
    if (command->operand && count < command->operand_min)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s needs %s %s; --help explains", command->name,
                        strchr("AEIOU", command->operand[0]) ? "an" : "a", command->operand);
    if (command->operand)
        *command->operands = (struct tool_operands){count, argv + optind};
    return NDT_OK;
}

static enum ndt_status check_required(const struct tool_command *command, const int seen[], struct ndt_error *err)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].required && !seen[i])
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s needs --%s %s; --help explains", command->name,
                            command->options[i].name, command->options[i].argument);
    return NDT_OK;
}

static enum ndt_status take_option(const struct tool_command *command, size_t i, int seen[], struct ndt_error *err)
{
    const struct tool_option *option = &command->options[i];
    seen[i] = 1;
    if (option->given)
        *option->given = 1;
    const enum ndt_status status = store(option, optarg, err);
    return status == NDT_OK ? NDT_OK : ndt_fail_prefix(err, status, "--%s", option->name);
}

/* Makes one pass over argv. The first pass stores nothing, so that --help prints the defaults at any position. */
static enum ndt_status pass(const struct tool_command *command, int argc, char **argv, int is_first, int *help,
                            int *version, struct ndt_error *err)
{
    struct option known[TOOL_MAX_OPTIONS + 3] = {{"help", no_argument, NULL, CODE_HELP},
                                                 {"version", no_argument, NULL, CODE_VERSION}};
    int seen[TOOL_MAX_OPTIONS] = {0};
    for (size_t i = 0; i < command->option_count; i++)
        known[i + 2] = (struct option){command->options[i].name,
                                       command->options[i].argument ? required_argument : no_argument, NULL,
                                       CODE_FIRST + (int)i};
    opterr = 0;
    optind = 0; /* restarts the scan (GNU) */
    for (int code; (code = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (code == ':')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s: its value is missing", argv[optind - 1]);
        if (code == '?' && optopt >= CODE_HELP)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s: takes no value", argv[optind - 1]);
        if (code == '?')
            return unknown_option(command, argv[optind - 1], err);
        *help |= code == 'h' || code == CODE_HELP;
        *version |= code == CODE_VERSION;
        if (*help || *version)
            return NDT_OK;
        if (is_first)
            continue;
        const enum ndt_status status = take_option(command, (size_t)(code - CODE_FIRST), seen, err);
        if (status != NDT_OK)
            return status;
    }
    if (is_first)
        return NDT_OK;
    const enum ndt_status status = take_operands(command, argc, argv, err);
    return status == NDT_OK ? check_required(command, seen, err) : status;
}

/* Whether the word before a negative number is an option that takes it as its value. */
static int takes_value(const struct tool_command *command, const char *word)
{
    const size_t length = strlen(word);
    if (length < 3 || strncmp(word, "--", 2) != 0 || strchr(word, '='))
        return 0;
    for (size_t i = 0; i < command->option_count; i++)
        if (strncmp(command->options[i].name, word + 2, length - 2) == 0)
            return command->options[i].argument != NULL;
    return 0;
}

/* "-1.5,2,0,90" begins like an option; a space before it makes it an operand. */
static void protect_numbers(const struct tool_command *command, int argc, char **argv)
{
    static char number[256];
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (argv[i][0] == '-' && (isdigit((unsigned char)argv[i][1]) || argv[i][1] == '.') &&
            strlen(argv[i]) + 2 <= sizeof(number) && !takes_value(command, argv[i - 1])) {
            snprintf(number, sizeof(number), " %s", argv[i]);
            argv[i] = number;
            return;
        }
}

enum ndt_status tool_parse(const struct tool_command *command, int argc, char **argv, int *help, int *version,
                           struct ndt_error *err)
{
    *help = *version = 0;
    if (command->takes_numbers)
        protect_numbers(command, argc, argv);
    const enum ndt_status status = pass(command, argc, argv, 1, help, version, err);
    return status == NDT_OK && !*help && !*version ? pass(command, argc, argv, 0, help, version, err) : status;
}

/* ---- help ---- */

/* Wraps at spaces; begins at column `at`, and further lines at `indent`. */
static void print_wrapped(const char *text, int indent, int at)
{
    for (const char *word = text; *word;) {
        const int length = (int)strcspn(word, " \n");
        if (at > indent && at + 1 + length > HELP_WIDTH)
            at = printf("\n%*s", indent, "") - 1;
        at += printf("%s%.*s", at > indent ? " " : "", length, word);
        word += length;
        if (*word == '\n') {
            at = printf("\n%*s", word[1] == '\n' ? 0 : indent, "") - 1;
            word++;
        }
        word += strspn(word, " ");
    }
    putchar('\n');
}

static void default_text(const struct tool_option *option, char *out, size_t size)
{
    out[0] = '\0';
    if (option->required)
        return;
    if (option->kind == TOOL_CHOICE)
        snprintf(out, size, " (default: %s)", option->choices[*(const int *)option->value]);
    if (option->kind == TOOL_TEXT && *(const char *const *)option->value && **(const char *const *)option->value)
        snprintf(out, size, " (default: %s)", *(const char *const *)option->value);
    if (option->kind == TOOL_COUNT && *(const uint64_t *)option->value != UINT64_MAX)
        snprintf(out, size, " (default: %" PRIu64 ")", *(const uint64_t *)option->value);
    if (option->kind == TOOL_REAL && !isnan(*(const double *)option->value))
        snprintf(out, size, " (default: %g)", *(const double *)option->value);
    if (option->kind == TOOL_SECONDS && *(const int64_t *)option->value != INT64_MAX)
        snprintf(out, size, " (default: %g)", (double)*(const int64_t *)option->value * 1e-9);
}

static void print_options(const struct tool_command *command)
{
    int column = (int)strlen("  --version") + 2;
    for (size_t i = 0; i < command->option_count; i++) {
        const struct tool_option *option = &command->options[i];
        const int width = (int)(strlen(option->name) + (option->argument ? strlen(option->argument) + 1 : 0)) + 6;
        if (width > column && width <= HELP_COLUMN_MAX)
            column = width;
    }
    puts("\nOptions:");
    for (size_t i = 0; i < command->option_count; i++) {
        const struct tool_option *option = &command->options[i];
        char text[1024], standard[160];
        const int used = printf("  --%s%s%s", option->name, option->argument ? " " : "",
                                option->argument ? option->argument : "");
        default_text(option, standard, sizeof(standard));
        snprintf(text, sizeof(text), "%s%s", option->help, standard);
        printf("%*s", used + 2 <= column ? column - used : 2, "");
        print_wrapped(text, column, used + 2 <= column ? column : used + 2);
    }
    printf("  %-*s%s\n  %-*s%s\n", column - 2, "--help", "print this text and exit", column - 2, "--version",
           "print the version and exit");
}

static void print_help(const struct tool_command *program, const struct tool_command *command)
{
    const int is_sub = command != program;
    printf("Usage: %s%s%s", program->name, is_sub ? " " : "", is_sub ? command->name : "");
    if (command->commands)
        printf(" COMMAND [OPTION]...");
    if (command->operand)
        printf(command->operand_min ? " %s%s" : " [%s]%s", command->operand, command->operand_max > 1 ? "..." : "");
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].required)
            printf(" --%s %s", command->options[i].name, command->options[i].argument);
    printf("%s\n\n", command->commands ? "" : " [OPTION]...");
    printf("%s%s%s %s.\n", program->name, is_sub ? " " : "", is_sub ? command->name : "", command->summary);
    if (command->details) {
        putchar('\n');
        print_wrapped(command->details, 0, 0);
    }
    if (command->commands)
        puts("\nCommands:");
    for (size_t i = 0; command->commands && command->commands[i]; i++)
        printf("  %-12s%s\n", command->commands[i]->name, command->commands[i]->summary);
    print_options(command);
    if (command->commands)
        printf("\n'%s COMMAND --help' describes the options of a command.\n", program->name);
    puts("\nExit status: 0 done, 2 wrong usage, 3 failure while running.");
}

/* ---- programs ---- */

/* The sub-command named by argv[0]; NULL with the error line if it does not exist. */
static const struct tool_command *find_command(const struct tool_command *program, const char *name,
                                               struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(name);
    char hint[128];
    for (size_t i = 0; program->commands[i]; i++) {
        if (strcmp(program->commands[i]->name, name) == 0)
            return program->commands[i];
        ndtd_nearest_consider(&nearest, program->commands[i]->name);
    }
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    if (nearest.name)
        (void)ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a command%s", name, hint);
    else
        (void)ndt_fail(err, NDT_ERR_ARGUMENT, "'%.60s' is not a command; %s --help lists them", name,
                       program->name);
    return NULL;
}

/* errno of the write that failed may be overwritten by now. */
static int has_no_reader(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* Ends the program by SIGPIPE, like a program that does not handle the signal: `ndt-echo | head` is no error to
 * report. */
static void end_by_pipe(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

static enum ndt_status run_program(const struct tool_command *program, int argc, char **argv, struct ndt_error *err)
{
    const struct tool_command *command = program;
    int help = 0, version = 0;
    if (program->commands && argc > 1 && argv[1][0] != '-') {
        const int asks_help = strcmp(argv[1], "help") == 0;
        if (!asks_help || argc > 2) {
            command = find_command(program, argv[asks_help ? 2 : 1], err);
            if (!command)
                return NDT_ERR_ARGUMENT;
        }
        help = asks_help;
        argc--;
        argv++;
    }
    enum ndt_status status = help ? NDT_OK : tool_parse(command, argc, argv, &help, &version, err);
    if (status != NDT_OK)
        return status;
    if (help)
        print_help(program, command);
    else if (version)
        printf("%s (ndtd) %s (commit %s)\n", program->name, ndt_version(), ndt_commit());
    else if (command->run)
        status = command->run(err);
    else
        return ndt_fail(err, NDT_ERR_ARGUMENT, "a command is missing; %s --help lists them", program->name);
    const int is_written = fflush(stdout) == 0 && !ferror(stdout);
    if (!is_written && has_no_reader())
        end_by_pipe();
    if (!is_written && status == NDT_OK)
        status = ndt_fail(err, NDT_ERR_IO, "standard output: %s", strerror(errno));
    return status;
}

int tool_main(const struct tool_command *command, int argc, char **argv)
{
    struct ndt_error err = {""};
    /* No SA_RESTART: blocking calls end with EINTR. */
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    ndtd_progress_line_enable();
    const enum ndt_status status = run_program(command, argc, argv, &err);
    if (status == NDT_OK)
        return TOOL_DONE;
    fprintf(stderr, "%s: %s\n", command->name, err.text);
    return status == NDT_ERR_ARGUMENT ? TOOL_USAGE : TOOL_FAILED;
}
