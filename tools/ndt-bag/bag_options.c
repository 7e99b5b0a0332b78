#include "bag_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndtd/nearest_name.h"

enum { CODE_FIRST = 256, HELP_COLUMN = 24 };

static enum ndt_status unknown_option(const struct bag_command *command, const char *text, struct ndt_error *err)
{
    char word[64], hint[128] = "";
    const char *name = text + strspn(text, "-");
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "="), name);
    struct ndtd_nearest nearest = ndtd_nearest_start(word);
    for (size_t i = 0; i < command->option_count; i++)
        ndtd_nearest_offer(&nearest, command->options[i].name);
    if (nearest.name)
        snprintf(hint, sizeof(hint), "; did you mean --%s?", nearest.name);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: %s has no such option%s", text, command->name, hint);
}

static enum ndt_status take_operands(const struct bag_command *command, int argc, char **argv,
                                     struct bag_args *args, struct ndt_error *err)
{
    if (command->operand && optind < argc)
        args->operand = argv[optind++];
    if (optind < argc)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: one argument too many for %s", argv[optind], command->name);
    if (command->operand && !args->operand)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s needs a %s; --help explains", command->name, command->operand);
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].required && !args->values[i])
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s needs --%s %s; --help explains", command->name,
                            command->options[i].name, command->options[i].value);
    return NDT_OK;
}

enum ndt_status bag_args_parse(const struct bag_command *command, int argc, char **argv, struct bag_args *args,
                               int *help, struct ndt_error *err)
{
    struct option known[BAG_MAX_OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
    for (size_t i = 0; i < command->option_count; i++)
        known[i + 1] =
            (struct option){command->options[i].name, command->options[i].value ? required_argument : no_argument,
                            NULL, CODE_FIRST + (int)i};
    memset(args, 0, sizeof(*args));
    *help = 0;
    opterr = 0;
    optind = 1;
    int code;
    while ((code = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (code == 'h') {
            *help = 1;
            return NDT_OK;
        }
        if (code == ':')
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: its value is missing", argv[optind - 1]);
        if (code == '?' && optopt >= CODE_FIRST)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: takes no value", argv[optind - 1]);
        if (code == '?')
            return unknown_option(command, argv[optind - 1], err);
        args->values[code - CODE_FIRST] = optarg ? optarg : "";
    }
    return take_operands(command, argc, argv, args, err);
}

void bag_command_help(FILE *file, const struct bag_command *command)
{
    fprintf(file, "usage: ndt-bag %s%s%s", command->name, command->operand ? " " : "",
            command->operand ? command->operand : "");
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].required)
            fprintf(file, " --%s %s", command->options[i].name, command->options[i].value);
    fprintf(file, " [options]\n\nndt-bag %s %s.\n%s\n", command->name, command->summary, command->details);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct bag_option *option = &command->options[i];
        const int used =
            fprintf(file, "  --%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
        fprintf(file, "%*s%s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", option->help);
    }
    fprintf(file, "  %-*s%s\n", HELP_COLUMN - 2, "--help", "this text");
}

enum ndt_status bag_parse_count(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out,
                                struct ndt_error *err)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || value < min || value > max)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: '%s' is not a whole number from %llu to %llu", name, text,
                        (unsigned long long)min, (unsigned long long)max);
    *out = value;
    return NDT_OK;
}

enum ndt_status bag_parse_seconds(const char *name, const char *text, int64_t *out_ns, struct ndt_error *err)
{
    static const double LIMIT_S = 1e9;
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= LIMIT_S))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: '%s' is not a number of seconds from 0 to %g", name, text,
                        LIMIT_S);
    *out_ns = (int64_t)llround(value * 1e9);
    return NDT_OK;
}

static enum ndt_status parse_bound(const char *name, const char *text, size_t length, uint64_t *out,
                                   struct ndt_error *err)
{
    char number[24];
    snprintf(number, sizeof(number), "%.*s", (int)length, text);
    return length ? bag_parse_count(name, number, 1, UINT64_MAX, out, err) : NDT_OK;
}

enum ndt_status bag_parse_range(const char *name, const char *text, uint64_t *first, uint64_t *last,
                                struct ndt_error *err)
{
    const char *dash = strchr(text, '-');
    const size_t length = dash ? (size_t)(dash - text) : strlen(text);
    *first = 1;
    *last = UINT64_MAX;
    enum ndt_status status = parse_bound(name, text, length, first, err);
    if (status == NDT_OK && dash)
        status = parse_bound(name, dash + 1, strlen(dash + 1), last, err);
    else if (status == NDT_OK)
        *last = *first;
    if (status == NDT_OK && (length + (dash ? strlen(dash + 1) : 0) == 0 || *first > *last))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: '%s' is no range such as 3-7, 3- or -7", name, text);
    return status;
}

static enum ndt_status check_quaternion(const char *name, struct ndt_pose *pose, struct ndt_error *err)
{
    const double *q = pose->q_xyzw;
    const double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (fabs(length - 1.0) > 0.01)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: the quaternion has length %.6g, not 1", name, length);
    (void)ndt_pose_normalize(pose);
    return NDT_OK;
}

enum ndt_status bag_parse_pose(const char *name, const char *text, struct ndt_pose *out, struct ndt_error *err)
{
    double values[7];
    const char *at = text;
    for (int i = 0; i < 7; i++) {
        char *end;
        values[i] = strtod(at, &end);
        if (end == at || *end != (i < 6 ? ',' : '\0') || !isfinite(values[i]))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s: '%s' is not x,y,z,qx,qy,qz,qw", name, text);
        at = end + 1;
    }
    memcpy(out->t_m, values, sizeof(out->t_m));
    memcpy(out->q_xyzw, values + 3, sizeof(out->q_xyzw));
    return check_quaternion(name, out, err);
}
