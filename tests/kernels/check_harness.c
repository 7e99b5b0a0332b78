#include "check_harness.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct check_state check;

static size_t crash_length; /* length of check.reproduce, because a signal handler must not count */

static void on_crash(int number)
{
    static const char text[] = "CRASH: a kernel broke its rules, or a read or write left an input\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 || write(STDERR_FILENO, check.reproduce, crash_length) < 0)
        _exit(3);
    _exit(CHECK_FAILED);
}

static void usage(const char *program, const struct check_option *options)
{
    fprintf(stderr, "usage: %s [--list] [--case PREFIX]", program);
    for (; options->name; options++)
        fprintf(stderr, " [%s%s]", options->name, options->text ? " NAME" : options->number ? " N" : "");
    fprintf(stderr, "\n");
    exit(CHECK_USAGE);
}

/* 1 when the option was known and its value valid. */
static int set_option(const struct check_option *option, const char *value)
{
    char *end = NULL;
    if (option->flag)
        *option->flag = 1;
    else if (value && option->text)
        *option->text = value;
    else if (value && option->number)
        *option->number = strtoull(value, &end, 10);
    return option->flag || (value && *value && (!end || !*end));
}

void check_start(int argc, char **argv, const struct check_option *options)
{
    static const struct check_option own[] = {
        {.name = "--list", .flag = &check.is_list}, {.name = "--case", .text = &check.only}, {.name = NULL}};
    options = options ? options : &own[2];
    for (int i = 1; i < argc; i++) {
        const struct check_option *found = own;
        while (found->name && strcmp(found->name, argv[i]) != 0)
            found++;
        for (found = found->name ? found : options; found->name && strcmp(found->name, argv[i]) != 0;)
            found++;
        if (!found->name || !set_option(found, i + 1 < argc ? argv[i + 1] : NULL))
            usage(argv[0], options);
        i += !found->flag;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a fault in a kernel may end the program */
    signal(SIGABRT, on_crash);
    signal(SIGSEGV, on_crash);
    signal(SIGBUS, on_crash);
}

int check_begin(const char *name)
{
    if (check.only && strncmp(name, check.only, strlen(check.only)) != 0)
        return 0;
    if (check.is_list)
        printf("%s\n", name);
    return !check.is_list;
}

void check_set_reproduce(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check.reproduce, sizeof(check.reproduce), format, arguments);
    va_end(arguments);
    crash_length = strlen(check.reproduce);
}

void check_pass(void)
{
    check.passed++;
}

int check_fail(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (check.failed++ == 0)
        memcpy(check.first, text, sizeof(text));
    if (!check.is_quiet)
        printf("FAIL %s\n%s", text, check.reproduce);
    return 0;
}

void check_expect(int good, const char *what, const char *text)
{
    const char *colon = *text ? ": " : "";
    if (!good) {
        check_fail("%s%s%s", what, colon, text);
        return;
    }
    printf("ok   %s%s%s\n", what, colon, text);
    check_pass();
}

int check_finish(int ran)
{
    if (check.is_list)
        return CHECK_PASSED;
    if (!ran && check.failed == 0) {
        printf("nothing could run here\n");
        return CHECK_SKIPPED;
    }
    printf("%zu passed, %zu failed\n", check.passed, check.failed);
    return check.failed > 0 ? CHECK_FAILED : CHECK_PASSED;
}

int check_run(const struct check_case *cases)
{
    int chosen = 0;
    for (const struct check_case *item = cases; item->name; item++) {
        chosen += !check.only || strncmp(item->name, check.only, strlen(check.only)) == 0;
        if (!check_begin(item->name))
            continue;
        if (item->run)
            item->run();
        else
            item->run_with(item->text, item->value);
    }
    return chosen ? check_finish(1) : CHECK_USAGE;
}

int check_main(int argc, char **argv, const struct check_case *cases)
{
    check_start(argc, argv, NULL);
    return check_run(cases);
}
