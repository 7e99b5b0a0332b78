/** @file
 * @brief Reports to the service manager that the daemon is alive, as long as all of its threads are.
 *
 * The main thread calls ndtd_watchdog_turn in every round of its loop, so that a hanging main thread feeds nothing.
 * The other threads count signs of life (beats): before every frame, and regularly while they wait, so that an idle
 * thread makes progress. WATCHDOG=1 is sent three times per interval, only if every count has grown since the last
 * time. A thread that stands still is named in the log. Used by one thread. Source: watchdog.c. */
#ifndef NDTD_WATCHDOG_H
#define NDTD_WATCHDOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NDTD_WATCHDOG_THREADS 4 /**< largest number of threads */

/** The name of a thread and its count. */
struct ndtd_beats {
    const char *thread;
    uint64_t count;
};

/** State; initialise with ndtd_watchdog_init. */
struct ndtd_watchdog {
    double every_us; /**< 0: the manager does not watch */
    double fed_us;   /**< time of the last feeding */
    uint64_t seen[NDTD_WATCHDOG_THREADS];
};

/** Reads the interval of the manager ($WATCHDOG_USEC). */
void ndtd_watchdog_init(struct ndtd_watchdog *watchdog);
/** Longest time between two turns [ms], at most most_ms. */
long ndtd_watchdog_round_ms(const struct ndtd_watchdog *watchdog, long most_ms);
/** Feeds the watchdog if it is time and all threads are alive; returns whether it did. */
int ndtd_watchdog_turn(struct ndtd_watchdog *watchdog, const struct ndtd_beats *beats, size_t count);

#ifdef __cplusplus
}
#endif
#endif
