/** @file
 * @brief Results as lines of text and JSON, and the JSON values of which they consist. */
#ifndef RESULT_PRINT_H
#define RESULT_PRINT_H

#include <stdio.h>

#include "ndt_proto/message.h"

/** Whether the result has a pose; its quaternion is zero otherwise. */
int result_has_pose(const struct ndt_result_message *message);
/** All stages together, from arrival to publication [us]. Stages without a time count as 0. */
double result_latency_us(const struct ndt_result_message *message);
/** Prints one line of text. */
void result_print_text(FILE *file, const struct ndt_result_message *message);
/** The members of a JSON object, without braces and newline; the keys are those of SCHEMA.md. */
void result_print_json(FILE *file, const struct ndt_result_message *message);

/** JSON values. Members begin with a comma: `,"key":value`. A number that is not finite is null. */
void json_number(FILE *file, double value);
void json_real(FILE *file, const char *key, double value);
/** An array; `key` may be NULL (value without key and comma). */
void json_reals(FILE *file, const char *key, const double *values, size_t count);
/** The text must be printable ASCII, as all texts on the wire are. */
void json_text(FILE *file, const char *key, const char *text);
/** `,"pose":[x,y,z,qx,qy,qz,qw]`; nothing when the quaternion is zero. */
void json_pose(FILE *file, const struct ndt_pose *pose);
/** `,"twist":[vx,vy,vz,wx,wy,wz]`. */
void json_twist(FILE *file, const struct ndt_twist *twist);

#endif
