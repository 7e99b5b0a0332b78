"""Changes of an overlay as numbers, places, and features of GeoJSON."""
import json
from pathlib import Path
from typing import Any

import numpy as np

from ..georeference import Projector
from ..mapping.output import MOST_PLACES, PLACE_M
from .overlay import Change, OverlayError, read
from .prior_map import PriorMap


def points_of(prior: PriorMap, changes: "dict[int, Change]") -> "tuple[np.ndarray, np.ndarray]":
    """The points that are gone (N, 3), and the new ones (M, 3)."""
    gone = [prior.points(number)[one.removed] for number, one in sorted(changes.items())]
    new = [one.added_m for _, one in sorted(changes.items())]
    return np.concatenate([np.empty((0, 3)), *gone]), np.concatenate([np.empty((0, 3)), *new])


def load(folder: Any) -> "tuple[dict[str, Any], PriorMap, dict[int, Change]]":
    """An overlay, its map, and the changes by number of the file. OverlayError: they do not belong together."""
    about, named = read(folder)
    if not isinstance(about.get("map"), str):
        raise OverlayError(f"{folder}: its overlay.json does not tell the map")
    prior = PriorMap(about["map"])
    numbers = {one.path.name: number for number, one in enumerate(prior.files)}
    changes = {}
    for name, change in named.items():
        if name not in numbers:
            raise OverlayError(f"{folder}: changes {name}, which the map {prior.path} does not have")
        of = prior.files[numbers[name]]
        if (change.base_points, change.base_sum) != (of.points, of.checksum):
            raise OverlayError(f"{folder}: {name} of the map {prior.path} is not the one that it was made for")
        changes[numbers[name]] = change
    return about, prior, changes


def places(gone: np.ndarray, new: np.ndarray) -> "list[dict[str, Any]]":
    """Cubes of PLACE_M that change, those with most points first."""
    points = np.concatenate([gone, new])
    if len(points) == 0:
        return []
    _, cell = np.unique(np.floor(points / PLACE_M), axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    count = np.bincount(cell)
    removed = np.bincount(cell[:len(gone)], minlength=len(count))
    middle = np.stack([np.bincount(cell, points[:, k]) / count for k in range(3)], axis=1)
    return [{"at_m": [round(float(value), 1) for value in middle[k]], "removed": int(removed[k]), "added": int(count[k] - removed[k])}
            for k in np.argsort(-count, kind="stable")]


def numbers(gone: np.ndarray, new: np.ndarray) -> "dict[str, Any]":
    """Numbers for overlay.json."""
    return {"removed": len(gone), "added": len(new), "places": places(gone, new)[:MOST_PLACES]}


def write_geojson(path: Path, found: "list[dict[str, Any]]", projector: Projector) -> None:
    """A square for each place that changes: RFC 7946."""
    features = []
    for place in found:
        x, y, z = place["at_m"]
        left, low = (np.floor(value / PLACE_M) * PLACE_M for value in (x, y))
        corners = []
        for dx, dy in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0)):
            latitude, longitude, _ = projector.inverse(float(left + dx * PLACE_M), float(low + dy * PLACE_M), float(z))
            corners.append([round(float(longitude), 9), round(float(latitude), 9)])
        features.append({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [corners]},
                         "properties": {"removed": place["removed"], "added": place["added"], "z_m": z}})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}) + "\n", encoding="ascii")
