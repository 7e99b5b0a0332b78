/* guard_cases CASE | --list | --key: runs one hot path on synthetic input, for tools/instruction-guard.
 *
 * Only what happens inside guard_measured() is to be counted: valgrind --tool=callgrind
 * --toggle-collect=guard_measured. --list: the cases that this processor can run, one per line. --key: what
 * instruction counts depend on besides the source, in one line; run it under valgrind, whose processor it names.
 * Exit codes: 0 done, 1 the case failed, 2 usage, 77 counts of this build say nothing (and why). */
#include <gnu/libc-version.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>

#include "guard_work.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, UNFIT = 77 };

/* Not static and not inlined: callgrind looks for the name. */
enum ndt_status guard_measured(struct guard_work *work, struct ndt_error *err);
__attribute__((noinline)) enum ndt_status guard_measured(struct guard_work *work, struct ndt_error *err)
{
    const enum ndt_status status = work->item->run(work, err);
    __asm__ volatile("" : : : "memory"); /* no tail call: the end has to be seen as well */
    return status;
}

static int run_case(const struct guard_case *item)
{
    struct guard_work work;
    struct ndt_error err = {""};
    guard_work_init(&work, item);
    enum ndt_status status = item->prepare(&work, &err);
    if (status == NDT_OK && !item->once)
        status = item->run(&work, &err);
    if (status == NDT_OK)
        status = guard_measured(&work, &err);
    guard_work_free(&work);
    if (status != NDT_OK)
        fprintf(stderr, "guard_cases: %s: %s\n", item->name, err.text);
    return status == NDT_OK ? DONE : FAILED;
}

static int runs_here(const struct guard_case *item)
{
    char variants[128], *rest = variants;
    if (!item->isa)
        return 1;
    ndt_cpu_variants(variants, sizeof(variants));
    for (const char *name = strtok_r(variants, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, item->isa) == 0)
            return 1;
    return 0;
}

static int list_cases(void)
{
    const struct guard_case *item;
    for (size_t i = 0; (item = guard_case_at(i)); i++)
        if (runs_here(item))
            puts(item->name);
    return DONE;
}

static int print_key(void)
{
    char variants[128];
#if defined(__clang__)
    const char *compiler = "clang " __clang_version__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    const int length = (int)strcspn(compiler + 6, " ") + 6; /* without what follows the number */
    if (NDT_GUARD_UNFIT[0]) {
        puts(NDT_GUARD_UNFIT);
        return UNFIT;
    }
    ndt_cpu_variants(variants, sizeof(variants));
    printf("%.*s, glibc %s, msgpack %s, %s: %s\n", length, compiler, gnu_get_libc_version(), msgpack_version(),
           NDT_GUARD_MACHINE, variants);
    return DONE;
}

int main(int argc, char **argv)
{
    const struct guard_case *item;
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_cases();
    if (argc == 2 && strcmp(argv[1], "--key") == 0)
        return print_key();
    for (size_t i = 0; argc == 2 && (item = guard_case_at(i)); i++)
        if (strcmp(argv[1], item->name) == 0)
            return run_case(item);
    fprintf(stderr, "usage: guard_cases CASE | --list | --key\n");
    return USAGE;
}
