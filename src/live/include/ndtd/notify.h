/** @file
 * @brief Status reports to the service manager (sd_notify protocol, Type=notify).
 *
 * Each report is lines of text in one datagram to the unix socket named by NOTIFY_SOCKET; without a manager nothing
 * happens. Any thread. Only ndtd_notify_ready and ndtd_notify_stopping may block, because they must arrive.
 *
 * The first four functions return 1 when the datagram was sent, 0 when there is no manager or it cannot receive
 * now. */
#ifndef NDTD_NOTIFY_H
#define NDTD_NOTIFY_H

#ifdef __cplusplus
extern "C" {
#endif

/** Reports that the start is complete. */
int ndtd_notify_ready(void);
/** Sends one line for `systemctl status`; control characters become blanks, at most 400 bytes. */
int ndtd_notify_status(const char *text);
/** Sends a keep-alive; to be called at least twice per ndtd_notify_watchdog_interval_s. */
int ndtd_notify_watchdog(void);
/** Reports that the shutdown has begun. */
int ndtd_notify_stopping(void);
/** Longest silence after which the manager kills this process (WATCHDOG_USEC, WATCHDOG_PID) [s]; 0 = never. */
double ndtd_notify_watchdog_interval_s(void);

#ifdef __cplusplus
}
#endif
#endif
