"""Folders of scans: KITTI raw (velodyne_points/, oxts/), KITTI odometry (velodyne/, times.txt), folders of .bin, .pcd or .ply."""
from pathlib import Path

import numpy as np

from .._core import read_cloud
from .messages import Scan, Topic

SUFFIXES = (".bin", ".pcd", ".ply")
NS = 1_000_000_000


class FolderError(ValueError):
    """A folder without usable scans."""


def _seconds_to_ns(text):
    whole, _, part = text.partition(".")
    return int(whole) * NS + int((part + "0" * 9)[:9])


def _timestamps(path):
    """KITTI raw: dates with nine digits; elsewhere seconds, or nanoseconds as whole numbers."""
    out = []
    for line in path.read_text().split("\n"):
        line = line.strip()
        if not line:
            continue
        if "-" in line[1:] and ":" in line:
            date, _, part = line.partition(".")
            seconds = int(np.datetime64(date.replace(" ", "T"), "s").astype(np.int64))
            out.append(seconds * NS + int((part + "0" * 9)[:9]))
        elif "e" in line.lower():
            out.append(round(float(line) * NS))
        else:
            out.append(_seconds_to_ns(line))
    return out


def _layout(path):
    """The folder of the scans and the file of their stamps, if there is one."""
    for scans, times in (("velodyne_points/data", "velodyne_points/timestamps.txt"), ("velodyne", "times.txt"),
                         ("data", "timestamps.txt"), ("scans", "times.txt"), (".", "times.txt"), (".", "timestamps.txt")):
        folder = path / scans
        if folder.is_dir() and any(one.suffix in SUFFIXES for one in folder.iterdir()):
            return folder, path / times if (path / times).exists() else None
    raise FolderError(f"{path}: no scans (.bin, .pcd, .ply) in it")


def _stamps(files, times, where):
    if times is not None:
        stamps = _timestamps(Path(times))
        if len(stamps) < len(files):
            raise FolderError(f"{times}: {len(stamps)} stamps for {len(files)} scans")
        return stamps[: len(files)]
    if all(one.stem.isdigit() and len(one.stem) >= 16 for one in files):  # MulRan, nuScenes: stamps as names
        unit = {16: 1000, 19: 1}.get(len(files[0].stem), 1)
        return [int(one.stem) * unit for one in files]
    raise FolderError(f"{where}: when were the scans taken? --times FILE, one stamp per line, or stamps as file names")


class Folder:
    def __init__(self, path, options):
        folder, times = _layout(Path(path))
        self._files = sorted((one for one in folder.iterdir() if one.suffix in SUFFIXES),
                             key=lambda one: (len(one.stem), one.stem))
        self._stamps = _stamps(self._files, options.times or times, folder)
        self.topics = [Topic(str(folder), "folder of scans", len(self._files), "scan")]

    def messages(self):
        for path, stamp_ns in zip(self._files, self._stamps):
            cloud = read_cloud(path)
            self.topics[0].taken += 1
            yield Scan(stamp_ns, stamp_ns, "lidar", cloud["points"], cloud["intensity"], cloud["time_s"])
