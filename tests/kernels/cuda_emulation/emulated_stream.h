/** @file
 * @brief Streams and events of the emulated device, for its other parts. */
#ifndef EMULATED_STREAM_H
#define EMULATED_STREAM_H

/* Runs everything that is queued. */
void emulated_finish_all(void);
/* Drops it; all streams and events end to be usable. */
void emulated_streams_reset(void);

#endif
