/* Cases by name for checks that are plain programs, because a device library does not survive the fork of Check.
 * Options: --list prints the names; --case PREFIX runs those whose names begin so. */
#ifndef CHECK_HARNESS_H
#define CHECK_HARNESS_H

struct check_case {
    const char *name;                              /* NULL: after the last case */
    void (*run)(void);                             /* one of the two */
    void (*run_with)(const char *text, int value); /* with the two below */
    const char *text;
    int value;
};

/* Prints "ok" or "FAIL", what was expected, and `text` behind a colon unless it is empty. Counts failures. */
void check_expect(int good, const char *what, const char *text);
/* The exit code of the program: 0 all passed, 1 a failure, 2 usage or no such case. */
int check_main(int argc, char **argv, const struct check_case *cases);

#endif
