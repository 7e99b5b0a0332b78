/* What the daemon says about itself: the reply to `status` as lines of text. */
#ifndef TOP_STATUS_H
#define TOP_STATUS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ndt/status.h"

/* Values of the reply, nested maps in one line each: whatever the daemon of today tells. */
NDT_MUST_CHECK enum ndt_status top_status_print(FILE *file, const uint8_t *data, size_t size,
                                                struct ndt_error *err);

#endif
