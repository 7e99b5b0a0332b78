/* The option parser of the tools: every type of value, its limits, and errors of one line. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_tests.h"
#include "tool_options.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

static struct {
    int flag, given, colour;
    const char *text;
    uint64_t count;
    double real;
    int64_t seconds_ns;
    struct tool_range range;
    struct ndt_pose pose;
    struct tool_list list;
    struct tool_reals reals;
    char custom[16];
    struct tool_operands operands;
} args;

static enum ndt_status parse_custom(void *value, const char *text, struct ndt_error *err)
{
    if (strlen(text) > 3)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "'%s' is longer than 3", text);
    strcpy(value, text);
    return NDT_OK;
}

static const struct tool_option options[] = {
    {"flag", NULL, TOOL_FLAG, &args.flag, .help = "h"},
    {"text", "T", TOOL_TEXT, &args.text, .given = &args.given, .help = "h"},
    {"colour", "C", TOOL_CHOICE, &args.colour, .choices = colours, .help = "h"},
    {"count", "N", TOOL_COUNT, &args.count, 2, 10, .help = "h"},
    {"many", "N", TOOL_COUNT, &args.count, .help = "h"},
    {"real", "R", TOOL_REAL, &args.real, -1, 1.5, .help = "h"},
    {"any-real", "R", TOOL_REAL, &args.real, .help = "h"},
    {"wait", "S", TOOL_SECONDS, &args.seconds_ns, .help = "h"},
    {"range", "A-B", TOOL_RANGE, &args.range, .help = "h"},
    {"pose", "P", TOOL_POSE, &args.pose, .help = "h"},
    {"list", "L", TOOL_LIST, &args.list, .help = "h"},
    {"reals", "L", TOOL_REALS, &args.reals, 0, 9, .help = "h"},
    {"custom", "X", TOOL_CUSTOM, args.custom, .parse = parse_custom, .help = "h"},
};

static struct tool_command command = {
    .name = "tool", .summary = "does", TOOL_OPTIONS(options), TOOL_OPERANDS("FILE", 0, 2, &args.operands)};

static struct ndt_error err;
static int help, version;
static char words[256];
static char *argv[32];

/* Parses words separated by spaces. */
static enum ndt_status parse(const char *line)
{
    int argc = 0;
    memset(&args, 0, sizeof(args));
    err.text[0] = '\0';
    snprintf(words, sizeof(words), "tool %s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return tool_parse(&command, argc, argv, &help, &version, &err);
}

static void accept(const char *line)
{
    ck_assert_msg(parse(line) == NDT_OK, "'%s': %s", line, err.text);
}

static void refuse(const char *line, const char *reason)
{
    ck_assert_msg(parse(line) == NDT_ERR_ARGUMENT, "'%s' is accepted", line);
    ck_assert_msg(strstr(err.text, reason) != NULL, "'%s': '%s' does not say '%s'", line, err.text, reason);
}

TEST(every_kind_is_read)
{
    accept("--flag --text=a --colour blue --count 2 --real -1 --wait 1.5 --range 3-7 --custom abc");
    ck_assert(args.flag == 1 && args.given == 1 && args.colour == 2 && args.count == 2 && args.real == -1);
    ck_assert_str_eq(args.text, "a");
    ck_assert_int_eq(args.seconds_ns, 1500000000);
    ck_assert(args.range.first == 3 && args.range.last == 7);
    ck_assert_str_eq(args.custom, "abc");
    accept("--list a,bc --reals 1,2.5,9 --pose 1,2,3,0,0,0,1.005 --many 18446744073709551615 --any-real 1e300");
    ck_assert(args.list.count == 2 && strcmp(args.list.items[1], "bc") == 0);
    ck_assert(args.reals.count == 3 && args.reals.values[1] == 2.5);
    ck_assert(args.pose.t_m[2] == 3 && args.pose.q_xyzw[3] == 1 && !args.given);
    ck_assert(args.count == UINT64_MAX && args.real == 1e300);
    accept("--range 3-");
    ck_assert(args.range.first == 3 && args.range.last == UINT64_MAX);
    accept("--range -7");
    ck_assert(args.range.first == 1 && args.range.last == 7);
    accept("--range 5 --count 3 --count 4"); /* the last one counts */
    ck_assert(args.range.first == 5 && args.range.last == 5 && args.count == 4);
}

TEST(poses_with_yaw_and_negative_operands)
{
    accept("--pose -1,2,3,90");
    ck_assert(args.pose.t_m[0] == -1 && fabs(args.pose.q_xyzw[2] - sqrt(0.5)) < 1e-12);
    ck_assert(fabs(args.pose.q_xyzw[3] - sqrt(0.5)) < 1e-12);
    refuse("--pose 1,2,3,90,", "is not x,y,z,qx,qy,qz,qw or x,y,z,yaw");
    refuse("--pose 1,2,3,4,5", "is not x,y,z,qx,qy,qz,qw or x,y,z,yaw");
    refuse("--pose 1,2,3,nan", "is not x,y,z,qx,qy,qz,qw or x,y,z,yaw");
    refuse("-1,2,3,90", "tool has no such option");
    command.takes_numbers = 1;
    accept("--any-real -3 -1,2,3,90 --flag");
    ck_assert(args.operands.count == 1 && args.real == -3 && args.flag);
    ck_assert(tool_parse_pose(args.operands.words[0], &args.pose, &err) == NDT_OK && args.pose.t_m[0] == -1);
    accept("--flag -.5,2,3,90");
    ck_assert(args.operands.count == 1 && args.flag);
    refuse("-x", "tool has no such option");
    command.takes_numbers = 0;
}

TEST(operands_at_any_position)
{
    accept("a --flag b");
    ck_assert(args.operands.count == 2 && args.flag);
    ck_assert_str_eq(args.operands.words[0], "a");
    ck_assert_str_eq(args.operands.words[1], "b");
    accept("-- --flag");
    ck_assert(args.operands.count == 1 && !args.flag);
    refuse("a b c", "c: one argument too many for tool; --help explains");
    command.operand_min = 1;
    refuse("--flag", "tool needs a FILE");
    command.operand_min = 0;
}

TEST(limits_are_named)
{
    refuse("--count 1", "--count: '1' is not a whole number from 2 to 10");
    refuse("--count 11", "--count: '11' is not a whole number from 2 to 10");
    refuse("--count 2.5", "'2.5' is not a whole number");
    refuse("--count -3", "'-3' is not a whole number");
    refuse("--many 18446744073709551616", "is not a whole number from 0 to 2^64 - 1");
    refuse("--real 1.6", "--real: '1.6' is not a number from -1 to 1.5");
    refuse("--real 1x", "'1x' is not a number");
    refuse("--any-real nan", "'nan' is not a finite number");
    refuse("--any-real inf", "'inf' is not a finite number");
    refuse("--wait -1", "'-1' is not a number of seconds from 0 to 1e+09");
    refuse("--range 7-3", "'7-3' is not a range");
    refuse("--range -", "'-' is not a range");
    refuse("--range 0-3", "'0' is not a whole number from 1");
    refuse("--pose 1,2,3", "is not x,y,z,qx,qy,qz,qw or x,y,z,yaw [m, deg]");
    refuse("--pose 1,2,3,0,0,0,2", "the quaternion has length 2, not 1");
    refuse("--list a,,b", "'a,,b' is not a list");
    refuse("--reals 1,10", "--reals: '10' is not a number from 0 to 9");
    refuse("--custom abcd", "--custom: 'abcd' is longer than 3");
    refuse("--colour gren", "--colour: 'gren' is not red, green or blue; did you mean 'green'?");
}

TEST(unknown_and_incomplete_options)
{
    refuse("--cuont 3", "--cuont: tool has no such option; did you mean --count?");
    refuse("--versoin", "did you mean --version?");
    refuse("--zzzzzzzz", "--zzzzzzzz: tool has no such option; --help explains");
    refuse("-x", "-x: tool has no such option");
    refuse("-m 3", "-m: tool has no such option; did you mean --many?");
    refuse("--count", "--count: its value is missing");
    refuse("--flag=1", "--flag=1: takes no value");
    accept("--cou 3"); /* unique beginning of a name */
    ck_assert_uint_eq(args.count, 3);
}

TEST(help_stores_nothing)
{
    accept("--count 3 --help");
    ck_assert(help && !version && args.count == 0);
    accept("-h");
    ck_assert(help);
    accept("--version --count 99");
    ck_assert(version && !help);
    accept("--text --help"); /* the value of --text */
    ck_assert(!help);
    ck_assert_str_eq(args.text, "--help");
}

TEST(longest_lists)
{
    char line[256] = "--list ";
    for (int i = 0; i < TOOL_MAX_ITEMS; i++)
        strcat(line, i ? ",a" : "a");
    accept(line);
    ck_assert_uint_eq(args.list.count, TOOL_MAX_ITEMS);
    strcat(line, ",a");
    refuse(line, "more than 32 values");
}
