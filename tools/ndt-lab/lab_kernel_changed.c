/* The product's evaluation with one thing changed; LAB_CHANGE_* says which. */
#include "cpu/wide.h"

#if defined(LAB_CHANGE_unfetched)
#define __builtin_prefetch(address) ((void)(address))
#elif defined(LAB_CHANGE_without_exp)
#define wide_exp2(x) ((x) + 1.0f)
#elif defined(LAB_CHANGE_apart) /* but for the exponential and the radius test, which wide.h has */
#define wide_fma(a, b, c) ((a) * (b) + (c))
#endif

#include "cpu/eval_wide.c"
