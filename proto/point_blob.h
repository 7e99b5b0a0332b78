/* The points of a scan: a little-endian blob of equal records with named fields, as in PointCloud2. */
#ifndef NDT_POINT_BLOB_H
#define NDT_POINT_BLOB_H

#include "wire_reader.h"
#include "wire_writer.h"

/* Numbers of sensor_msgs/PointField. */
enum ndt_datatype {
    NDT_DATATYPE_NONE = 0, /* the field is not there */
    NDT_DATATYPE_INT8 = 1,
    NDT_DATATYPE_UINT8,
    NDT_DATATYPE_INT16,
    NDT_DATATYPE_UINT16,
    NDT_DATATYPE_INT32,
    NDT_DATATYPE_UINT32,
    NDT_DATATYPE_FLOAT32,
    NDT_DATATYPE_FLOAT64
};

/* The fields that are taken. */
enum ndt_point_part { NDT_POINT_X, NDT_POINT_Y, NDT_POINT_Z, NDT_POINT_INTENSITY, NDT_POINT_TIME, NDT_POINT_PARTS };

struct ndt_point_field {
    enum ndt_datatype datatype;
    uint32_t offset; /* within a record [bytes] */
};

struct ndt_point_blob {
    struct ndt_point_field fields[NDT_POINT_PARTS];
    uint64_t fields_end; /* the record must be at least this long; 64 bits: offset + 8 * count cannot overflow */
    uint64_t count;      /* points */
    uint64_t step;       /* bytes of a record */
    const uint8_t *data; /* borrowed */
    size_t size;
};

/* Reads the list [[name, offset, datatype, count], ...]. */
NDT_MUST_CHECK enum ndt_status ndt_point_fields_read(struct ndt_wire_reader *reader, struct ndt_point_blob *blob);
/* Whether fields, count, step and size agree; names the field that does not. */
NDT_MUST_CHECK enum ndt_status ndt_point_blob_check(const struct ndt_point_blob *blob, struct ndt_error *err);
/* Copies a checked blob into a cloud, whose memory is reused. On failure the cloud is as it was. */
NDT_MUST_CHECK enum ndt_status ndt_point_blob_take(const struct ndt_point_blob *blob, int64_t stamp_ns,
                                                   struct ndt_cloud *cloud, struct ndt_error *err);

/* The layout a cloud is written in: x y z as float32 (float64 when it has an origin), intensity, time. */
void ndt_point_blob_layout(struct ndt_point_blob *blob, const struct ndt_cloud *cloud);
void ndt_point_fields_write(struct ndt_wire_writer *writer, const struct ndt_point_blob *blob);
void ndt_point_blob_write(struct ndt_wire_writer *writer, const struct ndt_point_blob *blob,
                          const struct ndt_cloud *cloud);

#endif
