"""ndt-calibrate finds where LiDAR and IMU are within what it says of its certainty, and refuses what a drive does not tell."""
import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("msgpack")
from drive_bags import messages_of, write

import ndtd
from ndtd import ndt_calibrate, poses
from ndtd.calibration import hand_eye, reading, result
from ndtd.calibration.chain import Chain
from ndtd.mapping import se3

MOUNT = (1.2, 0.3, 0.5, 0.0, 10.0, 30.0)
T_BASE_SENSOR = poses.matrix(poses.from_euler(MOUNT[:3], np.radians(MOUNT[3:])))
R_BASE_IMU = poses.matrix(poses.from_euler((0, 0, 0), np.radians((175.0, 4.0, -60.0))))
IMU_LATE_NS = 20_000_000


def calibrate(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "ndtd.ndt_calibrate", "--quiet", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def setting(key, T):
    return f"frames.{key}=[{', '.join(f'{one:.9f}' for one in poses.pose_of(T))}]"


def near(T, *off):
    """A transform that is configured wrong by so much, in m and deg."""
    return se3.exp(np.concatenate([off[:3], np.radians(off[3:])])) @ T


def rewritten(bag, out, planar):
    """The drive with an IMU that is mounted otherwise and stamped late; planar: with the odometry of wheels."""
    pose, last_ns = np.eye(4), None
    with ndtd.BagWriter(str(out)) as writer:
        for kind, message in messages_of(bag):
            if kind == "imu":
                for name in ("angular_velocity", "linear_acceleration"):
                    message[name] = R_BASE_IMU[:3, :3].T @ message[name]
                message["stamp_ns"] += IMU_LATE_NS
            elif kind == "odometry" and planar:
                forward, turn = message["twist"][0], message["twist"][5]
                between_s = 0.0 if last_ns is None else (message["stamp_ns"] - last_ns) * 1e-9
                pose, last_ns = pose @ se3.exp(between_s * np.array([forward, 0, 0, 0, 0, turn])), message["stamp_ns"]
                message["pose"], message["twist"] = pose, None
            write(writer, kind, message)
    return out


@pytest.fixture(scope="module")
def curve(simulate):
    return simulate("--world", "street", "--scans", 200, "--beams", 16, "--columns", 600, "--seed", 41, "--odometry", "--imu", 100,
                    f"--mount={','.join(map(str, MOUNT))}")


@pytest.fixture(scope="module")
def straight(simulate):
    return simulate("--world", "parking", "--scans", 120, "--beams", 16, "--columns", 600, "--seed", 42, "--odometry", f"--mount={','.join(map(str, MOUNT))}")


def off_of(T, truth):
    """(6,): what is missing to the truth in m and rad, in axes of the base."""
    turn = np.eye(4)
    turn[:3, :3] = truth[:3, :3] @ T[:3, :3].T
    return np.concatenate([truth[:3, 3] - T[:3, 3], se3.log(turn)[3:]])


def check_within(told, truth, most_m, most_rad):
    """What is observed is right within 4 sigma, and sigma is small."""
    configured = poses.matrix(told["configured"])
    wanted = off_of(configured, truth)
    for k, name in enumerate(result.AXES):
        axis = told["axes"].get(name)
        if axis is not None and axis["observed"]:
            assert abs(axis["off"] - wanted[k]) < 4 * axis["deviation"], (name, axis, wanted[k])
            assert axis["deviation"] < (most_m if k < 3 else most_rad), (name, axis)


def test_a_drive_with_turns_tells_lidar_imu_and_faults(curve, tmp_path, run_program):
    bag = rewritten(curve.bag, tmp_path / "moved.bag", planar=False)
    words = [bag, "--map", curve.map, "--set", setting("T_base_sensor", near(T_BASE_SENSOR, 0.1, -0.1, 0.05, 2, -2, 3)),
             "--set", setting("T_base_imu", near(R_BASE_IMU, 0, 0, 0, 2, -2, 3))]
    told = json.loads(calibrate(*words, "--json"))
    lidar, imu = told["T_base_sensor"], told["T_base_imu"]
    assert told["believed"] >= 190 and told["scans"] == 200
    assert [one.split(" (")[0] for one in lidar["refused"]] == ["z"]
    check_within(lidar, T_BASE_SENSOR, 0.02, np.radians(0.1))
    check_within(imu, R_BASE_IMU, 0.0, np.radians(0.4))
    assert sum(axis["observed"] for axis in imu["axes"].values()) >= 2 and set(imu["axes"]) == set(result.AXES[3:])
    assert lidar["sigmas"] > 10 and imu["sigmas"] > 10
    scale, late = lidar["faults"]["scale"], imu["faults"]["late_s"]
    assert abs(scale["value"] - 0.006) < 4 * scale["deviation"] < 0.004
    assert abs(late["value"] - 0.02) < 4 * late["deviation"] + 5e-4 < 0.01
    np.testing.assert_allclose(np.abs(R_BASE_IMU[:3, :3] @ imu["faults"]["bias_radps"]["value"]), 0.002, atol=3e-4)
    said = calibrate(*words)
    assert "refused: z (the drive tilts too little: by " in said and "ms late against those of the LiDAR" in said
    config = tmp_path / "frames.yaml"
    config.write_text(said[said.index("frames:\n"):])
    run_program("ndtd", "--check-config", "-c", config)
    again = json.loads(calibrate(bag, "--map", curve.map, "-c", config, "--json"))
    assert again["T_base_sensor"]["sigmas"] < 3 and again["T_base_imu"]["sigmas"] < 3


def test_wheels_tell_x_y_and_yaw(curve, tmp_path):
    bag = rewritten(curve.bag, tmp_path / "planar.bag", planar=True)
    told = json.loads(calibrate(bag, "--map", curve.map, "--set", setting("T_base_sensor", near(T_BASE_SENSOR, 0.1, -0.1, 0.05, 1, -1, 3)), "--json"))["T_base_sensor"]
    check_within(told, T_BASE_SENSOR, 0.05, np.radians(0.5))
    assert all(told["axes"][name]["observed"] for name in ("x", "y", "rotation about y", "rotation about z"))


def test_a_straight_drive_is_refused_what_it_does_not_tell(straight, tmp_path):
    bag = rewritten(straight.bag, tmp_path / "planar.bag", planar=True)
    configured = near(T_BASE_SENSOR, 0.3, -0.2, 0.2, 0, -2, 3)
    words = [bag, "--map", straight.map, "--set", setting("T_base_sensor", configured)]
    told = json.loads(calibrate(*words, "--json"))["T_base_sensor"]
    assert {"x", "y", "z"} <= {one.split(" (")[0] for one in told["refused"]}
    np.testing.assert_allclose(told["pose"][:3], configured[:3, 3], atol=1e-8)
    check_within(told, T_BASE_SENSOR, 0.0, np.radians(0.5))
    assert told["axes"]["rotation about z"]["observed"]  # the direction in which the vehicle drives
    assert calibrate(*words).count("\n  refused: ") == len(told["refused"])


def test_wrong_input_is_one_line(curve, straight, drive, tmp_path):
    mount = ("--set", setting("T_base_sensor", T_BASE_SENSOR))
    for words, code, wanted in (
            ([drive.bag, "--map", drive.map], 3, "has neither odometry nor an IMU: there is nothing to calibrate the LiDAR with"),
            ([straight.bag, "--map", curve.map, *mount], 3, "of 120 scans are believed in"),
            (["nosuch.bag", "--map", curve.map], 3, "nosuch.bag: no such file or folder"),
            ([curve.bag, "--map", "nosuch.pcd"], 3, "nosuch.pcd"),
            ([curve.bag, "--map", curve.map, "--frame", "radar"], 3, "no scan of frame 'radar'; there are: lidar"),
            ([curve.bag, "--map", curve.map, "-c", "nosuch.yaml"], 2, "nosuch.yaml: no such file"),
            ([curve.bag, "--map", curve.map, "--set", "frames"], 2, "frames: not KEY=VALUE"),
            ([curve.bag, "--map", curve.map, "--", "--topic", "/points"], 2, "what follows -- is for ndt-import, which a bag does not need"),
            ([curve.bag, "--map", curve.map, "--set", "frames.T_base_sensr=[0,0,0,0,0,0]"], 3, "did you mean 'frames.T_base_sensor'?")):
        said = calibrate(*words, code=code)
        assert said.startswith("ndt-calibrate: ") and wanted in said and said.count("\n") == 1, said


def test_points_without_times_are_told_the_option(straight, tmp_path):
    bag = tmp_path / "untimed.bag"
    with ndtd.BagWriter(str(bag)) as writer:
        for kind, message in messages_of(straight.bag):
            write(writer, kind, {**message, "time_s": None} if kind == "scan" else message)
    said = calibrate(bag, "--map", straight.map, "--set", "preprocess.deskew=time", code=3)
    assert "its points have no times; --set preprocess.deskew=azimuth_cw, azimuth_ccw or off need none" in said


def test_odometry_of_another_drive_is_told(curve, tmp_path):
    bag = tmp_path / "still.bag"
    with ndtd.BagWriter(str(bag)) as writer:
        for kind, message in messages_of(curve.bag):
            if kind == "odometry":
                message["pose"], message["twist"] = np.eye(4), None
            if kind != "imu":
                write(writer, kind, message)
    said = calibrate(bag, "--map", curve.map, "--set", setting("T_base_sensor", T_BASE_SENSOR), code=3)
    assert "the odometry tells another way than the scans: " in said and said.count("\n") == 1


def made_up(seed, tilt, noise=1.0):
    """A path of a sensor and the chain of its base, of a drive with bends: white noise of wheels and of poses; with the truth."""
    random = np.random.default_rng(seed)
    X = poses.matrix(poses.from_euler(random.uniform(-1.5, 1.5, 3), random.uniform(-3, 3, 3)))
    t_s = np.arange(0, 40, 0.02)
    rate = np.stack([tilt * np.sin(1.1 * t_s), tilt * np.sin(0.9 * t_s + 1), 0.5 * np.sin(0.4 * t_s + seed)], 1)
    speed = np.stack([3 + np.sin(0.3 * t_s), 0 * t_s, 0 * t_s], 1)
    steps = 0.02 * np.concatenate([speed, rate], 1)[:-1]
    base = Chain(t_s, steps).with_faults(hand_eye.Faults()).pose(np.arange(0.1, 39.8, 0.1))
    path = hand_eye.Path(np.arange(0.1, 39.8, 0.1), base @ X @ se3.exp(noise * random.normal(0, [0.004] * 3 + [3e-4] * 3, (len(base), 6))))
    return X, path, Chain(t_s, steps + noise * random.normal(0, [6e-4] * 3 + [4e-5] * 3, steps.shape))


def test_exact_motions_give_the_exact_transform():
    """From a start that is far off: upside down, half a metre away."""
    X, path, chain = made_up(5, 0.2, noise=0.0)
    start = X @ poses.matrix(poses.from_euler((0.5, 0.2, -0.3), (3.0, 0.3, 0.5)))
    found = hand_eye.HandEye(path, chain, start, False).solve()
    np.testing.assert_allclose(found.X, X, atol=1e-3)


def test_standard_deviations_hold():
    """Errors of 40 drives in sigmas, without what is added for faults of a localiser; 1 on average, and seldom beyond 2."""
    in_sigmas = []
    for seed in range(40):
        X, path, chain = made_up(100 + seed, 0.2)
        found = hand_eye.HandEye(path, chain, near(X, 0.1, 0.1, 0.1, 3, 3, 3), False).solve()
        off = off_of(found.X, X)
        in_sigmas.append(np.r_[off[3:], off[:3]] / np.sqrt(np.diag(found.covariance)[:6]))
    square = np.mean(np.square(in_sigmas), 0)
    assert np.all(square < 2.0) and np.all(square > 0.3), square
    assert np.mean(np.abs(in_sigmas) > 2) < 0.1


def test_a_plane_tells_no_height_and_a_line_no_lever_arm():
    X, path, chain = made_up(7, 0.0)
    flat = result.mount(hand_eye.HandEye(path, chain, X, False).solve(), X, True)
    assert flat.kept.tolist() == [True, True, False, True, True, True] and flat.T[2, 3] == X[2, 3]
    gyro = Chain(chain.stamps_s, np.concatenate([0 * chain.steps[:, :3], chain.steps[:, 3:]], 1))
    turned = np.eye(4)
    turned[:3, :3] = X[:3, :3]
    about = result.mount(hand_eye.HandEye(path, gyro, turned, True).solve(), turned, False)
    assert about.kept[3:].tolist() == [True, True, False]
    assert about.refused[0].startswith("rotation about z (the drive turns about this axis alone: by ")


def test_odometry_without_poses_is_that_of_its_twists():
    """Samples out of order and twice, as recordings have them."""
    samples = [{"stamp_ns": 1_000_000_000 + 20_000_000 * k, "twist": [2.0, 0, 0, 0, 0, 0.5]} for k in (0, 1, 3, 2, 2, 4)]
    chain = reading._wheels(samples, 1_000_000_000)
    np.testing.assert_allclose(chain.stamps_s, np.arange(5) * 0.02)
    np.testing.assert_allclose(chain.steps, np.tile([0.04, 0, 0, 0, 0, 0.01], (4, 1)))
    assert chain.is_planar and reading._wheels(samples[:1], 0) is None and reading._gyro([], 0) is None


def test_the_command_line_is_that_of_the_others(refused):
    assert "--map" in refused(ndt_calibrate.command, 2, "drive.bag")
