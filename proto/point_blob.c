/* The points of a message: its list of fields, and the blob to and from a cloud. */
#include "point_blob.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#include "ndt/clock.h"

/* ---- the list of point fields ---- */

/* Names of the time field, which drivers call differently; the first field in the message with one of them is used.
 */
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

static enum ndt_status use_field(struct ndt_wire_reader *reader, struct ndt_point_layout *layout, const char *name,
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
        if (layout->fields[part].datatype == NDT_DATATYPE_NONE)
            layout->fields[part] = field;
        else if (part != NDT_POINT_TIME)
            return ndt_fail(reader->err, NDT_ERR_FORMAT, "'%s' appears a second time", known_fields[i].name);
        return NDT_OK;
    }
    return NDT_OK;
}

static enum ndt_status read_field(struct ndt_wire_reader *reader, struct ndt_point_layout *layout)
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
    if (elements == 0) /* some drivers write 0 and mean 1 */
        elements = 1;
    const uint64_t end = offset + elements * datatype_bytes[datatype];
    if (end > layout->fields_end)
        layout->fields_end = end;
    const struct ndt_point_field field = {(enum ndt_datatype)datatype, (uint32_t)offset};
    return use_field(reader, layout, name, length, field, elements);
}

enum ndt_status ndt_points_read_fields(struct ndt_wire_reader *reader, struct ndt_point_layout *layout)
{
    size_t count = 0;
    enum ndt_status status = ndt_wire_read_array(reader, &count);
    if (status == NDT_OK && count > NDT_PROTO_MAX_FIELDS)
        return ndt_fail(reader->err, NDT_ERR_LIMIT, "%zu fields are above the limit of %d", count,
                        NDT_PROTO_MAX_FIELDS);
    for (size_t i = 0; status == NDT_OK && i < count; i++) {
        status = read_field(reader, layout);
        if (status != NDT_OK)
            return ndt_fail_prefix(reader->err, status, "point field %zu", i);
    }
    return status;
}

enum ndt_status ndt_points_check_layout(const struct ndt_point_layout *layout, struct ndt_error *err)
{
    for (int part = NDT_POINT_X; part <= NDT_POINT_Z; part++)
        if (layout->fields[part].datatype == NDT_DATATYPE_NONE)
            return ndt_fail(err, NDT_ERR_FORMAT, "field 'fields': there is no point field '%s'", part_names[part]);
    if (layout->count > NDT_CLOUD_MAX_POINTS)
        return ndt_fail(err, NDT_ERR_LIMIT, "field 'count': %llu points are above the limit of %zu",
                        (unsigned long long)layout->count, NDT_CLOUD_MAX_POINTS);
    if (layout->step > NDT_PROTO_MAX_FRAME || layout->step < layout->fields_end)
        return ndt_fail(err, NDT_ERR_FORMAT,
                        "field 'point_step': %llu bytes, but the fields end at byte %llu and a message at %zu",
                        (unsigned long long)layout->step, (unsigned long long)layout->fields_end,
                        NDT_PROTO_MAX_FRAME);
    if (layout->count * layout->step != layout->data_size) /* no overflow: below 2^28 * 2^28 */
        return ndt_fail(err, NDT_ERR_FORMAT, "field 'data': %zu bytes, but %llu points of %llu bytes are declared",
                        layout->data_size, (unsigned long long)layout->count, (unsigned long long)layout->step);
    return NDT_OK;
}

enum ndt_status ndt_points_read_data(struct ndt_wire_reader *reader, struct ndt_point_layout *layout)
{
    const uint8_t *data = reader->data;
    const enum ndt_status status = ndt_wire_read_blob(reader, &data, &layout->data_size);
    layout->data_at = (size_t)(data - reader->data);
    return status;
}

/* ---- points to a cloud ---- */

/* The points of one message. */
struct blob {
    const struct ndt_point_layout *layout;
    const uint8_t *data;
};

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

/* Conversion of one field to one array: dst[i] = (number - base) * scale. */
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

static double number_at(const struct blob *blob, enum ndt_point_part part, size_t i)
{
    const struct ndt_point_field field = blob->layout->fields[part];
    return load_number(blob->data + i * blob->layout->step + field.offset, field.datatype);
}

static int has_doubles(const struct blob *blob)
{
    return blob->layout->fields[NDT_POINT_X].datatype == NDT_DATATYPE_FLOAT64 ||
           blob->layout->fields[NDT_POINT_Y].datatype == NDT_DATATYPE_FLOAT64 ||
           blob->layout->fields[NDT_POINT_Z].datatype == NDT_DATATYPE_FLOAT64;
}

/* Largest coordinate of a position on Earth [m]; larger ones do not move the origin. */
static const double EARTH_M = 1e8;

static inline __attribute__((always_inline)) double largest_as(const struct blob *blob, enum ndt_point_part part,
                                                               enum ndt_datatype datatype)
{
    const uint8_t *at = blob->data + blob->layout->fields[part].offset;
    double largest = 0;
    for (size_t i = 0; i < blob->layout->count; i++, at += blob->layout->step) {
        const double size = fabs(load_number(at, datatype));
        if (size <= EARTH_M && size > largest)
            largest = size;
    }
    return largest;
}

static double largest_coordinate(const struct blob *blob, enum ndt_point_part part)
{
    return blob->layout->fields[part].datatype == NDT_DATATYPE_FLOAT64
               ? largest_as(blob, part, NDT_DATATYPE_FLOAT64)
               : largest_as(blob, part, NDT_DATATYPE_FLOAT32);
}

static int is_position(const double p[3])
{
    return fabs(p[0]) <= EARTH_M && fabs(p[1]) <= EARTH_M && fabs(p[2]) <= EARTH_M;
}

/* Chooses the origin. Below FLOAT_LIMIT_M a float resolves 0.1 mm and the origin stays zero; otherwise it is the
 * first valid position, rounded to ORIGIN_STEP_M. */
static void choose_origin(const struct blob *blob, double origin_m[3])
{
    static const double FLOAT_LIMIT_M = 2048.0, ORIGIN_STEP_M = 1024.0;
    double largest = 0;
    memset(origin_m, 0, 3 * sizeof(double));
    for (int axis = 0; has_doubles(blob) && axis < 3; axis++)
        largest = fmax(largest, largest_coordinate(blob, (enum ndt_point_part)axis));
    if (largest < FLOAT_LIMIT_M)
        return;
    double first[3] = {NAN, NAN, NAN};
    for (size_t i = 0; i < blob->layout->count && !is_position(first); i++)
        for (int axis = 0; axis < 3; axis++)
            first[axis] = number_at(blob, (enum ndt_point_part)axis, i);
    for (int axis = 0; is_position(first) && axis < 3; axis++)
        origin_m[axis] = ORIGIN_STEP_M * round(first[axis] / ORIGIN_STEP_M);
}

/* Number of samples that tell the meaning of times: a few wrong ones do not decide. */
enum { TIME_SAMPLES = 15 };

static void sort_in(double *sorted, size_t count, double value)
{
    while (count > 0 && sorted[count - 1] > value) {
        sorted[count] = sorted[count - 1];
        count--;
    }
    sorted[count] = value;
}

/* Finds the median of times from all over the scan, and the first of them. Returns 0 where all are zero or none is
 * finite. */
static int sample_times(const struct blob *blob, double *median, double *first)
{
    const size_t points = (size_t)blob->layout->count, every = points / TIME_SAMPLES + 1;
    double sorted[TIME_SAMPLES];
    size_t count = 0, i = 0;
    while (i < points && !isfinite(number_at(blob, NDT_POINT_TIME, i)))
        i++;
    *first = i < points ? number_at(blob, NDT_POINT_TIME, i) : 0;
    for (; i < points && count < TIME_SAMPLES; i += every) {
        const double value = number_at(blob, NDT_POINT_TIME, i);
        if (isfinite(value) && value != 0) /* some drivers leave the time of a missing return at zero */
            sort_in(sorted, count++, value);
    }
    *median = count > 0 ? sorted[count / 2] : 0;
    return count > 0;
}

/* Sets the conversion of times. Floats are seconds, integers nanoseconds. No sweep lasts MAX_OFFSET_S: larger times
 * are absolute, in seconds or a part of them, and become relative to the stamp or, when they come from another
 * clock, to the first point. Returns the offset that was subtracted from times of another clock [s], 0 otherwise.
 */
static double prepare_time(const struct blob *blob, int64_t stamp_ns, struct column *column)
{
    static const double MAX_OFFSET_S = 10.0, UNITS_S[] = {1, 1e-3, 1e-6, 1e-9}, YEAR_1973_S = 1e8;
    double median, first;
    if (column->datatype < NDT_DATATYPE_FLOAT32) {
        column->scale = 1e-9;
        return 0;
    }
    if (!sample_times(blob, &median, &first) || fabs(median) <= MAX_OFFSET_S)
        return 0;
    const double stamp_s = (double)stamp_ns * 1e-9;
    for (size_t i = 0; i < sizeof(UNITS_S) / sizeof(UNITS_S[0]); i++)
        if (fabs(median * UNITS_S[i] - stamp_s) <= MAX_OFFSET_S && (i == 0 || stamp_s > YEAR_1973_S)) {
            column->base = stamp_s / UNITS_S[i];
            column->scale = UNITS_S[i];
            return 0;
        }
    column->base = fabs(first - median) <= MAX_OFFSET_S ? first : median;
    return column->base;
}

/* Copies the layout of nearly every sensor, more than twice as fast as three columns through double. */
static void copy_float_xyz(const struct blob *blob, struct ndt_cloud *cloud, size_t from, size_t to)
{
    const uint8_t *at = blob->data + from * blob->layout->step;
    const size_t x = blob->layout->fields[NDT_POINT_X].offset, y = blob->layout->fields[NDT_POINT_Y].offset,
                 z = blob->layout->fields[NDT_POINT_Z].offset;
    for (size_t i = from; i < to; i++, at += blob->layout->step) {
        cloud->x_m[i] = load_f32(at + x);
        cloud->y_m[i] = load_f32(at + y);
        cloud->z_m[i] = load_f32(at + z);
    }
}

/* Copies the points; returns 0 when the deadline has passed. */
static int copy_points(const struct blob *blob, int64_t stamp_ns, double deadline_us, struct ndt_cloud *cloud)
{
    enum {
        BLOCK = 256 /* points: a block of records stays in the L1 cache while its columns are copied */,
        CLOCK_POINTS = 32 * BLOCK
    };
    float *const dst[NDT_POINT_PARTS] = {cloud->x_m, cloud->y_m, cloud->z_m, cloud->intensity, cloud->time_s};
    struct column columns[NDT_POINT_PARTS];
    for (int part = 0; part < NDT_POINT_PARTS; part++)
        columns[part] = (struct column){.datatype = blob->layout->fields[part].datatype,
                                        .src = blob->data + blob->layout->fields[part].offset,
                                        .dst = dst[part],
                                        .base = part <= NDT_POINT_Z ? cloud->origin_m[part] : 0.0,
                                        .scale = 1.0};
    if (columns[NDT_POINT_TIME].datatype != NDT_DATATYPE_NONE)
        cloud->time_offset_s = prepare_time(blob, stamp_ns, &columns[NDT_POINT_TIME]);
    const int first_column = has_doubles(blob) ? NDT_POINT_X : NDT_POINT_INTENSITY;
    for (size_t from = 0; from < blob->layout->count; from += BLOCK) {
        const size_t to = from + BLOCK < blob->layout->count ? from + BLOCK : blob->layout->count;
        if (deadline_us > 0 && from % CLOCK_POINTS == 0 && ndt_clock_us() >= deadline_us)
            return 0;
        if (first_column != NDT_POINT_X)
            copy_float_xyz(blob, cloud, from, to);
        for (int part = first_column; part < NDT_POINT_PARTS; part++)
            copy_column(&columns[part], blob->layout->step, from, to);
    }
    return 1;
}

/* Drops optional arrays of a reused cloud that this scan does not fill; their old values must not be used. */
static void drop_fields(struct ndt_cloud *cloud, unsigned fields)
{
    cloud->fields &= fields;
    cloud->time_offset_s = 0;
    if (!(cloud->fields & NDT_CLOUD_INTENSITY))
        cloud->intensity = NULL;
    if (!(cloud->fields & NDT_CLOUD_TIME))
        cloud->time_s = NULL;
}

enum ndt_status ndt_points_to_cloud(const uint8_t *data, size_t size, const struct ndt_point_layout *layout,
                                    int64_t stamp_ns, double deadline_us, struct ndt_cloud *cloud,
                                    struct ndt_error *err)
{
    unsigned fields = 0;
    if (layout->data_size > size || layout->data_at > size - layout->data_size)
        return ndt_fail(err, NDT_ERR_FORMAT, "the points end at byte %zu, the message at byte %zu",
                        layout->data_at + layout->data_size, size);
    if (layout->fields[NDT_POINT_INTENSITY].datatype != NDT_DATATYPE_NONE)
        fields |= NDT_CLOUD_INTENSITY;
    if (layout->fields[NDT_POINT_TIME].datatype != NDT_DATATYPE_NONE)
        fields |= NDT_CLOUD_TIME;
    const enum ndt_status status = ndt_cloud_reserve(cloud, (size_t)layout->count, fields, err);
    if (status != NDT_OK)
        return status;
    const struct blob blob = {layout, data + layout->data_at};
    drop_fields(cloud, fields);
    choose_origin(&blob, cloud->origin_m);
    cloud->count = 0;
    if (!copy_points(&blob, stamp_ns, deadline_us, cloud))
        return ndt_fail(err, NDT_ERR_CANCELLED, "no time left to read it: the pose is the prediction");
    cloud->count = (size_t)layout->count;
    return NDT_OK;
}

/* ---- a cloud to points ---- */

static void add_field(struct ndt_point_layout *layout, enum ndt_point_part part, enum ndt_datatype datatype)
{
    layout->fields[part] = (struct ndt_point_field){datatype, (uint32_t)layout->step};
    layout->step += datatype_bytes[datatype];
}

void ndt_points_choose_layout(struct ndt_point_layout *layout, const struct ndt_cloud *cloud)
{
    const int is_local = cloud->origin_m[0] == 0 && cloud->origin_m[1] == 0 && cloud->origin_m[2] == 0;
    const enum ndt_datatype real = is_local ? NDT_DATATYPE_FLOAT32 : NDT_DATATYPE_FLOAT64;
    *layout = (struct ndt_point_layout){.count = cloud->count};
    add_field(layout, NDT_POINT_X, real);
    add_field(layout, NDT_POINT_Y, real);
    add_field(layout, NDT_POINT_Z, real);
    if (cloud->intensity)
        add_field(layout, NDT_POINT_INTENSITY, NDT_DATATYPE_FLOAT32);
    if (cloud->time_s)
        add_field(layout, NDT_POINT_TIME, NDT_DATATYPE_FLOAT32);
    layout->fields_end = layout->step;
}

void ndt_points_put_fields(struct ndt_wire_writer *writer, const struct ndt_point_layout *layout)
{
    size_t count = 0;
    for (int part = 0; part < NDT_POINT_PARTS; part++)
        count += layout->fields[part].datatype != NDT_DATATYPE_NONE ? 1 : 0;
    ndt_wire_put_array(writer, count);
    for (int part = 0; part < NDT_POINT_PARTS; part++) {
        if (layout->fields[part].datatype == NDT_DATATYPE_NONE)
            continue;
        ndt_wire_put_array(writer, 4);
        ndt_wire_put_text(writer, part_names[part]);
        ndt_wire_put_uint(writer, layout->fields[part].offset);
        ndt_wire_put_uint(writer, layout->fields[part].datatype);
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

void ndt_points_put_data(struct ndt_wire_writer *writer, const struct ndt_point_layout *layout,
                         const struct ndt_cloud *cloud)
{
    const float *const src[NDT_POINT_PARTS] = {cloud->x_m, cloud->y_m, cloud->z_m, cloud->intensity, cloud->time_s};
    uint8_t *data = ndt_wire_put_blob(writer, (size_t)(layout->count * layout->step));
    for (int part = 0; data && part < NDT_POINT_PARTS; part++) {
        const struct ndt_point_field field = layout->fields[part];
        uint8_t *at = data + field.offset;
        for (size_t i = 0; field.datatype == NDT_DATATYPE_FLOAT32 && i < layout->count; i++, at += layout->step)
            store_f32(at, src[part][i]);
        for (size_t i = 0; field.datatype == NDT_DATATYPE_FLOAT64 && i < layout->count; i++, at += layout->step)
            store_f64(at, src[part][i] + cloud->origin_m[part]);
    }
}
