#include "ndt/version.h"

const char *ndt_version(void)
{
    return NDT_VERSION;
}

const char *ndt_commit(void)
{
    return NDT_COMMIT;
}
