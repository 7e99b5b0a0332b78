"""Bags, read with ndt-bag dump: bag_check.py CHECK BIN_DIR BAG...   (standard library only)

  stamps BIN BEGIN MIDDLE END     the same drive with its stamps at three places
  mount BIN PLAIN MOUNTED MOUNT   one sensor at the base, one at MOUNT, in a corridor, both without noise
  restamp BIN BAG MOVED PLACE     a bag, and its copy with the stamps at begin, middle or end
  walk BIN BAG VIEW RANGE GAP     a handheld sensor at 2 Hz: how it moves, and what it sees
  sensors BIN WHOLE PARTS...      one sensor, and the same points divided among two
  imu BIN EXACT NOISY             an IMU at 100 Hz without errors, and one with the errors named below
"""
import json
import math
import subprocess
import sys

BIAS_RADPS, NOISE, BIAS_MPS2, ACCELERATION_NOISE = 0.01, 0.001, 0.1, 0.01  # of the noisy IMU


def dump(bag):
    run = subprocess.run([f"{BIN}/ndt-bag", "dump", bag, "--points", "1000000"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    messages = [json.loads(line) for line in run.stdout.splitlines()]
    for message in messages:
        del message["record"], message["offset"]
    return messages


def of(messages, kind):
    return [message for message in messages if message["type"] == kind]


def others(messages):
    """All but what follows the stamps of scans."""
    return [message for message in messages if message["type"] not in ("scan", "truth")]


def whole_us(scan):
    assert scan["stamp_ns"] % 1000 == 0
    return [scan["stamp_ns"] // 1000 + round(1e6 * time_s) for time_s in scan["time_s"]]


# ---- rotations


def rotate(q, v):
    x, y, z, w = q
    cross = [y * v[2] - z * v[1] + w * v[0], z * v[0] - x * v[2] + w * v[1], x * v[1] - y * v[0] + w * v[2]]
    return [v[0] + 2 * (y * cross[2] - z * cross[1]), v[1] + 2 * (z * cross[0] - x * cross[2]),
            v[2] + 2 * (x * cross[1] - y * cross[0])]


def conjugate(q):
    return [-q[0], -q[1], -q[2], q[3]]


def quaternion(roll, pitch, yaw):
    cr, cp, cy = (math.cos(math.radians(angle) / 2) for angle in (roll, pitch, yaw))
    sr, sp, sy = (math.sin(math.radians(angle) / 2) for angle in (roll, pitch, yaw))
    return [sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy]


# ---- checks


def check_stamps(begin, middle, end):
    begin, middle, end = dump(begin), dump(middle), dump(end)
    assert others(begin) == others(middle) == others(end)
    for shift_ns, moved in ((-50_000_000, begin), (50_000_000, end)):
        for one, other in zip(of(middle, "scan"), of(moved, "scan"), strict=True):
            assert other["stamp_ns"] - one["stamp_ns"] == shift_ns, (one["stamp_ns"], other["stamp_ns"])
            assert whole_us(one) == whole_us(other)
            for key in ("seq", "frame_id", "receive_time_ns", "xyz_m", "intensity"):
                assert one[key] == other[key], key
    assert all(min(scan["time_s"]) >= 0 and max(scan["time_s"]) > 0.095 for scan in of(begin, "scan"))
    assert all(max(scan["time_s"]) <= 0 and min(scan["time_s"]) < -0.095 for scan in of(end, "scan"))
    for messages in (begin, middle, end):  # the truth of each scan, in one motion
        assert [m["stamp_ns"] for m in of(messages, "truth")] == [m["stamp_ns"] for m in of(messages, "scan")]
    for one, other in zip(of(begin, "truth"), of(middle, "truth")):
        ahead = [a - b for a, b in zip(other["pose"], one["pose"])]
        moved = rotate(one["pose"][3:], [0.05 * v for v in one["twist"][:3]])
        assert math.dist(ahead[:3], moved) < 0.01, (ahead, moved)
    assert of(middle, "initial_pose")[0]["pose"] == of(middle, "truth")[0]["pose"]


def check_restamp(bag, moved, place):
    bag, moved = dump(bag), dump(moved)
    assert [m for m in bag if m["type"] != "scan"] == [m for m in moved if m["type"] != "scan"]
    for one, other in zip(of(bag, "scan"), of(moved, "scan"), strict=True):
        assert whole_us(one) == whole_us(other)
        assert all(one[key] == other[key] for key in ("seq", "frame_id", "receive_time_ns", "xyz_m", "intensity"))
        first, last = min(other["time_s"]), max(other["time_s"])
        off = {"begin": first, "middle": 0.5 * (first + last), "end": last}[place]
        assert abs(off) < 1e-6 and last - first > 0.09, (first, last)


def to_corridor(point, time_s, truth, mount_m, mount_q):
    base = [a + b for a, b in zip(mount_m, rotate(mount_q, point))]
    turn = [0.5 * w * time_s for w in truth["twist"][3:]]
    base = [b + v * time_s for b, v in zip(rotate(turn + [1], base), truth["twist"][:3])]
    return [a + b for a, b in zip(truth["pose"], rotate(truth["pose"][3:], base))]


def check_mount(plain, mounted, mount):
    plain, mounted = dump(plain), dump(mounted)
    assert others(plain) == others(mounted) and of(plain, "truth") == of(mounted, "truth")
    numbers = [float(word) for word in mount.split(",")]
    for messages, m, q in ((plain, [0, 0, 0], [0, 0, 0, 1]), (mounted, numbers[:3], quaternion(*numbers[3:]))):
        seen = 0
        for scan, truth in zip(of(messages, "scan"), of(messages, "truth"), strict=True):
            for point, time_s in zip(scan["xyz_m"], scan["time_s"]):
                _, y, z = to_corridor(point, time_s, truth, m, q)
                surfaces = [abs(abs(y) - 1.3), abs(abs(y) - 1.42), abs(z), abs(z - 2.6)]  # walls, doors, ground, ceiling
                inside_door = 1.3 <= abs(y) <= 1.42
                assert min(surfaces) < 0.03 or inside_door, (scan["seq"], point, y, z)
                seen += 1
        assert seen > 5000, seen


def check_sensors(whole, *bags):
    whole = of(dump(whole), "scan")
    for bag in bags:
        parts = of(dump(bag), "scan")
        assert [scan["seq"] for scan in parts] == list(range(2 * len(whole)))
        assert {scan["frame_id"] for scan in parts[::2]} == {"lidar_0"}
        assert {scan["frame_id"] for scan in parts[1::2]} == {"lidar_1"}
        for one, left, right in zip(whole, parts[::2], parts[1::2], strict=True):
            assert one["frame_id"] == "lidar" and right["stamp_ns"] - left["stamp_ns"] == 50_000_000
            assert one["xyz_m"] == left["xyz_m"] + right["xyz_m"]
            assert whole_us(one) == whole_us(left) + whole_us(right)
            assert sum(point[1] > 0 for point in left["xyz_m"]) > 0.98 * left["points"]
        stamps = {scan["stamp_ns"] - one["stamp_ns"] for one, scan in zip(whole, parts[::2])}
        assert stamps == {-25_000_000 if "middle" in bag else 0}, stamps


def mean(values):
    return sum(values) / len(values)


def check_walk(bag, *limits):
    messages, (view_deg, range_m, gap_s) = dump(bag), map(float, limits)
    scans, truths = of(messages, "scan"), of(messages, "truth")
    steps_s = [(b["stamp_ns"] - a["stamp_ns"]) * 1e-9 for a, b in zip(scans, scans[1:])]
    assert min(steps_s) > 0.499 and 1 < max(steps_s) < 0.51 + gap_s, steps_s
    for scan in scans:
        assert scan["points"] > 1000, scan["points"]
        assert max(abs(math.atan2(y, x)) for x, y, z in scan["xyz_m"]) < math.radians(view_deg / 2 + 0.01)
        assert 0.89 < min(math.hypot(*p) for p in scan["xyz_m"]) and max(math.hypot(*p) for p in scan["xyz_m"]) < range_m + 0.2
        assert max(abs(time_s) for time_s in scan["time_s"]) < 0.0501
    turns, speeds = [], []
    for a, b, step_s in zip(truths, truths[1:], steps_s):
        up = rotate(b["pose"][3:], [0, 0, 1])
        assert up[2] > math.cos(math.radians(15))
        ahead, before = rotate(b["pose"][3:], [1, 0, 0]), rotate(a["pose"][3:], [1, 0, 0])
        speeds.append(math.dist(a["pose"][:3], b["pose"][:3]) / step_s)
        if step_s < 0.51:
            turns.append(math.degrees(math.acos(min(1, sum(p * q for p, q in zip(ahead, before))))))
    assert 25 < max(turns) < 65, turns
    assert speeds[0] < 0.3 and 1 < max(speeds) < 1.8, speeds


def check_imu(exact, noisy):
    exact, noisy = dump(exact), dump(noisy)
    assert of(exact, "truth") == of(noisy, "truth") and of(exact, "scan") == of(noisy, "scan")
    imu, truths = of(exact, "imu"), of(exact, "truth")
    assert [m["stamp_ns"] - imu[0]["stamp_ns"] for m in imu] == [10_000_000 * i for i in range(len(imu))]
    assert all("covariance" not in key for key in imu[0]) and imu[0]["frame_id"] == "imu"
    at, apart = {m["stamp_ns"]: m for m in imu}, []
    for before, truth, after in zip(truths, truths[1:], truths[2:]):
        one, step_s = at[truth["stamp_ns"]], (after["stamp_ns"] - truth["stamp_ns"]) * 1e-9
        assert math.dist(one["angular_velocity"], truth["twist"][3:]) < 1e-9
        force = [(a - 2 * b + c) / step_s**2 for a, b, c in zip(after["pose"][:3], truth["pose"][:3], before["pose"][:3])]
        force = rotate(conjugate(truth["pose"][3:]), [force[0], force[1], force[2] + 9.81])
        apart.append(math.dist(one["linear_acceleration"], force))
    assert max(apart) < 0.1 and mean(apart) < 0.01, (max(apart), mean(apart))  # the jerk of a drive has steps
    for key, size, deviation in (("angular_velocity", BIAS_RADPS, 10 * NOISE),
                                 ("linear_acceleration", BIAS_MPS2, 10 * ACCELERATION_NOISE)):
        for axis in range(3):
            errors = [other[key][axis] - one[key][axis] for one, other in zip(imu, of(noisy, "imu"), strict=True)]
            assert abs(abs(mean(errors)) - size) < 5 * deviation / math.sqrt(len(errors)), (key, mean(errors))
            spread = math.sqrt(mean([(error - mean(errors)) ** 2 for error in errors]))
            assert 0.8 < spread / deviation < 1.25, (key, spread)
        assert math.isclose(of(noisy, "imu")[0][key + "_covariance"][4], deviation**2)


if __name__ == "__main__":
    BIN = sys.argv[2]
    {"stamps": check_stamps, "restamp": check_restamp, "mount": check_mount, "sensors": check_sensors,
     "walk": check_walk, "imu": check_imu}[sys.argv[1]](*sys.argv[3:])
