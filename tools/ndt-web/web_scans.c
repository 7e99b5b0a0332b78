#include "web_scans.h"

#include <endian.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, POINT_BYTES = 8, COUNT_AT = 24, SCALE_AT = 28 };
static const double FULL_SCALE = 32767, FULL_INTENSITY = 65535;
static const double LEAST_M = 1e-3; /* extent: a smaller scale would be no float */

struct web_scans {
    pthread_mutex_t lock;
    struct kept {
        uint64_t seq;
        struct web_blob *packed;
    } kept[WEB_SCANS_KEPT];
    size_t next;
};

/* ---- packing ---- */

static int is_finite(const struct ndt_cloud *cloud, size_t i)
{
    return isfinite(cloud->x_m[i]) && isfinite(cloud->y_m[i]) && isfinite(cloud->z_m[i]);
}

/* The coordinate of the point that is farthest out, and the largest intensity. */
static void find_scales(const struct ndt_cloud *cloud, double *extent_m, double *intensity)
{
    *extent_m = *intensity = 0;
    for (size_t i = 0; i < cloud->count; i++) {
        if (!is_finite(cloud, i))
            continue;
        *extent_m = fmax(*extent_m, fmax(fabs((double)cloud->x_m[i]),
                                         fmax(fabs((double)cloud->y_m[i]), fabs((double)cloud->z_m[i]))));
        if (cloud->intensity && isfinite(cloud->intensity[i]))
            *intensity = fmax(*intensity, (double)cloud->intensity[i]);
    }
}

static void put_16(uint8_t *at, uint16_t value)
{
    const uint16_t little = htole16(value);
    memcpy(at, &little, sizeof(little));
}

static void put_32(uint8_t *at, uint32_t value)
{
    const uint32_t little = htole32(value);
    memcpy(at, &little, sizeof(little));
}

static void put_64(uint8_t *at, uint64_t value)
{
    const uint64_t little = htole64(value);
    memcpy(at, &little, sizeof(little));
}

static void put_point(uint8_t *at, const struct ndt_cloud *cloud, size_t i, double scale_m, double full_intensity)
{
    const float coordinates_m[3] = {cloud->x_m[i], cloud->y_m[i], cloud->z_m[i]};
    for (size_t k = 0; k < 3; k++)
        put_16(at + 2 * k, (uint16_t)(int16_t)lrint((double)coordinates_m[k] / scale_m));
    const double part = cloud->intensity && full_intensity > 0 ? (double)cloud->intensity[i] / full_intensity : 0;
    put_16(at + 6, (uint16_t)(part > 0 ? lrint(fmin(part, 1) * FULL_INTENSITY) : 0)); /* NaN: 0 */
}

/* The i-th of `wanted` points out of `count`. Steps of equal length would meet the same rings of a sensor again and
 * again: they vary, after the fractional parts of the multiples of the golden ratio. */
static size_t choose_point(size_t i, size_t wanted, size_t count)
{
    const double golden = 0.6180339887498949, step = (double)count / (double)wanted;
    const double jitter = step < 2 ? 0 : (double)i * golden - floor((double)i * golden);
    const size_t chosen = (size_t)(((double)i + jitter) * step);
    return chosen < count ? chosen : count - 1;
}

struct web_blob *web_scan_pack(uint64_t seq, int64_t stamp_ns, const struct ndt_cloud *cloud, size_t most)
{
    const size_t wanted = cloud->count < most ? cloud->count : most;
    double extent_m, full_intensity;
    uint32_t count = 0, scale_bits;
    struct web_blob *packed = web_blob_make(WEB_SCAN_HEAD + wanted * POINT_BYTES);
    if (!packed)
        return NULL;
    find_scales(cloud, &extent_m, &full_intensity);
    const float scale_m = (float)(fmax(extent_m, LEAST_M) / (FULL_SCALE - 1)); /* room for the rounding to float */
    for (size_t i = 0; i < wanted; i++) {
        const size_t from = choose_point(i, wanted, cloud->count);
        if (is_finite(cloud, from))
            put_point(packed->data + WEB_SCAN_HEAD + POINT_BYTES * (size_t)count++, cloud, from, (double)scale_m,
                      full_intensity);
    }
    memcpy(&scale_bits, &scale_m, sizeof(scale_bits));
    memcpy(packed->data, "NDTS", 4);
    put_32(packed->data + 4, VERSION);
    put_64(packed->data + 8, seq);
    put_64(packed->data + 16, (uint64_t)stamp_ns);
    put_32(packed->data + COUNT_AT, count);
    put_32(packed->data + SCALE_AT, scale_bits);
    packed->size = WEB_SCAN_HEAD + (size_t)count * POINT_BYTES;
    return packed;
}

uint32_t web_scan_count(const struct web_blob *packed)
{
    uint32_t little;
    memcpy(&little, packed->data + COUNT_AT, sizeof(little));
    return le32toh(little);
}

/* ---- ring ---- */

struct web_scans *web_scans_open(void)
{
    struct web_scans *scans = calloc(1, sizeof(*scans));
    if (scans)
        pthread_mutex_init(&scans->lock, NULL);
    return scans;
}

void web_scans_close(struct web_scans *scans)
{
    if (!scans)
        return;
    for (size_t i = 0; i < WEB_SCANS_KEPT; i++)
        web_blob_drop(scans->kept[i].packed);
    pthread_mutex_destroy(&scans->lock);
    free(scans);
}

void web_scans_put(struct web_scans *scans, uint64_t seq, struct web_blob *packed)
{
    pthread_mutex_lock(&scans->lock);
    struct kept *place = &scans->kept[scans->next++ % WEB_SCANS_KEPT];
    web_blob_drop(place->packed);
    *place = (struct kept){seq, packed};
    pthread_mutex_unlock(&scans->lock);
}

size_t web_scans_count(struct web_scans *scans)
{
    pthread_mutex_lock(&scans->lock);
    const size_t count = scans->next < WEB_SCANS_KEPT ? scans->next : WEB_SCANS_KEPT;
    pthread_mutex_unlock(&scans->lock);
    return count;
}

struct web_blob *web_scans_get(struct web_scans *scans, uint64_t seq)
{
    struct web_blob *packed = NULL;
    pthread_mutex_lock(&scans->lock);
    for (size_t i = 1; i <= WEB_SCANS_KEPT && !packed; i++) { /* newest first */
        const struct kept *at = &scans->kept[(scans->next + WEB_SCANS_KEPT - i) % WEB_SCANS_KEPT];
        if (at->packed && at->seq == seq)
            packed = web_blob_share(at->packed);
    }
    pthread_mutex_unlock(&scans->lock);
    return packed;
}
