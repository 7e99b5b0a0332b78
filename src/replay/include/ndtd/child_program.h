/* Programs of the Python package that programs of ndtd start. */
#ifndef NDTD_CHILD_PROGRAM_H
#define NDTD_CHILD_PROGRAM_H

#include <limits.h>

#include "ndt/status.h"

/* Finds a program: the one that the environment variable names, else `name` beside the running program, else the
 * first on PATH. NDT_ERR_UNSUPPORTED: the variable names no program (*err says so), or there is none (*err is
 * unchanged). */
NDT_MUST_CHECK enum ndt_status ndtd_child_program_find(char path[PATH_MAX], const char *variable, const char *name,
                                                       struct ndt_error *err);

#endif
