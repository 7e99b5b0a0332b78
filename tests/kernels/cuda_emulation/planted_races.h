/** @file
 * @brief Included in front of every kernel of the race checks: which barrier, fence or atomic is left out.
 *
 * See planted_races.sh. NDT_RACE_FAULT=N: number N is left out. NDT_RACE_REACHED=FILE: adds the numbers of all that
 * were reached to FILE, when the program ends. */
#ifndef PLANTED_RACES_H
#define PLANTED_RACES_H

#include "emulated_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Notes that number `fault` is reached; whether it is left out. */
int ndt_race_fault(int fault);

#ifdef __cplusplus
}
#endif

#define NDT_RACE_FAULT(fault) emulated_leave_out(ndt_race_fault(fault))

#endif
