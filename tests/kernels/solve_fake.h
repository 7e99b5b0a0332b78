/* A backend with searches that are driven by the host, on the CPU: the pretended device of check_solver
 * --self-test. It can be told to do one thing wrong. */
#ifndef SOLVE_FAKE_H
#define SOLVE_FAKE_H

#include "ndt/backend.h"

extern const struct ndt_backend_ops solve_fake_backend;

/* What can be wrong; the name of fault i (0: nothing), NULL after the last. */
const char *solve_fault_name(int i);
/* For all of solve_fake_backend from now on. */
void solve_fault_plant(int i);

#endif
