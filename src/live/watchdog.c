#include "ndtd/watchdog.h"

#include "ndt/clock.h"
#include "ndtd/log.h"
#include "ndtd/notify.h"

void ndtd_watchdog_init(struct ndtd_watchdog *watchdog)
{
    *watchdog = (struct ndtd_watchdog){.every_us = ndtd_notify_watchdog_interval_s() * 1e6 / 3};
}

long ndtd_watchdog_round_ms(const struct ndtd_watchdog *watchdog, long most_ms)
{
    const double round_ms = watchdog->every_us / 2 * 1e-3;
    return watchdog->every_us > 0 && round_ms < (double)most_ms ? (long)round_ms + 1 : most_ms;
}

int ndtd_watchdog_turn(struct ndtd_watchdog *watchdog, const struct ndtd_beats *beats, size_t count)
{
    const double now_us = ndt_clock_us();
    if (watchdog->every_us <= 0 || now_us - watchdog->fed_us < watchdog->every_us)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (beats[i].count == watchdog->seen[i]) {
            if (now_us - watchdog->fed_us > 2 * watchdog->every_us)
                ndtd_log(NDTD_LOG_ERROR, "the thread %s stands still: the watchdog is not fed", beats[i].thread);
            return 0;
        }
    for (size_t i = 0; i < count; i++)
        watchdog->seen[i] = beats[i].count;
    watchdog->fed_us = now_us;
    return ndtd_notify_watchdog();
}
