/** @file
 * @brief The faults of a configuration: all of them, one line each, instead of the first only. Plain data, no
 * allocation; one thread at a time. */
#ifndef NDTD_FAULTS_H
#define NDTD_FAULTS_H

#include <stddef.h>
#include <stdio.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_FAULTS_KEPT = 20 /**< further ones are counted only */ };

/** Starts as zero. */
struct ndtd_faults {
    size_t count;                             /**< all of them */
    struct ndt_error lines[NDTD_FAULTS_KEPT]; /**< the first ones */
};

/** Adds one line. */
void ndtd_faults_add(struct ndtd_faults *faults, const char *format, ...) NDT_PRINTF(2, 3);
/** NDT_OK without a fault, otherwise NDT_ERR_ARGUMENT with the first line, which says how many follow. */
enum ndt_status ndtd_faults_status(const struct ndtd_faults *faults, struct ndt_error *err);
/** Prints "ndtd: LINE" for each line that was kept, and how many more there are. */
void ndtd_faults_print(const struct ndtd_faults *faults, FILE *file);

#ifdef __cplusplus
}
#endif
#endif
