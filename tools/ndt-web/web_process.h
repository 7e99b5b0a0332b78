/** @file
 * @brief Resources of the process itself, from the operating system. Any thread. */
#ifndef WEB_PROCESS_H
#define WEB_PROCESS_H

/** The usual metrics of a process. */
enum web_process_value {
    WEB_PROCESS_START,    /**< Unix time [s] */
    WEB_PROCESS_CPU,      /**< user and system [s] */
    WEB_PROCESS_RESIDENT, /**< [bytes] */
    WEB_PROCESS_VIRTUAL,  /**< [bytes] */
    WEB_PROCESS_FDS,
    WEB_PROCESS_MAX_FDS,
    WEB_PROCESS_VALUES
};
/** Reads all but the start, which is the time of the first call. A value that cannot be read is NAN. */
void web_process_read(double values[WEB_PROCESS_VALUES]);

#endif
