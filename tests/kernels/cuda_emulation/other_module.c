/* A module of another version: nothing beyond its version and commit may be used. */
#include "ndt_cuda/module.h"

static const char *version(void)
{
    return "99.0";
}

static const char *commit(void)
{
    return "of-another";
}

const struct ndt_cuda_module ndt_cuda_module = {.version = version, .commit = commit};
