"""NDT scan matching: maps, alignment, localisation, replay, and the client of the ndtd daemon.

    import ndtd

    target = ndtd.Map("map.pcd")                      # or an N x 3 array, or a folder of tiles
    scan = ndtd.preprocess(points)                    # raw points, sensor frame
    result = ndtd.align(target, scan, guess)          # guess: 4 x 4, T_map_sensor
    print(result.outcome, result.pose, result.covariance)

    for scan in ndtd.Replay("drive.bag", "map.pcd"):  # as ndtd --replay, bit for bit
        print(scan.stamp_ns, scan.state, scan.pose)

Metres, seconds, radians; frames as in ROS (x forward, y left, z up); T_map_sensor takes points of the sensor to the map.
"""
from ._align import align, align_batch, localize
from ._core import (Aligner, BagReader, BagWriter, Candidate, Map, Record, Replay, Result, Scan, Search, decode_scan,
                    preprocess)

__all__ = ["Aligner", "BagReader", "BagWriter", "Candidate", "Map", "Record", "Replay", "Result", "Scan", "Search",
           "align", "align_batch", "decode_scan", "localize", "preprocess"]
