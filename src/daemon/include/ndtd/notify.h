/* Telling the service manager how things are (sd_notify protocol, Type=notify): lines of text in one datagram to
 * the unix socket named by NOTIFY_SOCKET. Without a manager nothing happens. Any thread; never waits, except
 * ndtd_notify_ready and ndtd_notify_stopping, which must arrive.
 *
 * The four that tell return 1 when the manager was told, 0 when there is none or it does not take it now. */
#ifndef NDTD_NOTIFY_H
#define NDTD_NOTIFY_H

#ifdef __cplusplus
extern "C" {
#endif

int ndtd_notify_ready(void);
/* One line for `systemctl status`; control characters become blanks, at most 400 bytes. */
int ndtd_notify_status(const char *text);
/* "Alive": to be called more often than ndtd_notify_watchdog_interval_s; twice as often is customary. */
int ndtd_notify_watchdog(void);
int ndtd_notify_stopping(void);
/* After how long a silence the manager will kill this process (WATCHDOG_USEC, WATCHDOG_PID) [s]; 0 = never. */
double ndtd_notify_watchdog_interval_s(void);

#ifdef __cplusplus
}
#endif
#endif
