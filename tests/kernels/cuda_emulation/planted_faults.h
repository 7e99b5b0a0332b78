/** @file
 * @brief Included in front of every planted kernel: which fault is present, 0 for none.
 *
 * See planted_faults.sh. */
#ifndef PLANTED_FAULTS_H
#define PLANTED_FAULTS_H

#include <stdlib.h>

inline const int ndt_planted_fault = getenv("NDT_PLANTED_FAULT") ? atoi(getenv("NDT_PLANTED_FAULT")) : 0;

#define NDT_PLANTED(fault) (ndt_planted_fault == (fault))

#endif
