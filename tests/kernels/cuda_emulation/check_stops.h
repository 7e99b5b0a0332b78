/** @file
 * @brief Faults that end the program. */
#ifndef CHECK_STOPS_H
#define CHECK_STOPS_H

/* The emulation has to end the program, here a child process that makes the fault, with the message. The process
 * has one thread. */
void check_stops(void (*fault)(void), const char *message);

#endif
