/* The parts of the product's evaluation, put together in other ways. */
#include "lab_kernel.h"

#include "cpu/eval_wide.c"

#define ALWAYS static inline __attribute__((always_inline))

/* Word w of the k-th voxel of WIDE points, from twelve arrays. */
ALWAYS void load_columns(const struct lab_job *lab, const struct chunk *c, size_t base, int32_t k, wide_f words[12])
{
    int32_t numbers[WIDE];
    for (size_t l = 0; l < WIDE; l++)
        numbers[l] = (int32_t)c->row[base + l][k];
    const wide_i ids = wide_load_i(numbers);
    for (int w = 0; w < 12; w++) {
#if defined(NDT_ISA_avx512)
        words[w] = (wide_f)_mm512_i32gather_ps((__m512i)ids, lab->columns[w], 4);
#elif defined(NDT_ISA_avx2)
        words[w] = (wide_f)_mm256_i32gather_ps(lab->columns[w], (__m256i)ids, 4);
#else
        float found[WIDE];
        for (size_t l = 0; l < WIDE; l++)
            found[l] = lab->columns[w][ids[l]];
        words[w] = wide_load(found);
#endif
    }
}

ALWAYS void load_rows(const struct lab_job *lab, const struct chunk *c, size_t base, int32_t k, wide_f words[12])
{
    const float *record[WIDE];
    for (size_t l = 0; l < WIDE; l++)
        record[l] = lab->wide.level->voxels[c->row[base + l][k]].mean_m;
    for (int q = 0; q < 3; q++)
        wide_load_quads(record, q, words + 4 * q);
}

/* Everything is used, so that nothing is optimised away. */
ALWAYS void keep(struct chunk *c, const wide_f *values, int count, size_t lane)
{
    wide_f sum = values[0];
    for (int i = 1; i < count; i++)
        sum += values[i];
    wide_store(&c->sums[0][lane], wide_load(&c->sums[0][lane]) + sum);
}

ALWAYS void add_point_double(const struct point_sums *p, const wide_f y[3], struct chunk *c, size_t lane,
                             double sums[][LANES])
{
    const wide_f none = wide_set(0);
    for (int i = 0; i < NDT_SUM_FLOATS; i++)
        wide_store(&c->sums[i][lane], none);
    add_point(p, y, c->sums, lane);
    for (int i = 0; i < NDT_SUM_FLOATS; i++)
        for (size_t l = 0; l < WIDE; l++)
            sums[i][lane + l] += (double)c->sums[i][lane + l];
}

/* As the product's add_points, but for what `kernel` says. */
ALWAYS void add_lab_points(const struct lab_job *lab, struct chunk *c, size_t base, enum lab_kernel kernel,
                           double sums[][LANES])
{
    const struct ndt_wide_job *job = &lab->wide;
    const size_t lane = base % LANES;
    const wide_i found = wide_load_i(&c->steps[base]);
    const int32_t steps = c->steps[base];
    if (kernel == LAB_NEIGHBOURS) {
        c->sums[0][lane] += (float)(steps * WIDE);
        return;
    }
    const wide_f x[3] = {wide_load(&c->x_m[0][base]), wide_load(&c->x_m[1][base]), wide_load(&c->x_m[2][base])};
    wide_f y[3], near_m[3];
    move_points(job, x, y, near_m);
    struct point_sums p = {0};
    for (int32_t k = 0; k < steps; k++) {
        wide_f words[12];
        if (kernel == LAB_COLUMNS)
            load_columns(lab, c, base, k, words);
        else
            load_rows(lab, c, base, k, words);
        if (kernel == LAB_RECORDS)
            keep(c, words, 12, lane);
        else
            add_pairs(job, words, near_m, found > k, &p);
    }
    if (kernel == LAB_PAIRS)
        keep(c, &p.score, sizeof(p) / sizeof(wide_f), lane);
    else if (kernel == LAB_DOUBLE)
        add_point_double(&p, y, c, lane, sums);
    else if (kernel != LAB_RECORDS)
        add_point(&p, y, c->sums, lane);
}

/* Seven look-ups of one voxel each, as an index without lists needs them; dense indexes only. */
ALWAYS void probe(const struct lab_job *lab, struct chunk *c, size_t count, uint32_t having[MOST + 1])
{
    static const int32_t around[7][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0},
                                         {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
    const struct ndt_map_level *level = lab->wide.level;
    for (size_t i = 0; i < count; i++) {
        uint32_t found = 0;
        for (int n = 0; n < 7; n++) {
            int32_t slot = 0, inner = 0, valid = 1;
            for (int k = 2; k >= 0; k--) {
                const int32_t cell = c->cell[k][i] + around[n][k], brick = (cell >> 3) - level->brick_min[k];
                valid &= brick >= 0 && brick < level->brick_dim[k];
                slot = slot * level->brick_dim[k] + brick;
                inner = inner << 3 | (cell & 7);
            }
            const uint32_t voxel = valid ? lab->own[(size_t)level->bricks[slot] * 512 + (size_t)inner] : 0;
            c->ids[i][found] = voxel;
            found += voxel != 0;
        }
        c->found[i] = (uint8_t)found;
        having[found]++;
    }
}

ALWAYS void fold_lanes(const struct chunk *c, double lanes[][LANES], enum lab_kernel kernel, double d1d2,
                       double *sums)
{
    for (int i = 0; i < NDT_SUM_FLOATS; i++) {
        sums[i] = 0;
        for (int l = 0; l < LANES; l++)
            sums[i] += kernel == LAB_DOUBLE ? lanes[i][l] : (double)c->sums[i][l];
        sums[i] *= i < NDT_SUM_A ? 1 : d1d2;
    }
}

ALWAYS void run(const struct lab_job *lab, size_t chunk, double *sums, const enum lab_kernel kernel)
{
    struct chunk c;
    double lanes[NDT_SUM_FLOATS][LANES];
    const struct ndt_wide_job *job = &lab->wide;
    const size_t first = chunk * POINTS;
    const size_t count = job->count - first < POINTS ? job->count - first : POINTS;
    uint32_t having[MOST + 1] = {0}, pairs = 0;
    size_t matched = 0;
    memset(c.ids, 0, sizeof(c.ids));
    memset(c.sums, 0, sizeof(c.sums));
    memset(c.none, 0, sizeof(c.none));
    if (kernel == LAB_DOUBLE)
        memset(lanes, 0, sizeof(lanes));
    for (size_t i = 0; i < count; i += WIDE)
        locate(job, &c, first, i);
    if (kernel == LAB_PROBED)
        probe(lab, &c, count, having);
    else if (kernel != LAB_LOCATE)
        find_lists(job->level, &c, count);
    if (kernel != LAB_PROBED && kernel != LAB_LOCATE && kernel != LAB_LISTS)
        find_neighbours(job, &c, count, having);
    if (kernel != LAB_LOCATE && kernel != LAB_LISTS)
        matched = order_points(job, &c, first, count, having);
    for (size_t base = 0; base < matched; base += WIDE)
        add_lab_points(lab, &c, base, kernel, lanes);
    if (kernel == LAB_LOCATE || kernel == LAB_LISTS) /* one lane per point is looked at */
        for (size_t i = 0; i < count; i++)
            c.sums[0][i % LANES] += (float)(kernel == LAB_LOCATE ? c.slot[i] + c.inner[i] : c.ref[i].n27);
    for (uint32_t n = 1; n <= MOST; n++)
        pairs += n * having[n];
    fold_lanes(&c, lanes, kernel, job->level->d1 * job->level->d2, sums);
    sums[NDT_SUM_MATCHED] = (double)matched;
    sums[NDT_SUM_PAIRS] = pairs;
}

#define LAB_PART PASTE(lab_part_, LAB_ISA)
lab_part_fn LAB_PART;
void LAB_PART(const struct lab_job *job, enum lab_kernel kernel, size_t chunk, double *sums)
{
    switch (kernel) {
    case LAB_WHOLE:
        run(job, chunk, sums, LAB_WHOLE);
        break;
    case LAB_PROBED:
        run(job, chunk, sums, LAB_PROBED);
        break;
    case LAB_COLUMNS:
        run(job, chunk, sums, LAB_COLUMNS);
        break;
    case LAB_DOUBLE:
        run(job, chunk, sums, LAB_DOUBLE);
        break;
    case LAB_LOCATE:
        run(job, chunk, sums, LAB_LOCATE);
        break;
    case LAB_LISTS:
        run(job, chunk, sums, LAB_LISTS);
        break;
    case LAB_NEIGHBOURS:
        run(job, chunk, sums, LAB_NEIGHBOURS);
        break;
    case LAB_RECORDS:
        run(job, chunk, sums, LAB_RECORDS);
        break;
    case LAB_PAIRS:
        run(job, chunk, sums, LAB_PAIRS);
        break;
    }
}
