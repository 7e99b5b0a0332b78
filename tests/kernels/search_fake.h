/* A backend with searches that are driven by the host, on the CPU: the pretended device of check_searches
 * --self-test. It can be told to do one thing wrong. */
#ifndef SEARCH_FAKE_H
#define SEARCH_FAKE_H

#include "ndt/backend.h"

extern const struct ndt_backend_ops search_fake_backend;

/* What can be wrong; the name of fault i (0: nothing), NULL after the last. */
const char *search_fault_name(int i);
/* For all of search_fake_backend from now on. */
void search_fault_plant(int i);

#endif
