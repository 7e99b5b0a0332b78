/* A result as one line of text. Numbers that do not exist are null in JSON. */
#ifndef RESULT_PRINT_H
#define RESULT_PRINT_H

#include <stdio.h>

#include "ndt_proto/message.h"

int result_has_pose(const struct ndt_result_message *message);
/* All stages together: from arrival to publication [us]. Stages that do not exist count nothing. */
double result_latency_us(const struct ndt_result_message *message);
void result_print_text(FILE *file, const struct ndt_result_message *message);
/* The keys of SCHEMA.md. */
void result_print_json(FILE *file, const struct ndt_result_message *message);

#endif
