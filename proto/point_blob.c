#include "point_blob.h"

#include <endian.h>
#include <math.h>
#include <string.h>

/* Time is spread over many names; the first field in the message that has one of them is taken. */
static const struct {
    const char *name;
    enum ndt_point_part part;
} known_fields[] = {
    {"x", NDT_POINT_X},
    {"y", NDT_POINT_Y},
    {"z", NDT_POINT_Z},
    {"intensity", NDT_POINT_INTENSITY},
    {"time", NDT_POINT_TIME},
    {"t", NDT_POINT_TIME},
    {"time_s", NDT_POINT_TIME},
    {"time_stamp", NDT_POINT_TIME},
    {"timestamp", NDT_POINT_TIME},
    {"offset_time", NDT_POINT_TIME},
};
enum { KNOWN_COUNT = sizeof(known_fields) / sizeof(known_fields[0]) };

static const char *const part_names[NDT_POINT_PARTS] = {"x", "y", "z", "intensity", "time"};
static const uint8_t datatype_bytes[] = {0, 1, 1, 2, 2, 4, 4, 4, 8};

static enum ndt_status take_field(struct ndt_wire_reader *reader, struct ndt_point_blob *blob, const char *name,
                                  size_t length, struct ndt_point_field field, uint64_t elements)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strlen(known_fields[i].name) != length || memcmp(known_fields[i].name, name, length) != 0)
            continue;
        const enum ndt_point_part part = known_fields[i].part;
        if (elements != 1)
            return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' has %llu elements, 1 is expected",
                            known_fields[i].name, (unsigned long long)elements);
        if (part <= NDT_POINT_Z && field.datatype < NDT_DATATYPE_FLOAT32)
            return ndt_fail(reader->err, NDT_ERR_FORMAT,
                            "'%s' has datatype %d; 7 (FLOAT32) or 8 (FLOAT64) is expected", known_fields[i].name,
                            (int)field.datatype);
        if (blob->fields[part].datatype == NDT_DATATYPE_NONE)
            blob->fields[part] = field;
        else if (part != NDT_POINT_TIME)
            return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' appears a second time", known_fields[i].name);
        return NDT_OK;
    }
    return NDT_OK;
}

static enum ndt_status read_field(struct ndt_wire_reader *reader, struct ndt_point_blob *blob)
{
    size_t parts = 0, length = 0;
    const char *name = NULL;
    uint64_t offset = 0, datatype = 0, elements = 0;
    enum ndt_status status = ndt_wire_read_array(reader, &parts);
    if (status == NDT_OK && parts != 4)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "%zu items where name, offset, datatype, count are expected",
                        parts);
    if (status == NDT_OK)
        status = ndt_wire_read_text(reader, NDT_PROTO_MAX_NAME, &name, &length);
    if (status == NDT_OK)
        status = ndt_wire_read_uint(reader, UINT32_MAX, &offset);
    if (status == NDT_OK)
        status = ndt_wire_read_uint(reader, UINT64_MAX, &datatype);
    if (status == NDT_OK)
        status = ndt_wire_read_uint(reader, UINT32_MAX, &elements);
    if (status != NDT_OK)
        return status;
    if (datatype < NDT_DATATYPE_INT8 || datatype > NDT_DATATYPE_FLOAT64)
        return ndt_fail(reader->err, NDT_ERR_FORMAT, "datatype %llu is none of 1 (INT8) to 8 (FLOAT64)",
                        (unsigned long long)datatype);
    if (elements == 0) /* some drivers say 0 and mean 1 */
        elements = 1;
    const uint64_t end = offset + elements * datatype_bytes[datatype];
    if (end > blob->fields_end)
        blob->fields_end = end;
    const struct ndt_point_field field = {(enum ndt_datatype)datatype, (uint32_t)offset};
    return take_field(reader, blob, name, length, field, elements);
}

enum ndt_status ndt_point_fields_read(struct ndt_wire_reader *reader, struct ndt_point_blob *blob)
{
    size_t count = 0;
    enum ndt_status status = ndt_wire_read_array(reader, &count);
    if (status == NDT_OK && count > NDT_PROTO_MAX_FIELDS)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%zu fields are above the limit of %d", count,
                        NDT_PROTO_MAX_FIELDS);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = read_field(reader, blob);
        if (status != NDT_OK)
            return ndt_fail_prefix(reader->err, status, "point field %zu", i);
    }
    return status;
}

enum ndt_status ndt_point_blob_check(const struct ndt_point_blob *blob, struct ndt_error *err)
{
    for (int part = NDT_POINT_X; part <= NDT_POINT_Z; part++)
        if (blob->fields[part].datatype == NDT_DATATYPE_NONE)
            return ndt_fail(err, NDT_ERR_FORMAT, "field 'fields': there is no point field '%s'", part_names[part]);
    if (blob->count > NDT_CLOUD_MAX_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "field 'count': %llu points are above the limit of %zu",
                        (unsigned long long)blob->count, NDT_CLOUD_MAX_POINTS);
    if (blob->step > NDT_PROTO_MAX_FRAME || blob->step < blob->fields_end)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "field 'point_step': %llu bytes, but the fields end at byte %llu and a message at %zu",
                        (unsigned long long)blob->step, (unsigned long long)blob->fields_end, NDT_PROTO_MAX_FRAME);
    if (blob->count * blob->step != blob->size) /* below 2^28 * 2^28 */
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'data': %zu bytes, but %llu points of %llu bytes are declared",
                        blob->size, (unsigned long long)blob->count, (unsigned long long)blob->step);
    return NDT_OK;
}

static inline uint16_t load_u16(const uint8_t *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof(bits));
    return le16toh(bits);
}

static inline uint32_t load_u32(const uint8_t *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof(bits));
    return le32toh(bits);
}

static inline float load_f32(const uint8_t *at)
{
    const uint32_t bits = load_u32(at);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline double load_f64(const uint8_t *at)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof(bits));
    bits = le64toh(bits);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline __attribute__((always_inline)) double load_number(const uint8_t *at, enum ndt_datatype datatype)
{
    switch (datatype) {
    case NDT_DATATYPE_INT8:
        return (int8_t)*at;
    case NDT_DATATYPE_UINT8:
        return *at;
    case NDT_DATATYPE_INT16:
        return (int16_t)load_u16(at);
    case NDT_DATATYPE_UINT16:
        return load_u16(at);
    case NDT_DATATYPE_INT32:
        return (int32_t)load_u32(at);
    case NDT_DATATYPE_UINT32:
        return load_u32(at);
    case NDT_DATATYPE_FLOAT32:
        return load_f32(at);
    default:
        return load_f64(at);
    }
}

/* How one field becomes one array: dst[i] = (number - base) * scale. */
struct column {
    enum ndt_datatype datatype;
    const uint8_t *src;
    float *dst;
    double base, scale;
};

static inline __attribute__((always_inline)) void copy_as(const struct column *c, size_t step, size_t from,
                                                          size_t to, enum ndt_datatype datatype)
{
    const uint8_t *at = c->src + from * step;
    for (size_t i = from; i < to; i++, at += step)
        c->dst[i] = (float)((load_number(at, datatype) - c->base) * c->scale);
}

/* One loop per datatype: with the constant at the call, the switch inside load_number disappears. */
static void copy_column(const struct column *c, size_t step, size_t from, size_t to)
{
    switch (c->datatype) {
    case NDT_DATATYPE_INT8:
        copy_as(c, step, from, to, NDT_DATATYPE_INT8);
        break;
    case NDT_DATATYPE_UINT8:
        copy_as(c, step, from, to, NDT_DATATYPE_UINT8);
        break;
    case NDT_DATATYPE_INT16:
        copy_as(c, step, from, to, NDT_DATATYPE_INT16);
        break;
    case NDT_DATATYPE_UINT16:
        copy_as(c, step, from, to, NDT_DATATYPE_UINT16);
        break;
    case NDT_DATATYPE_INT32:
        copy_as(c, step, from, to, NDT_DATATYPE_INT32);
        break;
    case NDT_DATATYPE_UINT32:
        copy_as(c, step, from, to, NDT_DATATYPE_UINT32);
        break;
    case NDT_DATATYPE_FLOAT32:
        copy_as(c, step, from, to, NDT_DATATYPE_FLOAT32);
        break;
    case NDT_DATATYPE_FLOAT64:
        copy_as(c, step, from, to, NDT_DATATYPE_FLOAT64);
        break;
    case NDT_DATATYPE_NONE:
        break;
    }
}

static double number_at(const struct ndt_point_blob *blob, enum ndt_point_part part, size_t i)
{
    const struct ndt_point_field field = blob->fields[part];
    return load_number(blob->data + i * blob->step + field.offset, field.datatype);
}

static int has_doubles(const struct ndt_point_blob *blob)
{
    return blob->fields[NDT_POINT_X].datatype == NDT_DATATYPE_FLOAT64 ||
           blob->fields[NDT_POINT_Y].datatype == NDT_DATATYPE_FLOAT64 ||
           blob->fields[NDT_POINT_Z].datatype == NDT_DATATYPE_FLOAT64;
}

/* Coordinates beyond it are no places on this planet, and no reason to move the origin. */
static const double PLANET_M = 1e8;

static inline __attribute__((always_inline)) double largest_as(const struct ndt_point_blob *blob,
                                                               enum ndt_point_part part, enum ndt_datatype datatype)
{
    const uint8_t *at = blob->data + blob->fields[part].offset;
    double largest = 0;
    for (size_t i = 0; i < blob->count; i++, at += blob->step) {
        const double size = fabs(load_number(at, datatype));
        if (size <= PLANET_M && size > largest)
            largest = size;
    }
    return largest;
}

static double largest_coordinate(const struct ndt_point_blob *blob, enum ndt_point_part part)
{
    return blob->fields[part].datatype == NDT_DATATYPE_FLOAT64 ? largest_as(blob, part, NDT_DATATYPE_FLOAT64)
                                                               : largest_as(blob, part, NDT_DATATYPE_FLOAT32);
}

static int is_place(const double p[3])
{
    return fabs(p[0]) <= PLANET_M && fabs(p[1]) <= PLANET_M && fabs(p[2]) <= PLANET_M;
}

/* Below FLOAT_LIMIT_M a float is good to 0.1 mm and the origin stays zero. Otherwise it is the first point that
 * is a place, in steps of ORIGIN_STEP_M. */
static void choose_origin(const struct ndt_point_blob *blob, double origin_m[3])
{
    static const double FLOAT_LIMIT_M = 2048.0, ORIGIN_STEP_M = 1024.0;
    double largest = 0;
    memset(origin_m, 0, 3 * sizeof(double));
    for (int axis = 0; has_doubles(blob) && axis < 3; axis++)
        largest = fmax(largest, largest_coordinate(blob, (enum ndt_point_part)axis));
    if (largest < FLOAT_LIMIT_M)
        return;
    double first[3] = {NAN, NAN, NAN};
    for (size_t i = 0; i < blob->count && !is_place(first); i++)
        for (int axis = 0; axis < 3; axis++)
            first[axis] = number_at(blob, (enum ndt_point_part)axis, i);
    for (int axis = 0; is_place(first) && axis < 3; axis++)
        origin_m[axis] = ORIGIN_STEP_M * round(first[axis] / ORIGIN_STEP_M);
}

/* Floats are seconds, integers nanoseconds. No sweep lasts MAX_OFFSET_S: times beyond it are absolute, and are
 * taken relative to the stamp or, when they come from another clock, to the first point. */
static void prepare_time(const struct ndt_point_blob *blob, int64_t stamp_ns, struct column *column)
{
    static const double MAX_OFFSET_S = 10.0;
    if (column->datatype < NDT_DATATYPE_FLOAT32) {
        column->scale = 1e-9;
        return;
    }
    size_t i = 0;
    while (i < blob->count && !isfinite(number_at(blob, NDT_POINT_TIME, i)))
        i++;
    const double first = i < blob->count ? number_at(blob, NDT_POINT_TIME, i) : 0.0;
    const double stamp_s = (double)stamp_ns * 1e-9;
    if (fabs(first) > MAX_OFFSET_S)
        column->base = fabs(first - stamp_s) <= MAX_OFFSET_S ? stamp_s : first;
}

/* What nearly every sensor sends; more than twice as fast as three columns through double. */
static void copy_float_xyz(const struct ndt_point_blob *blob, struct ndt_cloud *cloud, size_t from, size_t to)
{
    const uint8_t *at = blob->data + from * blob->step;
    const size_t x = blob->fields[NDT_POINT_X].offset, y = blob->fields[NDT_POINT_Y].offset,
                 z = blob->fields[NDT_POINT_Z].offset;
    for (size_t i = from; i < to; i++, at += blob->step) {
        cloud->x_m[i] = load_f32(at + x);
        cloud->y_m[i] = load_f32(at + y);
        cloud->z_m[i] = load_f32(at + z);
    }
}

static void copy_points(const struct ndt_point_blob *blob, int64_t stamp_ns, struct ndt_cloud *cloud)
{
    enum { BLOCK = 256 }; /* points: a block of records stays in the L1 cache while its columns are copied */
    float *const dst[NDT_POINT_PARTS] = {cloud->x_m, cloud->y_m, cloud->z_m, cloud->intensity, cloud->time_s};
    struct column columns[NDT_POINT_PARTS];
    for (int part = 0; part < NDT_POINT_PARTS; part++)
        columns[part] = (struct column){.datatype = blob->fields[part].datatype,
                                        .src = blob->data + blob->fields[part].offset,
                                        .dst = dst[part],
                                        .base = part <= NDT_POINT_Z ? cloud->origin_m[part] : 0.0,
                                        .scale = 1.0};
    if (columns[NDT_POINT_TIME].datatype != NDT_DATATYPE_NONE)
        prepare_time(blob, stamp_ns, &columns[NDT_POINT_TIME]);
    const int first_column = has_doubles(blob) ? NDT_POINT_X : NDT_POINT_INTENSITY;
    for (size_t from = 0; from < blob->count; from += BLOCK) {
        const size_t to = from + BLOCK < blob->count ? from + BLOCK : blob->count;
        if (first_column != NDT_POINT_X)
            copy_float_xyz(blob, cloud, from, to);
        for (int part = first_column; part < NDT_POINT_PARTS; part++)
            copy_column(&columns[part], blob->step, from, to);
    }
}

/* A reused cloud may have arrays that this scan does not fill; stale numbers must not pass for measured ones. */
static void drop_fields(struct ndt_cloud *cloud, unsigned fields)
{
    cloud->fields &= fields;
    if (!(cloud->fields & NDT_CLOUD_INTENSITY))
        cloud->intensity = NULL;
    if (!(cloud->fields & NDT_CLOUD_TIME))
        cloud->time_s = NULL;
}

enum ndt_status ndt_point_blob_take(const struct ndt_point_blob *blob, int64_t stamp_ns, struct ndt_cloud *cloud,
                                    struct ndt_error *err)
{
    unsigned fields = 0;
    if (blob->fields[NDT_POINT_INTENSITY].datatype != NDT_DATATYPE_NONE)
        fields |= NDT_CLOUD_INTENSITY;
    if (blob->fields[NDT_POINT_TIME].datatype != NDT_DATATYPE_NONE)
        fields |= NDT_CLOUD_TIME;
    const enum ndt_status status = ndt_cloud_reserve(cloud, (size_t)blob->count, fields, err);
    if (status != NDT_OK)
        return status;
    drop_fields(cloud, fields);
    choose_origin(blob, cloud->origin_m);
    copy_points(blob, stamp_ns, cloud);
    cloud->count = (size_t)blob->count;
    return NDT_OK;
}

static void add_field(struct ndt_point_blob *blob, enum ndt_point_part part, enum ndt_datatype datatype)
{
    blob->fields[part] = (struct ndt_point_field){datatype, (uint32_t)blob->step};
    blob->step += datatype_bytes[datatype];
}

void ndt_point_blob_layout(struct ndt_point_blob *blob, const struct ndt_cloud *cloud)
{
    const int is_local = cloud->origin_m[0] == 0 && cloud->origin_m[1] == 0 && cloud->origin_m[2] == 0;
    const enum ndt_datatype real = is_local ? NDT_DATATYPE_FLOAT32 : NDT_DATATYPE_FLOAT64;
    *blob = (struct ndt_point_blob){.count = cloud->count};
    add_field(blob, NDT_POINT_X, real);
    add_field(blob, NDT_POINT_Y, real);
    add_field(blob, NDT_POINT_Z, real);
    if (cloud->intensity)
        add_field(blob, NDT_POINT_INTENSITY, NDT_DATATYPE_FLOAT32);
    if (cloud->time_s)
        add_field(blob, NDT_POINT_TIME, NDT_DATATYPE_FLOAT32);
    blob->fields_end = blob->step;
}

void ndt_point_fields_write(struct ndt_wire_writer *writer, const struct ndt_point_blob *blob)
{
    size_t count = 0;
    for (int part = 0; part < NDT_POINT_PARTS; part++)
        count += blob->fields[part].datatype != NDT_DATATYPE_NONE ? 1 : 0;
    ndt_wire_put_array(writer, count);
    for (int part = 0; part < NDT_POINT_PARTS; part++) {
        if (blob->fields[part].datatype == NDT_DATATYPE_NONE)
            continue;
        ndt_wire_put_array(writer, 4);
        ndt_wire_put_text(writer, part_names[part]);
        ndt_wire_put_uint(writer, blob->fields[part].offset);
        ndt_wire_put_uint(writer, blob->fields[part].datatype);
        ndt_wire_put_uint(writer, 1);
    }
}

static void store_f32(uint8_t *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = htole32(bits);
    memcpy(at, &bits, sizeof(bits));
}

static void store_f64(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = htole64(bits);
    memcpy(at, &bits, sizeof(bits));
}

void ndt_point_blob_write(struct ndt_wire_writer *writer, const struct ndt_point_blob *blob,
                          const struct ndt_cloud *cloud)
{
    const float *const src[NDT_POINT_PARTS] = {cloud->x_m, cloud->y_m, cloud->z_m, cloud->intensity, cloud->time_s};
    uint8_t *data = ndt_wire_put_blob(writer, (size_t)(blob->count * blob->step));
    for (int part = 0; data && part < NDT_POINT_PARTS; part++) {
        const struct ndt_point_field field = blob->fields[part];
        uint8_t *at = data + field.offset;
        for (size_t i = 0; field.datatype == NDT_DATATYPE_FLOAT32 && i < blob->count; i++, at += blob->step)
            store_f32(at, src[part][i]);
        for (size_t i = 0; field.datatype == NDT_DATATYPE_FLOAT64 && i < blob->count; i++, at += blob->step)
            store_f64(at, src[part][i] + cloud->origin_m[part]);
    }
}
