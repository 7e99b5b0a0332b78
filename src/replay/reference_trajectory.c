#include "ndtd/reference_trajectory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt/hash.h"
#include "ndt_io/input_file.h"

static const double EXACT_M = 1e-9, EXACT_DEG = 1e-7;
static const double DEG_PER_RAD = 180.0 / 3.14159265358979323846;
enum { HASH_DIGITS = 16 };

/* ---- hash ---- */

static unsigned char *put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        *at++ = (unsigned char)(value >> (8 * i));
    return at;
}

static unsigned char *put_real(unsigned char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return put_u64(at, bits);
}

uint64_t ndtd_trajectory_hash(uint64_t hash, uint64_t seq, int64_t stamp_ns, enum ndt_outcome outcome,
                              const struct ndt_pose *T_map_sensor)
{
    unsigned char bytes[10 * 8], *at = bytes;
    at = put_u64(at, seq);
    at = put_u64(at, (uint64_t)stamp_ns);
    at = put_u64(at, (uint64_t)outcome);
    for (int i = 0; i < 3; i++)
        at = put_real(at, T_map_sensor->t_m[i]);
    for (int i = 0; i < 4; i++)
        at = put_real(at, T_map_sensor->q_xyzw[i]);
    return ndt_hash64(bytes, sizeof(bytes), hash);
}

/* ---- file ---- */

/* Parses exactly 16 hexadecimal digits, after quotes, colons and white space. */
static int parse_hash(const char *text, uint64_t *hash)
{
    text += strspn(text, " \t\":");
    if (strspn(text, "0123456789abcdefABCDEF") != HASH_DIGITS)
        return 0;
    char digits[HASH_DIGITS + 1] = "";
    memcpy(digits, text, HASH_DIGITS);
    *hash = strtoull(digits, NULL, 16);
    return 1;
}

static int find_number(const char *text, const char *key, double *value)
{
    const char *at = strstr(text, key);
    if (!at)
        return 0;
    char *end;
    *value = strtod(at + strlen(key), &end);
    return end != at + strlen(key) && isfinite(*value) && *value >= 0;
}

/* Whether the text is one hash and white space. */
static int is_bare_hash(const char *text, uint64_t *hash)
{
    text += strspn(text, " \t\r\n");
    return parse_hash(text, hash) && text[HASH_DIGITS + strspn(text + HASH_DIGITS, " \t\r\n")] == '\0';
}

/* Whether there is a line that is neither empty nor a comment. */
static int has_rows(const char *text)
{
    while (*text) {
        text += strspn(text, " \t\r\n");
        if (*text && *text != '#')
            return 1;
        text += strcspn(text, "\n");
    }
    return 0;
}

static enum ndt_status parse(struct ndtd_reference_trajectory *out, const char *text, const char *path,
                             struct ndt_error *err)
{
    const char *key = strstr(text, "trajectory_hash");
    if (is_bare_hash(text, &out->hash)) {
        out->has_hash = 1;
        return NDT_OK;
    }
    if (key && !(out->has_hash = parse_hash(key + strlen("trajectory_hash"), &out->hash)))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: trajectory_hash is not followed by %d hexadecimal digits", path,
                        HASH_DIGITS);
    if (text[strspn(text, " \t\r\n")] == '{')
        return out->has_hash ? NDT_OK : ndt_fail(err, NDT_ERR_FORMAT, "%s: no trajectory_hash in it", path);
    int in_m = find_number(text, "# tolerance_m ", &out->tolerance_m);
    int in_deg = find_number(text, "# tolerance_deg ", &out->tolerance_deg);
    if (in_m != in_deg)
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: tolerance_m and tolerance_deg must come together", path);
    out->has_tolerance = in_m;
    if (!in_m) {
        out->tolerance_m = EXACT_M;
        out->tolerance_deg = EXACT_DEG;
    }
    return has_rows(text) ? ndt_trajectory_read(&out->poses, path, NDT_TUM, err) : NDT_OK;
}

enum ndt_status ndtd_reference_trajectory_read(struct ndtd_reference_trajectory *out, const char *path,
                                               struct ndt_error *err)
{
    *out = (struct ndtd_reference_trajectory){0};
    char *text = NULL;
    size_t size;
    enum ndt_status status = ndt_input_file_read(&text, &size, path, NDTD_REFERENCE_TRAJECTORY_MAX_BYTES, err);
    if (status == NDT_OK)
        status = parse(out, text, path, err);
    free(text);
    if (status == NDT_OK && !out->has_hash && out->poses.count == 0)
        status = ndt_fail(err, NDT_ERR_FORMAT, "%s: neither a hash nor poses in it", path);
    if (status != NDT_OK)
        ndtd_reference_trajectory_free(out);
    return status;
}

void ndtd_reference_trajectory_free(struct ndtd_reference_trajectory *reference)
{
    ndt_trajectory_free(&reference->poses);
    *reference = (struct ndtd_reference_trajectory){0};
}

/* ---- comparison ---- */

void ndtd_reference_trajectory_compare(struct ndtd_reference_trajectory *reference, int64_t stamp_ns,
                                       const struct ndt_pose *T_map_sensor)
{
    const struct ndt_trajectory *poses = &reference->poses;
    size_t at = reference->seen++;
    if (poses->count == 0 || *reference->difference)
        return;
    char *text = reference->difference;
    size_t size = sizeof(reference->difference);
    if (at >= poses->count) {
        snprintf(text, size, "pose %zu (stamp %" PRId64 " ns) is one too many, expected %zu", at + 1, stamp_ns,
                 poses->count);
        return;
    }
    const struct ndt_stamped_pose *wanted = &poses->poses[at];
    if (wanted->stamp_ns != stamp_ns) {
        snprintf(text, size, "pose %zu has stamp %" PRId64 " ns, expected %" PRId64 " ns", at + 1, stamp_ns,
                 wanted->stamp_ns);
        return;
    }
    double off_m = ndt_pose_distance_m(&wanted->T_map_sensor, T_map_sensor);
    double off_deg = ndt_pose_angle_rad(&wanted->T_map_sensor, T_map_sensor) * DEG_PER_RAD;
    if (!(off_m <= reference->tolerance_m && off_deg <= reference->tolerance_deg))
        snprintf(text, size,
                 "pose %zu (stamp %" PRId64 " ns) is off by %.3g m and %.3g deg; %.3g m and %.3g deg are "
                 "allowed",
                 at + 1, stamp_ns, off_m, off_deg, reference->tolerance_m, reference->tolerance_deg);
}

int ndtd_reference_trajectory_matches(struct ndtd_reference_trajectory *reference, uint64_t hash)
{
    char *text = reference->difference;
    size_t size = sizeof(reference->difference);
    int by_hash = reference->has_hash && !reference->has_tolerance;
    if (by_hash && reference->hash == hash)
        return 1;
    if (!*text && reference->seen < reference->poses.count)
        snprintf(text, size, "%zu poses, expected %zu", reference->seen, reference->poses.count);
    if (!*text && by_hash)
        snprintf(text, size, "trajectory hash %016" PRIx64 ", expected %016" PRIx64, hash, reference->hash);
    return !*text;
}
