#include "option_table.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ndtd/nearest_name.h"

static const double DEG = 3.14159265358979323846 / 180.0;

static double to_memory(enum ndtd_option_scale scale, double value)
{
    return scale == NDTD_DEGREES ? value * DEG : scale == NDTD_MILLISECONDS ? value / 1000.0 : value;
}

static double from_memory(enum ndtd_option_scale scale, double value)
{
    return scale == NDTD_DEGREES ? value / DEG : scale == NDTD_MILLISECONDS ? value * 1000.0 : value;
}

static int is_bounded(const struct ndtd_option *option)
{
    return option->min != 0 || option->max != 0;
}

/* Shortest decimal that reads back as an identical double, with a point or an exponent. */
static void format_real(double value, char *text, size_t size)
{
    char digits[40] = "0e+00"; /* as d.ddde+xx */
    int precision = 0;
    for (; precision < 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*e", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent > -5 && exponent < 16)
        snprintf(text, size, "%.*f", precision > exponent ? precision - exponent : 1, value);
    else /* some YAML readers treat "1e-06" as a string, but "1.0e-06" as a number */
        snprintf(text, size, "%.*e", precision > 1 ? precision : 1, value);
}

static enum ndt_status out_of_range(const struct ndtd_option *option, const char *item, struct ndt_error *err)
{
    char range[160];
    ndtd_option_range(option, range, sizeof(range));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: %.40s is outside %s", option->name, item, range);
}

static enum ndt_status parse_real(const struct ndtd_option *option, const char *item, double *out,
                                  struct ndt_error *err)
{
    char *end;
    double value = strtod(item, &end);
    if (option->word_for_zero && strcmp(item, option->word_for_zero) == 0) {
        *out = 0;
        return NDT_OK;
    }
    /* excludes "0x1p3", "nan" and "inf", which strtod takes */
    if (*item == '\0' || *end || strspn(item, "+-.0123456789eE") != strlen(item) || !isfinite(value))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%.40s' is not a number", option->name, item);
    if (is_bounded(option) && (value < option->min || value > option->max))
        return out_of_range(option, item, err);
    *out = to_memory(option->scale, value);
    return NDT_OK;
}

static int is_whole(const char *item)
{
    const char *digits = item + (*item == '-' || *item == '+');
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}

/* Parses sign and magnitude, so that the ranges of int and uint64_t both fit. */
static enum ndt_status parse_whole(const struct ndtd_option *option, const char *item, int *negative, uint64_t *out,
                                   struct ndt_error *err)
{
    if (!is_whole(item))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%.40s' is not a whole number", option->name, item);
    errno = 0;
    *out = strtoull(item + (*item == '-' || *item == '+'), NULL, 10);
    *negative = *item == '-' && *out != 0;
    double value = *negative ? -(double)*out : (double)*out;
    if (errno == ERANGE || (is_bounded(option) && (value < option->min || value > option->max)))
        return out_of_range(option, item, err);
    return NDT_OK;
}

static enum ndt_status parse_label(const struct ndtd_option *option, const char *item, const struct ndt_label **out,
                                   struct ndt_error *err)
{
    struct ndtd_nearest nearest = ndtd_nearest_start(item);
    for (const struct ndt_label *label = option->labels; label->name; label++) {
        if (strcmp(item, label->name) == 0) {
            *out = label;
            return NDT_OK;
        }
        ndtd_nearest_consider(&nearest, label->name);
    }
    char known[160], hint[80];
    ndtd_option_range(option, known, sizeof(known));
    ndtd_nearest_hint(&nearest, hint, sizeof(hint));
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%.40s' is not one of %s%s", option->name, item, known, hint);
}

static enum ndt_status parse_bool(const struct ndtd_option *option, const char *item, int *out,
                                  struct ndt_error *err)
{
    static const char *const words[2][3] = {{"false", "no", "off"}, {"true", "yes", "on"}};
    for (int value = 0; value < 2; value++)
        for (int i = 0; i < 3; i++)
            if (strcasecmp(item, words[value][i]) == 0) {
                *out = value;
                return NDT_OK;
            }
    return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: '%.40s' is neither true nor false", option->name, item);
}

static enum ndt_status store_whole(char *at, const struct ndtd_option *option, const char *item,
                                   struct ndt_error *err)
{
    int negative = 0;
    uint64_t magnitude = 0;
    enum ndt_status status = parse_whole(option, item, &negative, &magnitude, err);
    if (status != NDT_OK)
        return status;
    /* The limits in the table are within the range of the type. */
    if (option->type == NDTD_INT) {
        int value = negative ? -(int)magnitude : (int)magnitude;
        memcpy(at, &value, sizeof(value));
    } else if (option->type == NDTD_UINT32) {
        uint32_t value = (uint32_t)magnitude;
        memcpy(at, &value, sizeof(value));
    } else if (option->type == NDTD_SIZE) {
        size_t value = (size_t)magnitude;
        memcpy(at, &value, sizeof(value));
    } else {
        if (negative)
            return out_of_range(option, item, err);
        memcpy(at, &magnitude, sizeof(magnitude));
    }
    return NDT_OK;
}

static enum ndt_status store_text(char *at, const struct ndtd_option *option, const char *item,
                                  struct ndt_error *err)
{
    size_t length = strlen(item);
    if (length >= option->size)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: text of %zu bytes, at most %zu are possible", option->name,
                        length, option->size - 1);
    memcpy(at, item, length + 1);
    return NDT_OK;
}

static enum ndt_status store_scalar(char *at, const struct ndtd_option *option, const char *item,
                                    struct ndt_error *err)
{
    enum ndt_status status;
    const struct ndt_label *label = NULL;
    int word = 0;
    double real = 0;
    switch (option->type) {
    case NDTD_STRING:
    case NDTD_PATH:
        return store_text(at, option, item, err);
    case NDTD_REAL:
    case NDTD_REAL_LIST:
    case NDTD_POSE:
        status = parse_real(option, item, &real, err);
        if (status == NDT_OK)
            memcpy(at, &real, sizeof(real));
        return status;
    case NDTD_BOOL:
        status = parse_bool(option, item, &word, err);
        if (status == NDT_OK)
            memcpy(at, &word, sizeof(word));
        return status;
    case NDTD_ENUM:
    case NDTD_ENUM_LIST:
        status = parse_label(option, item, &label, err);
        if (status == NDT_OK)
            memcpy(at, &label->value, sizeof(label->value));
        return status;
    case NDTD_CHOICE:
        status = parse_label(option, item, &label, err);
        if (status == NDT_OK)
            memcpy(at, label == option->labels ? &(const char *){NULL} : &label->name, sizeof(label->name));
        return status;
    default:
        return store_whole(at, option, item, err);
    }
}

static int is_list_type(enum ndtd_option_type type)
{
    return type == NDTD_REAL_LIST || type == NDTD_ENUM_LIST || type >= NDTD_POSE;
}

/* Forms of a pose: x y z yaw [m, deg], as the tools take it, or x y z qx qy qz qw. */
enum { POSE_YAW = 4, POSE_QUATERNION = 7 };
static const double RAD_PER_DEG = 0.017453292519943295;

static enum ndt_status check_shape(const struct ndtd_option *option, const struct ndtd_value *value,
                                   struct ndt_error *err)
{
    if (!is_list_type(option->type)) {
        if (value->is_list)
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: expected one value, not a list", option->name);
        return NDT_OK;
    }
    if (option->type == NDTD_POSE &&
        (value->count == 0 || value->count == POSE_YAW || value->count == POSE_QUATERNION))
        return NDT_OK;
    if (option->type == NDTD_POSE)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: %zu values; a pose is x,y,z,qx,qy,qz,qw or x,y,z,yaw [m, deg]",
                        option->name, value->count);
    if (option->type == NDTD_TRANSFORM)
        return NDT_OK; /* not here: the value has several forms */
    if (value->count < option->min_items || value->count > option->max_items)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: %zu values, but %zu to %zu are possible", option->name,
                        value->count, option->min_items, option->max_items);
    return NDT_OK;
}

static enum ndt_status store_pose(struct ndtd_settings *settings, const struct ndtd_option *option,
                                  const struct ndtd_value *value, struct ndt_error *err)
{
    double pose[POSE_QUATERNION];
    for (size_t i = 0; i < value->count; i++) {
        enum ndt_status status = store_scalar((char *)&pose[i], option, value->items[i], err);
        if (status != NDT_OK)
            return status;
    }
    int given = value->count > 0;
    if (value->count == POSE_YAW) {
        const double half_rad = pose[3] * RAD_PER_DEG / 2;
        memcpy(pose + 3, (double[]){0, 0, sin(half_rad), cos(half_rad)}, 4 * sizeof(*pose));
    }
    if (given) {
        double norm = sqrt(pose[3] * pose[3] + pose[4] * pose[4] + pose[5] * pose[5] + pose[6] * pose[6]);
        if (!(norm > 0.9 && norm < 1.1))
            return ndt_fail(err, NDT_ERR_ARGUMENT, "%s: the quaternion has length %g instead of 1", option->name,
                            norm);
        for (int i = 3; i < 7; i++)
            pose[i] /= norm;
        memcpy((char *)settings + option->offset, pose, sizeof(pose));
    }
    memcpy((char *)settings + option->count_offset, &given, sizeof(given));
    return NDT_OK;
}

static enum ndt_status store_transform(struct ndtd_settings *settings, const struct ndtd_option *option,
                                       const struct ndtd_value *value, struct ndt_error *err)
{
    struct ndt_pose pose;
    const enum ndt_status status = ndtd_transform_parse(value->items, value->count, &pose, err);
    if (status != NDT_OK)
        return ndt_fail_prefix(err, status, "%s", option->name);
    memcpy((char *)settings + option->offset, &pose, sizeof(pose));
    return NDT_OK;
}

static enum ndt_status store_sensors(struct ndtd_settings *settings, const struct ndtd_option *option,
                                     const struct ndtd_value *value, struct ndt_error *err)
{
    struct ndtd_sensor_frame sensors[NDTD_EXTRINSICS_SENSORS];
    for (size_t i = 0; i < value->count; i++) {
        const enum ndt_status status = ndtd_sensor_frame_parse(value->items[i], &sensors[i], err);
        if (status != NDT_OK)
            return ndt_fail_prefix(err, status, "%s", option->name);
    }
    memcpy((char *)settings + option->offset, sensors, value->count * sizeof(sensors[0]));
    memcpy((char *)settings + option->count_offset, &value->count, sizeof(value->count));
    return NDT_OK;
}

enum ndt_status ndtd_option_set(struct ndtd_settings *settings, const struct ndtd_option *option,
                                const struct ndtd_value *value, struct ndt_error *err)
{
    enum ndt_status status = check_shape(option, value, err);
    if (status != NDT_OK)
        return status;
    if (option->type == NDTD_POSE)
        return store_pose(settings, option, value, err);
    if (option->type == NDTD_TRANSFORM)
        return store_transform(settings, option, value, err);
    if (option->type == NDTD_SENSORS)
        return store_sensors(settings, option, value, err);
    char *at = (char *)settings + option->offset;
    if (!is_list_type(option->type))
        return store_scalar(at, option, value->items[0], err);
    double scratch[NDTD_VALUE_ITEMS];
    for (size_t i = 0; i < value->count; i++)
        if ((status = store_scalar((char *)&scratch[i], option, value->items[i], err)) != NDT_OK)
            return status;
    size_t bytes = option->type == NDTD_REAL_LIST ? sizeof(double) : sizeof(int);
    for (size_t i = 0; i < value->count; i++)
        memcpy(at + i * option->size, &scratch[i], bytes);
    if (option->count_offset != SIZE_MAX)
        memcpy((char *)settings + option->count_offset, &value->count, sizeof(size_t));
    return NDT_OK;
}

/* Writes the shortest text whose value, converted to the unit in memory, is bit-identical. */
static void format_scaled(const struct ndtd_option *option, double stored, char *text, size_t size)
{
    double value = from_memory(option->scale, stored);
    for (int precision = 1; precision <= 17; precision++) {
        char digits[40];
        snprintf(digits, sizeof(digits), "%.*g", precision, value);
        double shown = strtod(digits, NULL);
        if (to_memory(option->scale, shown) != stored)
            continue;
        format_real(shown, text, size);
        return;
    }
    format_real(value, text, size);
}

static void format_text(const char *value, char *text, size_t size)
{
    size_t used = 0;
    const size_t room = 6; /* room for an escape, the closing quote, the end */
    if (size > used)
        text[used++] = '"';
    for (const unsigned char *c = (const unsigned char *)value; *c && used + room < size; c++) {
        if (*c == '"' || *c == '\\')
            text[used++] = '\\';
        if (*c < 0x20 || *c == 0x7f)
            used += (size_t)snprintf(text + used, size - used, "\\x%02x", *c);
        else
            text[used++] = (char)*c;
    }
    snprintf(text + used, size - used, "\"");
}

/* Writes frame_id x y z qx qy qz qw. */
static void format_sensor(const struct ndtd_sensor_frame *sensor, char *text, size_t size)
{
    double numbers[7];
    memcpy(numbers, sensor->T_base_sensor.t_m, sizeof(sensor->T_base_sensor.t_m));
    memcpy(numbers + 3, sensor->T_base_sensor.q_xyzw, sizeof(sensor->T_base_sensor.q_xyzw));
    size_t used = (size_t)snprintf(text, size, "%s", sensor->frame_id);
    for (int i = 0; i < 7 && used < size; i++) {
        char number[40];
        format_real(numbers[i], number, sizeof(number));
        used += (size_t)snprintf(text + used, size - used, " %s", number);
    }
}

static void format_scalar(const char *at, const struct ndtd_option *option, char *text, size_t size)
{
    int word = 0;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    double real = 0;
    const char *choice = NULL;
    switch (option->type) {
    case NDTD_CHOICE:
        memcpy(&choice, at, sizeof(choice));
        snprintf(text, size, "%s", choice ? choice : option->labels[0].name);
        return;
    case NDTD_ENUM:
    case NDTD_ENUM_LIST:
        memcpy(&word, at, sizeof(word));
        snprintf(text, size, "%s", ndt_label_name(option->labels, word));
        return;
    case NDTD_BOOL:
        memcpy(&word, at, sizeof(word));
        snprintf(text, size, "%s", word ? "true" : "false");
        return;
    case NDTD_STRING:
        snprintf(text, size, "%s", at);
        return;
    case NDTD_PATH:
        format_text(at, text, size);
        return;
    case NDTD_REAL:
    case NDTD_REAL_LIST:
    case NDTD_POSE:
    case NDTD_TRANSFORM:
        memcpy(&real, at, sizeof(real));
        if (option->word_for_zero && real == 0)
            snprintf(text, size, "%s", option->word_for_zero);
        else
            format_scaled(option, real, text, size);
        return;
    case NDTD_SENSORS:
        format_sensor((const struct ndtd_sensor_frame *)(const void *)at, text, size);
        return;
    case NDTD_UINT32:
        memcpy(&narrow, at, sizeof(narrow));
        snprintf(text, size, "%u", narrow);
        return;
    case NDTD_UINT64:
    case NDTD_SIZE:
        memcpy(&wide, at, sizeof(wide));
        snprintf(text, size, "%llu", (unsigned long long)wide);
        return;
    default:
        memcpy(&word, at, sizeof(word));
        snprintf(text, size, "%d", word);
    }
}

static size_t count_of(const struct ndtd_settings *settings, const struct ndtd_option *option)
{
    size_t count = option->max_items;
    int given;
    if (option->type == NDTD_TRANSFORM)
        return 7;
    if (option->type == NDTD_POSE) {
        memcpy(&given, (const char *)settings + option->count_offset, sizeof(given));
        return given ? 7 : 0;
    }
    if (option->count_offset != SIZE_MAX)
        memcpy(&count, (const char *)settings + option->count_offset, sizeof(count));
    return count;
}

const char *ndtd_option_format(const struct ndtd_settings *settings, const struct ndtd_option *option, char *text,
                               size_t size)
{
    const char *at = (const char *)settings + option->offset;
    if (!is_list_type(option->type)) {
        format_scalar(at, option, text, size);
        return text;
    }
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0, count = count_of(settings, option); i < count; i++) {
        char item[400];
        format_scalar(at + i * option->size, option, item, sizeof(item));
        used += (size_t)snprintf(text + used, used < size ? size - used : 0, "%s%s", i ? ", " : "", item);
        if (used >= size)
            return text;
    }
    snprintf(text + used, size - used, "]");
    return text;
}

static void range_of_numbers(const struct ndtd_option *option, char *text, size_t size)
{
    char low[40], high[40];
    int whole = option->type == NDTD_INT || option->type == NDTD_UINT32 || option->type == NDTD_UINT64 ||
                option->type == NDTD_SIZE;
    if (whole) {
        snprintf(low, sizeof(low), "%.0f", option->min);
        snprintf(high, sizeof(high), "%.0f", option->max);
    } else {
        format_real(option->min, low, sizeof(low));
        format_real(option->max, high, sizeof(high));
    }
    snprintf(text, size, "%s%s%s .. %s%s%s", option->word_for_zero ? option->word_for_zero : "",
             option->word_for_zero ? ", " : "", low, high, *option->unit ? " " : "", option->unit);
}

void ndtd_option_range(const struct ndtd_option *option, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    if (option->labels)
        for (const struct ndt_label *label = option->labels; label->name && used < size; label++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", label->name);
    else if (option->type == NDTD_BOOL)
        snprintf(text, size, "true, false");
    else if (is_bounded(option))
        range_of_numbers(option, text, size);
    else if (option->type != NDTD_PATH && option->type != NDTD_STRING)
        snprintf(text, size, "%s", option->unit);
}
