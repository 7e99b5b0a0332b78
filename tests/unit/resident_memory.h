/* The memory of this process, for tests that it stays. */
#ifndef RESIDENT_MEMORY_H
#define RESIDENT_MEMORY_H

#include <check.h>
#include <stdio.h>
#include <unistd.h>

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#endif
