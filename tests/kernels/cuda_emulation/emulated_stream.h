/** @file
 * @brief Streams and events of the emulated device, for its other parts. */
#ifndef EMULATED_STREAM_H
#define EMULATED_STREAM_H

/* Whether a handle may be used. */
enum emulated_handle { EMULATED_CLOSED, EMULATED_OPEN, EMULATED_RESET };
/* Ends the program unless it may. what: "a stream". */
void emulated_check_handle(const void *handle, enum emulated_handle state, const char *what);

/* Runs everything that is queued. */
void emulated_finish_all(void);
/* Drops it; all streams and events end to be usable. */
void emulated_streams_reset(void);

#endif
