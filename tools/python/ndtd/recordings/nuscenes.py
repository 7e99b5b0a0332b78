"""nuScenes with its tables (v1.0-*/): one scene, with the poses of the vehicle as truth and the place of the LiDAR, by the schema of
nuscenes-devkit.
"""
import json
import re
from pathlib import Path
from typing import Iterator, List, Optional

import numpy as np

from ..poses import checked_pose
from . import topics
from .datasets import Extras, true_poses
from .folders import FolderRecording, ScanFiles, scan_track
from .messages import RecordingError
from .tracks import Track, stamps_ns

US = 1000  # ns
CHANNEL = "LIDAR_TOP"
_CHUNK, _MOST_RECORD = 1 << 22, 1 << 24  # characters
_GAP = re.compile(r"[\[,\s]*")


def tables_of(path: Path) -> Optional[Path]:
    """The folder of tables: `path`/v1.0-mini and the like, or `path` itself; None where there are none."""
    found = [one for one in [*sorted(path.glob("v1.0-*")), path] if (one / "sample_data.json").is_file() and (one / "scene.json").is_file()]
    return found[0] if found else None


def records(path: Path) -> Iterator[dict]:
    """The records of a table one by one: those of all scenes take gigabytes."""
    decoder, text, at = json.JSONDecoder(), "", 0
    with path.open(encoding="utf-8") as stream:
        while True:
            more = stream.read(_CHUNK)
            text, at = text[at:] + more, 0
            while True:
                gap = _GAP.match(text, at)
                at = gap.end() if gap else at
                if text[at:at + 1] != "{":
                    break
                try:
                    record, at = decoder.raw_decode(text, at)
                except ValueError:
                    break  # the rest of it comes with the next chunk
                except RecursionError:
                    raise _damaged(path) from None
                yield record
            if not more and text[at:].strip() == "]":
                return
            if not more or len(text) - at > _MOST_RECORD:
                raise _damaged(path)


def _damaged(path):
    return RecordingError(f"{path}: damaged: no table of records")


def _by_token(path, wanted):
    """The records that are wanted, by their tokens."""
    found = {record["token"]: record for record in records(path) if record["token"] in wanted}
    missing = len(wanted) - len(found)
    if missing:
        raise RecordingError(f"{path}: {missing} records are missing that another table names")
    return found


def _pose(record):
    """7 numbers of a translation and a quaternion w x y z."""
    w, *xyz = record["rotation"]
    return np.array([*record["translation"], *xyz, w], np.float64)


def _place(record):
    """T_base_sensor; ValueError: it is none."""
    pose = checked_pose(_pose(record))
    if not np.isfinite(pose).all():
        raise ValueError(f"{record['translation']} is no translation")
    return pose


def _is_file(path):
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


class NuScenes(FolderRecording):
    """One scene of a folder of nuScenes."""

    def __init__(self, path: Path, tables: Path, options: topics.Options):
        self.notes: List[str] = []
        try:
            self._open(path, tables, options)
        except RecordingError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RecordingError(f"{tables}: its tables are not those of nuScenes: {type(error).__name__} {str(error)[:160]}") from None

    def _open(self, path, tables, options):
        scene = self._scene(tables, options.scene)
        samples = {record["token"] for record in records(tables / "sample.json") if record["scene_token"] == scene["token"]}
        lidars = {record["token"] for record in records(tables / "sensor.json") if record["channel"] == CHANNEL}
        mounted = {record["token"]: record for record in records(tables / "calibrated_sensor.json") if record["sensor_token"] in lidars}
        rows = sorted((record for record in records(tables / "sample_data.json")
                       if record["sample_token"] in samples and record["calibrated_sensor_token"] in mounted),
                      key=lambda record: record["timestamp"])
        root = tables if tables == path else tables.parent
        there = [record for record in rows if _is_file(root / record["filename"])]
        if not there:
            raise RecordingError(f"{tables}: {len(rows)} scans of {scene['name']} in its tables, and none of their files in {root}")
        if len(there) < len(rows):
            self.notes.append(f"{len(rows) - len(there)} of {len(rows)} scans of {scene['name']} have no file")
        files, stamps = [root / record["filename"] for record in there], [record["timestamp"] * US for record in there]
        found = Extras([_truth(tables, there)], {CHANNEL: _place(mounted[there[0]["calibrated_sensor_token"]])}, CHANNEL,
                       files=sorted(tables.glob("*.json")))
        self.open(path, files, scan_track(CHANNEL, files, stamps, ScanFiles(files, options.columns or 5), CHANNEL), found, options)

    def _scene(self, tables, name):
        scenes = {record["name"]: record for record in records(tables / "scene.json")}
        if name is None and len(scenes) == 1:
            return next(iter(scenes.values()))
        if name in scenes:
            return scenes[name]
        table = "\n".join(f"  {one}  {scenes[one].get('description', '')}" for one in sorted(scenes))
        what = "choose with --scene NAME" if name is None else f"there is no {name}"
        raise topics.AmbiguousError(f"{tables}: {len(scenes)} scenes; {what}", table)


def _truth(tables, rows) -> Track:
    """The poses of the vehicle, at the stamps of the scans."""
    poses = _by_token(tables / "ego_pose.json", {record["ego_pose_token"] for record in rows})
    numbers = [_pose(poses[record["ego_pose_token"]]) for record in rows]
    return true_poses(stamps_ns(record["timestamp"] * US for record in rows), lambda at: numbers[at], "ego_pose")
