/* Private: ndt-report as a child process, which turns the folder of a replay into an HTML file. */
#ifndef NDTD_REPLAY_REPORT_H
#define NDTD_REPLAY_REPORT_H

#include <limits.h>

#include "ndt/status.h"

/* Finds the program before the replay, which may take long: that of the environment variable NDT_REPORT, else
 * beside the running one, else on PATH. NDT_ERR_UNSUPPORTED, with how to install it, when there is none. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_report_find(char program[PATH_MAX], struct ndt_error *err);
/* Checks before the replay that FILE can be written: its folder exists, and FILE is no folder. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_report_check(const char *file, struct ndt_error *err);
/* Runs the program and waits: PROGRAM FOLDER --out=FILE, without a shell; its output is ours. A signal to this
 * process ends it. NDT_ERR_IO: it failed. */
NDT_MUST_CHECK enum ndt_status ndtd_replay_report_run(const char *program, const char *folder, const char *file,
                                                      struct ndt_error *err);

#endif
