#include "check_stops.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_harness.h"

void check_stops(void (*fault)(void), const char *message)
{
    char text[400] = "";
    int ends[2], status = 0;
    fflush(stdout);
    const pid_t child = pipe(ends) == 0 ? fork() : -1;
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        fault();
        _exit(0);
    }
    close(ends[1]);
    for (size_t used = 0; used < sizeof(text) - 1;) {
        const ssize_t more = read(ends[0], text + used, sizeof(text) - 1 - used);
        if (more <= 0)
            break;
        used += (size_t)more;
    }
    close(ends[0]);
    const int stopped = child > 0 && waitpid(child, &status, 0) == child && status != 0 && strstr(text, message);
    check_expect(stopped, message, stopped ? "" : text);
}
