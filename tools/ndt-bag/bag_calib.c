#include "bag_calib.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_io/input_file.h"

enum { FILE_BYTES_MAX = 65536 };

/* The numbers behind `name` at the begin of a line; their number, at most `most`; 0: there is no such line. */
static int numbers_of(const char *text, const char *name, double *out, int most)
{
    const size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) != 0)
            continue;
        const char *at = line + length;
        int count = 0;
        for (; count < most; count++) {
            char *end;
            const size_t blanks = strspn(at, " \t");
            if (at[blanks] == '\n' || at[blanks] == '\r')
                break;
            out[count] = strtod(at, &end);
            if (end == at)
                break;
            at = end;
        }
        return count;
    }
    return 0;
}

/* Rows of a rotation are unit vectors and stand on each other, to 1e-3. */
static int is_rotation(const double R[9])
{
    for (int i = 0; i < 3; i++)
        for (int k = i; k < 3; k++) {
            const double product = R[3 * i] * R[3 * k] + R[3 * i + 1] * R[3 * k + 1] + R[3 * i + 2] * R[3 * k + 2];
            if (!(fabs(product - (i == k)) < 1e-3))
                return 0;
        }
    return 1;
}

static enum ndt_status find_pose(struct ndt_pose *out, const char *text, const char *path, struct ndt_error *err)
{
    static const char *const names[] = {"Tr:", "Tr_velo_to_cam:", "Tr_velo_cam:"};
    double rows[12], R[9], t_m[3];
    int count = 0;
    for (int i = 0; i < 3 && count == 0; i++)
        count = numbers_of(text, names[i], rows, 12);
    if (count == 12) {
        for (int i = 0; i < 3; i++) {
            memcpy(R + 3 * i, rows + 4 * i, 3 * sizeof(*R));
            t_m[i] = rows[4 * i + 3];
        }
    } else if (count != 0) {
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: 'Tr:' has %d numbers, not 12", path, count);
    } else if (numbers_of(text, "R:", R, 9) != 9 || numbers_of(text, "T:", t_m, 3) != 3) {
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: neither 'Tr:' with 12 numbers, nor 'R:' with 9 and 'T:' with 3",
                        path);
    }
    if (!is_rotation(R) || !isfinite(t_m[0] + t_m[1] + t_m[2]))
        return ndt_fail(err, NDT_ERR_FORMAT, "%s: its matrix is no rotation and translation", path);
    *out = ndt_pose_from_rotation(R, t_m);
    return NDT_OK;
}

enum ndt_status bag_calib_read(struct bag_calib *out, const char *path, struct ndt_error *err)
{
    char *text;
    size_t size;
    const char *slash = strrchr(path, '/');
    enum ndt_status status = ndt_input_file_read(&text, &size, path, FILE_BYTES_MAX, err);
    if (status != NDT_OK)
        return status;
    status = find_pose(&out->T_sensor_lidar, text, path, err);
    free(text);
    out->is_camera = !strstr(slash ? slash : path, "imu_to_velo");
    if (status == NDT_OK && !out->is_camera)
        out->T_sensor_lidar = ndt_pose_inverse(&out->T_sensor_lidar); /* the file has T_lidar_imu */
    return status;
}

void bag_calib_apply(const struct bag_calib *calib, struct ndt_trajectory *trajectory)
{
    const struct ndt_pose T_lidar_sensor = ndt_pose_inverse(&calib->T_sensor_lidar);
    for (size_t i = 0; i < trajectory->count; i++) {
        struct ndt_pose *pose = &trajectory->poses[i].T_map_sensor;
        *pose = ndt_pose_compose(pose, &calib->T_sensor_lidar);
        if (calib->is_camera)
            *pose = ndt_pose_compose(&T_lidar_sensor, pose);
    }
}
