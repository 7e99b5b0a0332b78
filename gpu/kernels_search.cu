/** @file
 * @brief The dense score of a search: at each of 64x64 places of a window, for each hypothesis, the number of
 * points whose cell has a bit of their mask; and the largest number of each 8x8 places.
 *
 * A team copies the window and its surroundings from the tiles into shared memory; each of its groups of
 * NDT_GPU_BLOCK threads scores a hypothesis at a time. A thread counts at four places of each of eight rows, a byte
 * per place. All numbers are integers, so the results have the bits of the CPU. */
#include <cuda_runtime.h>

#include "kernels.h"

enum {
    WORDS = NDT_GPU_WINDOW_STRIDE / 4, /* words of a row */
    COLUMNS = NDT_GPU_WINDOW / 4,      /* words of places */
    ROWS = 8                           /* rows of places per thread */
};

struct window_share {
    uint32_t cells[NDT_GPU_WINDOW_ROWS * WORDS];
    int32_t tiles[NDT_GPU_WINDOW_TILES]; /* -1: no tile */
};

/* The copied part of the field: `lead` places to the left of the window, so that words stay whole. */
struct surroundings {
    int32_t layer, y, x, height, words;
    int32_t tile_y, tile_x, tile_rows, tile_columns;
    int32_t halo, lead;
};

static __device__ inline struct surroundings around(const struct ndt_gpu_search *search,
                                                    const struct ndt_gpu_search_window *window)
{
    struct surroundings out;
    out.halo = search->halo;
    out.lead = (search->halo + 3) / 4 * 4;
    out.layer = window->layer;
    out.y = window->y - out.halo;
    out.x = window->x - out.lead;
    out.height = NDT_GPU_WINDOW + 2 * out.halo;
    out.words = (NDT_GPU_WINDOW + 2 * out.lead) / 4;
    out.tile_y = out.y >> search->edge_bits; /* rounds down */
    out.tile_x = out.x >> search->edge_bits;
    out.tile_rows = ((out.y + out.height - 1) >> search->edge_bits) - out.tile_y + 1;
    out.tile_columns = ((out.x + 4 * out.words - 1) >> search->edge_bits) - out.tile_x + 1;
    return out;
}

static __device__ inline bool is_before(const struct ndt_gpu_search_tile &a, const struct ndt_gpu_search_tile &b)
{
    if (a.layer != b.layer)
        return a.layer < b.layer;
    return a.y != b.y ? a.y < b.y : a.x < b.x;
}

static __device__ inline int32_t find_tile(const struct ndt_gpu_search *search,
                                           const struct ndt_gpu_search_tile &wanted)
{
    uint32_t first = 0, last = search->tile_count;
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (is_before(search->tiles[middle], wanted))
            first = middle + 1;
        else
            last = middle;
    }
    const bool is_there = first < search->tile_count && !is_before(wanted, search->tiles[first]);
    return is_there ? (int32_t)first : -1;
}

static __device__ inline void find_tiles(const struct ndt_gpu_search *search, const struct surroundings &part,
                                         int32_t *tiles)
{
    const int32_t count = part.tile_rows * part.tile_columns;
    for (int32_t i = (int32_t)threadIdx.x; i < count; i += (int32_t)blockDim.x) {
        const struct ndt_gpu_search_tile wanted = {part.layer, part.tile_y + i / part.tile_columns,
                                                   part.tile_x + i % part.tile_columns};
        tiles[i] = find_tile(search, wanted);
    }
}

/* Copies the cells, a warp per row. */
static __device__ inline void copy_cells(const struct ndt_gpu_search *search, const struct surroundings &part,
                                         struct window_share *share)
{
    const int32_t bits = search->edge_bits, inside = (1 << bits) - 1;
    const int32_t warp = (int32_t)(threadIdx.x / NDT_GPU_WARP), warps = (int32_t)(blockDim.x / NDT_GPU_WARP);
    for (int32_t row = warp; row < part.height; row += warps) {
        const int32_t y = part.y + row, tile_row = ((y >> bits) - part.tile_y) * part.tile_columns;
        for (int32_t word = (int32_t)(threadIdx.x % NDT_GPU_WARP); word < part.words; word += NDT_GPU_WARP) {
            const int32_t x = part.x + 4 * word, tile = share->tiles[tile_row + (x >> bits) - part.tile_x];
            const int32_t cell = ((y & inside) << bits | (x & inside)) / 4;
            share->cells[row * WORDS + word] =
                tile >= 0 ? search->cells[((size_t)tile << (2 * bits - 2)) + (size_t)cell] : 0;
        }
    }
}

/* Bits 4 * row + place: set where a sensor may be. */
static __device__ inline uint32_t allowed_places(const struct ndt_gpu_search_window *window, uint32_t row,
                                                 uint32_t column)
{
    uint32_t places = 0;
    for (int r = 0; r < ROWS; r++)
        places |= (uint32_t)(window->allowed[row + (uint32_t)r] >> (4 * column) & 15) << (4 * r);
    return places;
}

/* Sets each byte that is not zero to 1. */
static __device__ inline uint32_t each_hit(uint32_t bytes)
{
    return ((((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) & 0x80808080u) >> 7;
}

/* Counts points. at: the first place of the thread, in bytes. */
static __device__ inline void count_points(const uint32_t *cells, int32_t at, const uint32_t *points,
                                           uint32_t count, uint32_t sums[ROWS])
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t point = __ldg(points + i), mask = (point >> 16) * 0x01010101u;
        const uint32_t from = (uint32_t)(at + (int16_t)(point & 0xffff)), shift = from % 4 * 8;
        const uint32_t *row = cells + from / 4;
#pragma unroll
        for (int r = 0; r < ROWS; r++, row += WORDS) {
            const uint64_t both = (uint64_t)row[1] << 32 | row[0];
            sums[r] += each_hit((uint32_t)(both >> shift) & mask);
        }
    }
}

static __device__ inline uint32_t largest(const uint32_t sums[ROWS], uint32_t places)
{
    uint32_t best = 0;
#pragma unroll
    for (int i = 0; i < 4 * ROWS; i++) {
        const uint32_t sum = places >> i & 1 ? sums[i / 4] >> (8 * (i % 4)) & 255 : 0;
        best = sum > best ? sum : best;
    }
    return best;
}

extern "C" __global__ void __launch_bounds__(NDT_GPU_TEAM) ndt_search_score(const struct ndt_gpu_job job)
{
    __shared__ struct window_share share;
    const struct ndt_gpu_search *search = job.search;
    const uint32_t parts = (search->hypothesis_count + NDT_GPU_HYPOTHESES - 1) / NDT_GPU_HYPOTHESES;
    const uint32_t number = blockIdx.x / parts, first = blockIdx.x % parts * NDT_GPU_HYPOTHESES;
    const struct ndt_gpu_search_window *window = search->windows + number;
    const struct surroundings part = around(search, window);
    const uint32_t thread = threadIdx.x % NDT_GPU_BLOCK, column = thread % COLUMNS, row = thread / COLUMNS * ROWS;
    const uint32_t places = allowed_places(window, row, column);
    const int32_t at = ((int32_t)row + part.halo) * NDT_GPU_WINDOW_STRIDE + part.lead + 4 * (int32_t)column;
    find_tiles(search, part, share.tiles);
    __syncthreads(); /* the tiles are known */
    copy_cells(search, part, &share);
    __syncthreads(); /* the cells are there */
    for (uint32_t i = threadIdx.x / NDT_GPU_BLOCK; i < NDT_GPU_HYPOTHESES; i += NDT_GPU_GROUPS) {
        const uint32_t hypothesis = first + i;
        uint32_t sums[ROWS] = {0};
        if (hypothesis >= search->hypothesis_count) /* the same for all lanes of a warp */
            break;
        if (places != 0)
            count_points(share.cells, at, search->points + (size_t)hypothesis * NDT_GPU_SEARCH_POINTS,
                         search->counts[hypothesis], sums);
        const uint32_t half = largest(sums, places), other = __shfl_xor_sync(0xffffffffu, half, 1);
        uint8_t *peaks = search->peaks + ((size_t)number * search->hypothesis_count + hypothesis) * NDT_GPU_PEAKS;
        if (column % 2 == 0)
            peaks[row + column / 2] = (uint8_t)(half > other ? half : other);
    }
}

extern "C" const void *ndt_kernel_search_score(void)
{
    return (const void *)ndt_search_score;
}
