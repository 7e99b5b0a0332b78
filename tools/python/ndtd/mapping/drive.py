"""Recordings of drives as bags: anything that ndt-import reads, read as often as a map needs it."""
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import numpy as np

from .. import poses
from .._arguments import CommandError
from .._core import BagReader, decode_scan, scan_turn
from .._extras import need
from ..recordings.sources import BAG_MAGIC

USUAL_SWEEP_S, LEAST_SWEEP_S, MOST_SWEEP_S = 0.1, 0.04, 0.15


class MappingError(CommandError):
    """A drive that cannot be mapped; one line for the user: what, where, what helps."""


@dataclass
class Drive:
    """A bag, and what its scans are like."""

    name: str  # of the recording, for messages
    bag: Path
    frame_id: str = ""  # of the scans that are used
    scans: int = 0
    left_out: int = 0  # scans of other frames
    has_imu: bool = False
    has_wheels: bool = False
    deskew: str = "off"
    sweep_s: float = USUAL_SWEEP_S
    range_offset_m: float = 0.0  # added to the ranges of its scans
    stamps_ns: list[int] = field(default_factory=list)
    T_base_sensor: np.ndarray = field(default_factory=lambda: np.eye(4))
    T_base_imu: np.ndarray = field(default_factory=lambda: np.eye(4))
    transforms: "dict[str, np.ndarray]" = field(default_factory=dict)  # T_base_frame by frame
    projector: "Optional[dict[str, Any]]" = None  # of its GNSS, as map_projector_info.yaml has it
    fixes_left: int = 0  # of GNSS, because nothing told where the map is on the earth


def is_bag(path: Path) -> bool:
    """Whether a file begins as a bag does."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(BAG_MAGIC)) == BAG_MAGIC


def import_recording(recording: str, out: Path, options: "list[str]") -> "dict[str, Any]":
    """Runs ndt-import, which writes the bag `out`, or goes on with it; returns its summary, which stays beside the bag. The last
    line of the import is the reason where it fails."""
    told = out.with_name(out.name + ".json")
    if out.exists() and told.exists():
        return dict(json.loads(told.read_text(encoding="utf-8")))
    anew = ["--force"] if out.exists() else []  # stopped between the two
    command = [sys.executable, "-m", "ndtd.ndt_import", recording, "-o", str(out), "--quiet", "--json", *anew, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode:
        reason = lines[-1] if lines else f"exit status {done.returncode}"
        reason = reason.replace("ndt-import: ", "", 1)
        raise MappingError(reason if reason.startswith(f"{recording}:") else f"{recording}: {reason}")
    for line in lines:
        print(line, file=sys.stderr)
    part = told.with_name(told.name + ".part")  # a summary that is cut off would stop each later run
    part.write_text(done.stdout, encoding="utf-8")
    os.replace(part, told)
    return dict(json.loads(done.stdout))


def _records(bag: Path, report: bool = False) -> "Iterator[Any]":
    """Yields the records of a bag: one that ends early, or is damaged, is read up to there; `report` prints that."""
    reader, count = iter(BagReader(str(bag))), 0
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except ValueError as error:
            if count == 0:
                raise
            if report:
                print(f"ndtd: warning: {error}; what comes before is used", file=sys.stderr)
            return
        count += 1
        yield record


def messages(bag: Path) -> "Iterator[tuple[str, Any]]":
    """The type and the decoded content of each record, scans with their points."""
    unpack = need("msgpack", "map").unpackb
    for record in _records(bag):
        yield record.type, decode_scan(record.payload) if record.type == "scan" else unpack(record.payload)


def _look(drive: Drive, frame_id: "Optional[str]") -> None:
    """Counts what the bag has; headers of scans alone are decoded."""
    unpack = need("msgpack", "map").unpackb
    frames: "Counter[str]" = Counter()
    stamps: "dict[str, list[int]]" = {}
    transforms = drive.transforms
    imu_frame = "imu"
    for record in _records(drive.bag, report=True):
        message = unpack(record.payload)
        if record.type == "scan":
            frames[message["frame_id"]] += 1
            stamps.setdefault(message["frame_id"], []).append(message["stamp_ns"])
        elif record.type == "transform":
            transforms[message["frame_id"]] = poses.matrix(message["pose"])
        elif record.type == "imu":
            drive.has_imu, imu_frame = True, message["frame_id"]
        drive.has_wheels |= record.type == "odometry"
    if not frames:
        raise MappingError(f"{drive.name}: has no scans")
    if frame_id is not None and frame_id not in frames:
        raise MappingError(f"{drive.name}: no scan of frame {frame_id!r}; there are: {', '.join(sorted(frames))}")
    drive.frame_id = frame_id if frame_id is not None else frames.most_common(1)[0][0]
    drive.stamps_ns = stamps[drive.frame_id]
    drive.scans, drive.left_out = frames[drive.frame_id], sum(frames.values()) - frames[drive.frame_id]
    drive.T_base_sensor = transforms.get(drive.frame_id, np.eye(4))
    drive.T_base_imu = transforms.get(imu_frame, np.eye(4))


def first_scan(drive: Drive) -> "dict[str, Any]":
    """The first scan that has points, as it was recorded."""
    for kind, message in messages(drive.bag):
        if kind == "scan" and message["frame_id"] == drive.frame_id and len(message["points"]):
            return dict(message)
    raise MappingError(f"{drive.name}: no scan of frame {drive.frame_id!r} has points")


def open_drive(recording: str, work: Path, number: int, options: Any) -> Drive:
    """Imports a recording where it is no bag, and finds how its scans were measured.

    options: frame, deskew, import_options of the command line; deskew_option: how it is given there."""
    path, option = Path(recording), getattr(options, "deskew_option", "--deskew ")
    if not path.exists():
        raise MappingError(f"{recording}: no such file or folder")
    drive = Drive(recording, path if is_bag(path) else work / f"drive{number}.bin")
    if drive.bag != path:
        told = import_recording(recording, drive.bag, options.import_options)
        drive.projector = told["projector"]
        drive.fixes_left = sum(count for why, count in told["left"].items() if why.startswith("gnss: where the map is"))
    _look(drive, options.frame)
    first = first_scan(drive)
    drive.deskew = options.deskew
    if options.deskew == "auto":
        drive.deskew = "time" if first["time_s"] is not None else scan_turn(first["points"])
        if drive.deskew == "off":
            print(f"note: {recording}: its points have no times, and their order does not tell how the sensor turns: they are "
                  f"not deskewed; {option}azimuth_cw or azimuth_ccw tells it (KITTI: azimuth_cw)", file=sys.stderr)
    if options.deskew == "time" and first["time_s"] is None:
        raise MappingError(f"{recording}: its points have no times; {option}azimuth_cw, azimuth_ccw or off need none")
    if drive.scans > 1:
        between_s = float(np.median(np.diff(np.array(drive.stamps_ns)))) * 1e-9
        if LEAST_SWEEP_S <= between_s <= MOST_SWEEP_S:
            drive.sweep_s = between_s
    return drive
