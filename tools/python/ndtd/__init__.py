"""NDT scan matching: maps, alignment, localisation, replay, and the client of the ndtd daemon.

    import ndtd

    target = ndtd.Map("map.pcd")                      # or an N x 3 array, or a folder of tiles
    scan = ndtd.preprocess(points)                    # raw points, sensor frame
    result = ndtd.align(target, scan, guess)          # guess: 4 x 4, T_map_sensor
    print(result.outcome, result.pose, result.covariance)

    for scan in ndtd.Replay("drive.bag", "map.pcd"):  # as ndtd --replay, bit for bit
        print(scan.stamp_ns, scan.state, scan.pose)

    localizer = ndtd.Localizer("map.pcd")             # the same in this process: scans and motion in
    localizer.initial_pose(stamp_ns, pose)
    scan = localizer.scan(stamp_ns, points)           # one result for each scan out

Metres, seconds, radians; frames as in ROS (x forward, y left, z up); T_map_sensor takes points of the sensor to the map.
"""
from importlib.util import find_spec as _find_spec

from ._version import __version__
from .client import AsyncClient, Client, RequestError, default_endpoint

if _find_spec("ndtd._core"):
    from ._align import align, align_batch, localize
    from ._core import (Aligner, BagReader, BagWriter, Candidate, Iteration, Localizer, Map, Odometry, OdometryScan, Record,
                        Replay, Result, Scan, Scores, Search, decode_scan, preprocess, read_cloud, write_cloud)
    from .cloud import Cloud
else:  # `cmake --install` brings the clients alone, for any Python

    def __getattr__(name: str) -> object:
        raise AttributeError(f"ndtd.{name} is not here: only the clients are installed; pip install ./tools/python brings the rest")


__all__ = ["Aligner", "AsyncClient", "BagReader", "BagWriter", "Candidate", "Client", "Cloud", "Iteration", "Localizer", "Map",
           "Odometry", "OdometryScan", "Record", "Replay", "RequestError", "Result", "Scan", "Scores", "Search", "__version__",
           "align", "align_batch", "decode_scan", "default_endpoint", "localize", "preprocess", "read_cloud", "write_cloud"]
