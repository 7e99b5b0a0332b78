/** @file
 * @brief Named cases, options, counts and exit codes of checks that are plain programs.
 *
 * These checks do not use the Check framework: it forks, and device libraries do not survive a fork. Every program
 * accepts --list, which prints the names of its cases, and --case PREFIX, which runs the cases whose names begin
 * with PREFIX. Output lines begin with "ok", "FAIL" or "CRASH". */
#ifndef CHECK_HARNESS_H
#define CHECK_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "ndt/status.h"

enum check_exit { CHECK_PASSED = 0, CHECK_FAILED = 1, CHECK_USAGE = 2, CHECK_SKIPPED = 77 };

/** An option of one program; exactly one of the pointers is set. */
struct check_option {
    const char *name; /**< name with its dashes; NULL ends the table */
    const char **text;
    uint64_t *number;
    int *flag;
};

/** A case of a program whose cases form a table. */
struct check_case {
    const char *name;                              /**< NULL ends the table */
    void (*run)(void);                             /**< either this one */
    void (*run_with)(const char *text, int value); /**< called in its place, with the two values below */
    const char *text;
    int value;
};

/** The state of the running program. */
extern struct check_state {
    const char *only; /**< prefix of --case, or NULL */
    int is_list;      /**< --list is given */
    int is_quiet;     /**< failures are counted and kept in `first`, but not printed */
    size_t passed, failed;
    char first[512];     /**< the first failure */
    char reproduce[512]; /**< printed after a failure and a crash unless empty */
} check;

/** Parses the command line; `options` may be NULL. Exits with CHECK_USAGE where it is wrong. Installs handlers that
 * turn a crash into an output line and CHECK_FAILED. */
void check_start(int argc, char **argv, const struct check_option *options);
/** Whether the case shall run. With --list it prints the name and returns 0. */
int check_begin(const char *name);
/** Sets the command that repeats the current case. */
void check_set_reproduce(const char *format, ...) NDT_PRINTF(1, 2);
void check_pass(void);
/** Counts and prints a failure; always returns 0. */
int check_fail(const char *format, ...) NDT_PRINTF(1, 2);
/** Counts a pass or a failure and prints it: what was expected, and `text` unless it is empty. */
void check_expect(int good, const char *what, const char *text);
/** Prints the counts unless --list is given. Returns the exit code: CHECK_SKIPPED when `ran` is 0 and nothing
 * failed. */
int check_finish(int ran);
/** check_start, all cases of the table that --case selects, check_finish. Returns the exit code; CHECK_USAGE when
 * no case has the prefix. */
int check_main(int argc, char **argv, const struct check_case *cases);
/** Runs the cases after check_start. */
int check_run(const struct check_case *cases);

#endif
