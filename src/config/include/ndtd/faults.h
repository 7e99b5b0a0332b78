/** @file
 * @brief The faults of a configuration, one line each: all of them, not only the first. Plain data, no allocation;
 * one thread at a time. */
#ifndef NDTD_FAULTS_H
#define NDTD_FAULTS_H

#include <stddef.h>
#include <stdio.h>

#include "ndt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NDTD_FAULTS_KEPT = 20 /**< further faults are only counted */ };

/** List of faults; starts as zero. */
struct ndtd_faults {
    size_t count;                             /**< number of all faults */
    struct ndt_error lines[NDTD_FAULTS_KEPT]; /**< first faults */
};

/** Adds one line. */
void ndtd_faults_add(struct ndtd_faults *faults, const char *format, ...) NDT_PRINTF(2, 3);
/** NDT_OK without a fault, otherwise NDT_ERR_ARGUMENT with the first line, which says how many follow. */
enum ndt_status ndtd_faults_status(const struct ndtd_faults *faults, struct ndt_error *err);
/** Prints "ndtd: LINE" for each kept line, and the number of the others. */
void ndtd_faults_print(const struct ndtd_faults *faults, FILE *file);

#ifdef __cplusplus
}
#endif
#endif
