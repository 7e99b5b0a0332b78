/* What the figures were measured on. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

struct bench_machine {
    char cpu[128]; /* model name, "unknown" where the system does not tell */
    int cores;     /* that this process may use */
    char compiler[128];
    char variants[128]; /* CPU variants of this build that run here */
};
void bench_machine_read(struct bench_machine *machine);

#endif
