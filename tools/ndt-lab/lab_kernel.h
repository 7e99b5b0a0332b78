/* Variants of the CPU's evaluation that are not in the product, for measuring only: the product's own source,
 * compiled with one thing changed, and parts of it put together in other ways. Compiled once per CPU variant. */
#ifndef LAB_KERNEL_H
#define LAB_KERNEL_H

#include "cpu/eval_wide.h"

enum lab_kernel {
    LAB_WHOLE,      /* the parts as the product has them */
    LAB_PROBED,     /* direct7 without neighbour lists: seven look-ups per point */
    LAB_COLUMNS,    /* voxels as structure of arrays */
    LAB_DOUBLE,     /* sums over points in double */
    LAB_LOCATE,     /* only up to here: cells of the points, */
    LAB_LISTS,      /* references to their neighbour lists, */
    LAB_NEIGHBOURS, /* voxels in reach, */
    LAB_RECORDS,    /* records loaded and transposed, */
    LAB_PAIRS       /* pairs summed; what remains are the sums of points */
};

struct lab_job {
    struct ndt_wide_job wide;
    const float *columns[12]; /* word i of all voxels: LAB_COLUMNS */
    const uint32_t *own;      /* voxel of each cell of the index, 0: none: LAB_PROBED */
};

/* LAB_NEIGHBOURS writes the number of lanes that pairs will take into sums[0]. */
typedef void lab_chunk_fn(const struct ndt_wide_job *job, size_t chunk, double *sums);
typedef void lab_part_fn(const struct lab_job *job, enum lab_kernel kernel, size_t chunk, double *sums);

struct lab_isa {
    const char *name;
    int wide;                  /* floats per vector */
    lab_chunk_fn *whole;       /* compiled for the lab without a change */
    lab_chunk_fn *unfetched;   /* without prefetch */
    lab_chunk_fn *apart;       /* multiplied and added apart */
    lab_chunk_fn *without_exp; /* 1 + x in its place */
    lab_part_fn *part;
};

/* The best that runs here, or the one named by the environment variable NDT_CPU_ISA; NULL: there is none. */
const struct lab_isa *lab_isa_best(void);
/* All that run here, ending with name NULL. */
const struct lab_isa *lab_isas(size_t *count);

#endif
