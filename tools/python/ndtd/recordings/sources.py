"""Opens a recording by what it is: ROS 1 bag, ROS 2 folder, .db3 or .mcap, capture of a network, KITTI drive, or a folder of scans."""
import contextlib
import re
from pathlib import Path
from typing import Any, Iterator, List, Sequence

from .. import _child
from .messages import MetadataError, RecordingError
from .topics import Options

BAG_MAGIC = b"NDTBAG"
CAPTURES = (".pcap", ".pcapng", ".cap")
FILES = (".bag", ".db3", ".mcap", ".osf") + CAPTURES
KNOWN = ("known are .bag (ROS 1), .db3, .mcap, .pcap, .osf, velodyne_hits.bin (NCLT), a ROS 2 folder, KITTI drives, nuScenes and folders of "
         ".bin, .pcd or .ply")


@contextlib.contextmanager
def open_recording(paths: Sequence[Any], options: Options) -> Iterator[Any]:
    """A recording with .topics, .duration_s and .raw(topics, start_ns); several paths: the parts of a ROS 1 recording.

    RecordingError where a path is no recording; MissingPackage where an extra is not installed.
    """
    found = [Path(path) for path in paths]
    for path in found:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder")
    if len(found) > 1 and any(path.suffix != ".bag" for path in found):
        raise RecordingError(f"{found[1]}: one recording at a time; only the parts of a ROS 1 recording (.bag) go together")
    _child.working_on(found[0])
    with contextlib.ExitStack() as stack:
        yield _open(found, options, stack)


def _open(paths: List[Path], options, stack):
    path = paths[0]
    if path.is_file() and path.stat().st_size == 0:
        raise RecordingError(f"{path}: the file is empty")
    if path.is_dir():
        return _open_folder(path, options, stack)
    if _begins_with(path, BAG_MAGIC):
        raise RecordingError(f"{path}: a bag of ndtd already: ndtd --replay {path} --map MAP")
    if path.suffix in (".db3", ".mcap", ".zstd") and _is_compressed(path.parent / "metadata.yaml"):
        raise RecordingError(f"{path}: rosbag2 compressed it: name its folder, {path.parent}")
    if path.suffix in (".bag", ".db3"):
        from .rosbag_file import RosbagRecording
        return RosbagRecording(paths, options, stack)
    if path.suffix == ".mcap":
        from .mcap_file import McapRecording
        return McapRecording(path, options, stack)
    if path.suffix in CAPTURES:
        from .pcap import PcapRecording
        return PcapRecording(path, options, stack)
    if path.name == "velodyne_hits.bin":
        from .nclt_hits import HitsRecording
        return HitsRecording(path, options)
    if path.suffix == ".osf":
        from .ouster import OsfRecording
        return OsfRecording(path, options, stack)
    if path.name.endswith(".bag.active"):
        raise RecordingError(f"{path}: it was not closed, so it has no index; `rosbag reindex` repairs it")
    if path.suffix.lower() in (".las", ".laz", ".pcd", ".ply", ".xyz", ".e57"):
        raise RecordingError(f"{path}: a point cloud, not a recording; `ndt-import map {path} -o DIR` makes a map of it")
    raise RecordingError(f"{path}: not a recording; {KNOWN}")


def _begins_with(path, magic):
    with path.open("rb") as stream:
        return stream.read(len(magic)) == magic


def _is_compressed(metadata):
    """Whether messages or files of a ROS 2 recording are compressed, which its metadata alone tells."""
    return metadata.exists() and bool(re.search(r"compression_mode: *['\"]?(file|message)", metadata.read_text(errors="replace"), re.I))


def _open_ros2(path, options, stack):
    """A folder of rosbag2; where its metadata cannot be used, the files that lie in it."""
    from .rosbag_file import RosbagRecording
    try:
        return RosbagRecording([path], options, stack)
    except MetadataError as error:
        files = sorted(one for one in path.iterdir() if one.suffix in (".db3", ".mcap"))
        if not files or _is_compressed(path / "metadata.yaml"):
            raise
        if len(files) > 1 and files[-1].suffix == ".mcap":
            raise RecordingError(f"{error}; name one of its files: {', '.join(one.name for one in files[:6])}") from None
        why = str(error)
    from .mcap_file import McapRecording
    found = RosbagRecording(files, options, stack) if files[0].suffix == ".db3" else McapRecording(files[0], options, stack)
    found.notes.append(f"metadata.yaml cannot be used; read without it: {', '.join(one.name for one in files[:6])} ({why})")
    return found


def _open_folder(path, options, stack):
    from . import folders, kitti, nuscenes
    if (path / "metadata.yaml").exists():
        return _open_ros2(path, options, stack)
    if kitti.is_drive(path):
        return kitti.KittiDrive(path, options)
    below = sorted(one for one in path.iterdir() if one.is_dir() and ((one / "metadata.yaml").exists() or kitti.is_drive(one)))
    files = sorted(one for one in path.iterdir() if one.suffix in FILES)
    if len(below) + len(files) > 1:
        names = ", ".join(one.name for one in (below + files)[:6])
        raise RecordingError(f"{path}: {len(below) + len(files)} recordings in it; name one: {names}")
    if below or files:
        return _open((below + files)[:1], options, stack)
    if (path / "velodyne_hits.bin").is_file() and not (path / "velodyne_sync").is_dir():
        return _open([path / "velodyne_hits.bin"], options, stack)
    tables = nuscenes.tables_of(path)
    return nuscenes.NuScenes(path, tables, options) if tables else folders.FolderRecording(path, options)
