/* Private: ndt-report as a child process: the folder of a replay becomes an HTML file. */
#ifndef NDTD_REPLAY_REPORT_H
#define NDTD_REPLAY_REPORT_H

#include <limits.h>

#include "ndt/status.h"

/* The program: that of the environment variable NDT_REPORT, else beside the running one, else on PATH.
 * NDT_ERR_UNSUPPORTED, with how to install it, when there is none. Before the replay, which may take long. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_report_find(char program[PATH_MAX], struct ndt_error *err);
/* Whether FILE can be there: its folder exists, and it is no folder. Also before the replay. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_report_check(const char *file, struct ndt_error *err);
/* Runs it and waits: PROGRAM FOLDER --out=FILE, without a shell; its output is ours. A signal to this process ends
 * it. NDT_ERR_IO: it failed. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_report_run(const char *program, const char *folder, const char *file,
                                                      struct ndt_error *err);

#endif
