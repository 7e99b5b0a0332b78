/* The product's evaluation with one thing changed; LAB_CHANGE_* says which. */
#include "cpu/wide.h"

#if defined(LAB_CHANGE_unfetched)
#define __builtin_prefetch(address) ((void)(address))
#elif defined(LAB_CHANGE_without_exp)
#define wide_exp(x) ((x) + 1.0f)
#endif

#include "cpu/eval_wide.c"
