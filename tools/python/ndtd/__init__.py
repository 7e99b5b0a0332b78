"""NDT scan matching: maps, alignment, localisation, replay, and the client of the ndtd daemon.

    import ndtd

    target = ndtd.Map("map.pcd")                      # or an N x 3 array, or a folder of tiles
    scan = ndtd.preprocess(points)                    # raw points, sensor frame
    result = ndtd.align(target, scan, guess)          # guess: 4 x 4, T_map_sensor
    print(result.outcome, result.pose, result.covariance)

Metres, seconds, radians; frames as in ROS (x forward, y left, z up); T_map_sensor takes points of the sensor to the map.
"""
from ._align import align, align_batch
from ._core import Aligner, Map, Result, preprocess

__all__ = ["Aligner", "Map", "Result", "align", "align_batch", "preprocess"]
