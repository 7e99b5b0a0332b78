"""Position of a map on the earth: WGS84 to map coordinates and back, as Autoware's map_projector_info.yaml says.

    projector = Projector.from_file("map/map_projector_info.yaml")  # or Projector.find("map"), beside or above the map
    x, y, z = projector.forward(35.62426, 139.74252, 12.0)          # degrees, metres; arrays are taken too
    latitude, longitude, altitude = projector.inverse(x, y, z)
    yaw_rad = projector.yaw_from_heading(heading_rad, latitude, longitude)

Needs pyproj, and PyYAML for files: pip install 'ndtd[las]'.

| projector_type | x, y of the map |
|---|---|
| `MGRS` | UTM of the zone of `mgrs_grid` (WGS84), relative to the south-west corner of that square of 100 km |
| `LocalCartesianUTM` | UTM of the zone of `map_origin`, relative to `map_origin` |
| `TransverseMercator` | transverse Mercator about the meridian of `map_origin` with `scale_factor` (0.9996), relative to `map_origin` |
| `LocalCartesian` | east and north in the tangent plane of `map_origin` |
| `Local` | not on the earth, unless `crs` says where |

z is the altitude minus `map_origin.altitude` (0 unless given; today's Autoware takes 0 whatever the file says). With
`vertical_datum: EGM2008` or `EGM96` altitudes become heights above the geoid where PROJ has its grid; `heights_note()` tells. Two keys of
our own, which Autoware ignores, describe any other system: `crs: EPSG:25832` and `offset: [x, y, z]`: map = CRS - offset.
`UTM` is the old name of `LocalCartesianUTM`.
"""
import math
import warnings
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ._extras import need

FILE_NAME = "map_projector_info.yaml"
UTM_SCALE = 0.9996
_BANDS = "CDEFGHJKLMNPQRSTUVWX"
_ROWS = "ABCDEFGHJKLMNPQRSTUV"
_COLUMNS = ("STUVWXYZ", "ABCDEFGH", "JKLMNPQR")  # by zone modulo 3
_SQUARE_M = 100_000.0


class GeoreferenceError(ValueError):
    """A projector that cannot be used; one line with the file and the reason."""


def utm_zone(latitude: float, longitude: float) -> int:
    """Zone of UTM, 1 to 60, with the exceptions of Norway and Svalbard."""
    longitude = (longitude + 180.0) % 360.0 - 180.0
    if 56.0 <= latitude < 64.0 and 3.0 <= longitude < 12.0:
        return 32
    if 72.0 <= latitude < 84.0 and 0.0 <= longitude < 42.0:
        return 31 + 2 * int((longitude + 3.0) // 12.0)
    return int((longitude + 180.0) // 6.0) + 1


def _utm_definition(zone: int, south: bool) -> str:
    return f"+proj=utm +zone={zone} {'+south ' if south else ''}+ellps=WGS84"


def _mgrs_corner(grid: str) -> tuple[int, bool, float, float]:
    """Zone, southern hemisphere, UTM easting and northing of the south-west corner of a square such as 54SUE."""
    text = grid.strip().upper()
    digits = text[:-3]
    if not (digits.isdigit() and 1 <= int(digits) <= 60 and text[-3] in _BANDS):
        raise GeoreferenceError(f"mgrs_grid '{grid}': not a square of 100 km such as 54SUE")
    zone, band, column, row = int(digits), text[-3], text[-2], text[-1]
    if column not in _COLUMNS[zone % 3] or row not in _ROWS:
        raise GeoreferenceError(f"mgrs_grid '{grid}': zone {zone} has no square {column}{row}")
    south = band < "N"
    easting = _SQUARE_M * (1 + _COLUMNS[zone % 3].index(column))
    northing = _SQUARE_M * ((_ROWS.index(row) - (0 if zone % 2 else 5)) % 20)
    # Rows repeat every 2000 km: the band tells which; its bottom is lowest on the central meridian of the zone.
    bottom = need("pyproj", "las").Proj(_utm_definition(zone, south))(6 * zone - 183, 8 * _BANDS.index(band) - 80)[1]
    while northing + _SQUARE_M <= bottom:
        northing += 20 * _SQUARE_M
    return zone, south, easting, northing


def mgrs_square(latitude: float, longitude: float) -> str:
    """The square of 100 km that contains a place, such as 54SUE."""
    if not -80.0 <= latitude < 84.0:
        raise GeoreferenceError(f"latitude {latitude:g}: MGRS squares of UTM end at 80 deg south and 84 deg north")
    zone, south = utm_zone(latitude, longitude), latitude < 0.0
    easting, northing = need("pyproj", "las").Proj(_utm_definition(zone, south))(longitude, latitude)
    band = _BANDS[min(int((latitude + 80.0) // 8.0), len(_BANDS) - 1)]
    column = _COLUMNS[zone % 3][int(easting // _SQUARE_M) - 1]
    return f"{zone}{band}{column}{_ROWS[(int(northing // _SQUARE_M) + (0 if zone % 2 else 5)) % 20]}"


class _Plane:
    """A projection by PROJ: longitude, latitude to x, y; heights pass through."""

    def __init__(self, definition: str):
        self._project = need("pyproj", "las").Proj(definition)

    def forward(self, latitude, longitude, altitude):
        return (*self._project(longitude, latitude, errcheck=True), altitude)

    def inverse(self, x, y, z):
        longitude, latitude = self._project(x, y, inverse=True, errcheck=True)
        return latitude, longitude, z


class _Crs:
    """Conversion from and to WGS84 by any CRS that pyproj knows."""

    def __init__(self, crs: Any):
        pyproj = need("pyproj", "las")
        try:
            self._to = pyproj.Transformer.from_crs("EPSG:4979", pyproj.CRS.from_user_input(crs), always_xy=True)
        except pyproj.exceptions.ProjError as error:
            raise GeoreferenceError(f"{crs}: not a coordinate system that pyproj knows: {_line(error)}") from None

    def forward(self, latitude, longitude, altitude):
        return self._to.transform(longitude, latitude, altitude, errcheck=True)

    def inverse(self, x, y, z):
        longitude, latitude, altitude = self._to.transform(x, y, z, direction="INVERSE", errcheck=True)
        return latitude, longitude, altitude


class _Tangent:
    """East and north in the plane that touches the ellipsoid at the origin; the height stays that above the ellipsoid."""

    def __init__(self, latitude: float, longitude: float):
        self._enu = need("pyproj", "las").Transformer.from_pipeline(
            "+proj=pipeline +step +proj=unitconvert +xy_in=deg +xy_out=rad +step +proj=cart +ellps=WGS84 "
            f"+step +proj=topocentric +ellps=WGS84 +lat_0={latitude!r} +lon_0={longitude!r} +h_0=0")

    def forward(self, latitude, longitude, altitude):
        x, y, _ = self._enu.transform(longitude, latitude, altitude, errcheck=True)
        return x, y, altitude

    def inverse(self, x, y, z):
        longitude, latitude, altitude = self._enu.transform(x, y, z, direction="INVERSE", errcheck=True)
        for _ in range(3):  # the place in the plane whose height above the ellipsoid is z
            up = self._enu.transform(longitude, latitude, z, errcheck=True)[2]
            longitude, latitude, _ = self._enu.transform(x, y, up, direction="INVERSE", errcheck=True)
        return latitude, longitude, z


_GEOIDS = {"EGM2008": 3855, "EGM96": 5773}


def _geoid(datum: str) -> Any:
    """The transformer from heights above the ellipsoid to those above a geoid; None where PROJ has no grid of it."""
    pyproj = need("pyproj", "las")
    if datum.upper() not in _GEOIDS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the grid is missing
        group = pyproj.transformer.TransformerGroup("EPSG:4979", f"EPSG:4326+{_GEOIDS[datum.upper()]}", always_xy=True)
    return group.transformers[0] if group.best_available and group.transformers else None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


class Projector:
    """WGS84 (degrees, metres above the ellipsoid) to map coordinates (metres, x east, y north of the grid) and back.

    GeoreferenceError: a description that is incomplete, or that says that the map is not on the earth."""

    def __init__(self, transform: Any, offset_m: Any, info: dict[str, Any]):
        self._transform = transform
        self.offset_m = np.asarray(offset_m, np.float64)  # (3,): map = projected - offset
        self.info = info  # the keys of the file, see write()
        self._geoid = _geoid(str(info.get("vertical_datum", "WGS84")))

    # ---- making one

    @classmethod
    def from_file(cls, path: Any) -> "Projector":
        """Reads a map_projector_info.yaml."""
        yaml = need("yaml", "las")
        path = Path(path)
        try:
            info = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise GeoreferenceError(f"{path}: not YAML: {_line(error)}") from None
        try:
            return cls.from_info(info)
        except GeoreferenceError as error:
            raise GeoreferenceError(f"{path}: {error}") from None

    @classmethod
    def from_info(cls, info: Any) -> "Projector":
        """Projector from the keys of a map_projector_info.yaml as a dict."""
        if not isinstance(info, dict) or not isinstance(info.get("projector_type"), str):
            raise GeoreferenceError("has no projector_type")
        if info.get("crs"):
            return cls(_Crs(info["crs"]), _offset(info), dict(info))
        make = _MAKERS.get(info["projector_type"].lower())
        if make is None:
            known = "MGRS, LocalCartesianUTM, LocalCartesian, TransverseMercator, Local"
            raise GeoreferenceError(f"projector_type '{info['projector_type']}' is not known; known are {known}")
        transform, offset_m = make(info)
        return cls(transform, offset_m, dict(info))

    @classmethod
    def find(cls, map_path: Any) -> "Optional[Projector]":
        """Projector by the map_projector_info.yaml in the folder of a map, beside its file, or in the folder above; None without one,
        and for a map that is not on the earth."""
        path = Path(map_path).absolute()
        for folder in ([path] if path.is_dir() else []) + [path.parent] + ([path.parent.parent] if not path.is_dir() else []):
            if (folder / FILE_NAME).is_file():
                return None if _is_local(folder / FILE_NAME) else cls.from_file(folder / FILE_NAME)
        return None

    @classmethod
    def utm(cls, latitude: float, longitude: float) -> "Projector":
        """Full UTM coordinates (WGS84) of the zone of a place, without an offset."""
        return cls.from_crs((32700 if latitude < 0.0 else 32600) + utm_zone(latitude, longitude))

    @classmethod
    def from_crs(cls, crs: Any, offset_m: Any = (0.0, 0.0, 0.0)) -> "Projector":
        """A projected CRS (EPSG number, WKT, pyproj.CRS) and the offset that the map lacks: map = CRS - offset.

        UTM with an offset is described as Autoware has it: MGRS or LocalCartesianUTM."""
        system = _horizontal(crs)
        offset = np.array([float(value) for value in offset_m])
        name = system.to_authority()
        info: dict[str, Any] = {"projector_type": "Local", "vertical_datum": "WGS84",
                                "crs": ":".join(name) if name else system.to_wkt(), "offset": offset.tolist()}
        transform = _Crs(system)
        if system.utm_zone and offset[:2].any() and system.ellipsoid.name in ("WGS 84", "GRS 1980"):
            latitude, longitude, _ = transform.inverse(offset[0], offset[1], 0.0)
            info = _autoware_utm(system, latitude, longitude, offset) or info
        return cls(transform, offset, info)

    # ---- using it

    def forward(self, latitude: Any, longitude: Any, altitude: Any = 0.0) -> tuple[Any, Any, Any]:
        """x, y, z in the map [m]; numbers, or arrays of one shape. Degrees; altitude in metres above the ellipsoid."""
        try:
            if self._geoid is not None:
                altitude = self._geoid.transform(longitude, latitude, altitude)[2]
            x, y, z = self._transform.forward(latitude, longitude, altitude)
        except need("pyproj", "las").exceptions.ProjError as error:
            raise GeoreferenceError(f"latitude {latitude}, longitude {longitude}: {_line(error)}") from None
        return x - self.offset_m[0], y - self.offset_m[1], z - self.offset_m[2]

    def inverse(self, x: Any, y: Any, z: Any = 0.0) -> tuple[Any, Any, Any]:
        """Latitude and longitude [deg] and altitude [m] of map coordinates [m]; numbers, or arrays of one shape."""
        at = self.offset_m
        try:
            latitude, longitude, altitude = self._transform.inverse(x + at[0], y + at[1], z + at[2])
            if self._geoid is not None:
                altitude = self._geoid.transform(longitude, latitude, altitude, direction="INVERSE")[2]
            return latitude, longitude, altitude
        except need("pyproj", "las").exceptions.ProjError as error:
            raise GeoreferenceError(f"map coordinates {x}, {y}: {_line(error)}") from None

    def convergence(self, latitude: Any, longitude: Any) -> Any:
        """Meridian convergence [rad] at a place, or at places as arrays: the angle from true north to the y axis of the map, clockwise positive.

        About (longitude - central meridian) * sin(latitude): up to 3 deg at the edge of a zone of UTM at high latitudes. An
        initial heading from GNSS without it turns the first guess by as much."""
        step_deg = 1e-4
        below, above = (self.forward(latitude + sign * step_deg, longitude) for sign in (-1.0, 1.0))
        return -np.arctan2(above[0] - below[0], above[1] - below[1])

    def yaw_from_heading(self, heading_rad: float, latitude: float, longitude: float) -> float:
        """Yaw in the map (counterclockwise from its x axis) of a heading clockwise from true north, in (-pi, pi]."""
        yaw_rad = math.pi / 2 - heading_rad + float(self.convergence(latitude, longitude))
        return math.pi - (math.pi - yaw_rad) % (2 * math.pi)

    def heights_note(self) -> Optional[str]:
        """A line for the user where the altitudes of the map are not those above the ellipsoid; otherwise None."""
        datum = str(self.info.get("vertical_datum", "WGS84"))
        if datum.upper() == "WGS84" or self._geoid is not None:
            return None
        how = "; `projsync --file us_nga_egm` gets the grid" if datum.upper() in _GEOIDS else ""
        return f"vertical_datum {datum}: heights above the ellipsoid are not converted, z is off by the geoid (tens of metres){how}"

    def write(self, folder: Any) -> Path:
        """Writes map_projector_info.yaml into a folder; returns its path."""
        lines = []
        for key, value in self.info.items():
            if isinstance(value, dict):
                lines += [f"{key}:"] + [f"  {name}: {number!r}" for name, number in value.items()]
            elif isinstance(value, list):
                lines.append(f"{key}: [{', '.join(repr(float(v)) for v in value)}]")
            else:
                text = str(value)
                lines.append(f"{key}: {text}" if isinstance(value, (int, float)) or text.replace(":", "").isalnum() else f"{key}: '{text}'")
        path = Path(folder) / FILE_NAME
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


# ---- the projector types


def _offset(info: dict[str, Any]) -> np.ndarray:
    try:
        offset = np.array([float(value) for value in info.get("offset", [0.0, 0.0, 0.0])])
    except (TypeError, ValueError):
        offset = np.empty(0)
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise GeoreferenceError("offset: needs three numbers: [x, y, z]")
    return offset


def _horizontal(crs: Any) -> Any:
    """The projected part of a CRS in metres, as pyproj.CRS."""
    pyproj = need("pyproj", "las")
    try:
        system = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.ProjError as error:
        raise GeoreferenceError(f"{crs}: not a coordinate system that pyproj knows: {_line(error)}") from None
    system = next((part for part in system.sub_crs_list if part.is_projected), system)
    units = {axis.unit_name for axis in system.axis_info}
    if not system.is_projected:
        raise GeoreferenceError(f"{system.name}: is not projected; a map needs metres, such as those of UTM")
    if units != {"metre"}:
        raise GeoreferenceError(f"{system.name}: its unit is {', '.join(sorted(units))}; a map needs metres")
    return system


def _autoware_utm(system: Any, latitude: float, longitude: float, offset: np.ndarray) -> Optional[dict[str, Any]]:
    """The keys of Autoware for UTM minus an offset; None where they cannot say it."""
    zone, south = int(system.utm_zone[:-1]), system.utm_zone[-1] == "S"
    if not offset[2] and not (offset[:2] % _SQUARE_M).any():
        inside = need("pyproj", "las").Proj(_utm_definition(zone, south))(offset[0] + 1.0, offset[1] + 1.0, inverse=True)
        grid = mgrs_square(inside[1], inside[0])
        if _mgrs_corner(grid) == (zone, south, offset[0], offset[1]):
            return {"projector_type": "MGRS", "vertical_datum": "WGS84", "mgrs_grid": grid}
    if (utm_zone(latitude, longitude), latitude < 0.0) != (zone, south):
        return None
    origin = {"latitude": latitude, "longitude": longitude}
    if offset[2]:
        origin["altitude"] = float(offset[2])
    return {"projector_type": "LocalCartesianUTM", "vertical_datum": "WGS84", "map_origin": origin}


def _is_local(path: Path) -> bool:
    info = need("yaml", "las").safe_load(path.read_text(encoding="utf-8"))
    return isinstance(info, dict) and str(info.get("projector_type")).lower() == "local" and not info.get("crs")


def _origin(info: dict[str, Any]) -> tuple[float, float, float]:
    origin: Any = info.get("map_origin")
    try:
        latitude, longitude = float(origin["latitude"]), float(origin["longitude"])
        altitude = float(origin.get("altitude", 0.0))
    except (TypeError, KeyError, ValueError):
        raise GeoreferenceError("needs map_origin with latitude and longitude in degrees") from None
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and math.isfinite(altitude)):
        raise GeoreferenceError(f"map_origin {latitude:g}, {longitude:g}: no latitude and longitude in degrees")
    return latitude, longitude, altitude


def _make_local(info: dict[str, Any]) -> Any:
    raise GeoreferenceError("projector_type Local: the map is not on the earth")


def _make_mgrs(info: dict[str, Any]) -> Any:
    zone, south, easting, northing = _mgrs_corner(str(info.get("mgrs_grid", "")))
    return _Plane(_utm_definition(zone, south)), (easting, northing, 0.0)


def _make_local_utm(info: dict[str, Any]) -> Any:
    latitude, longitude, altitude = _origin(info)
    plane = _Plane(_utm_definition(utm_zone(latitude, longitude), latitude < 0.0))
    x, y, _ = plane.forward(latitude, longitude, 0.0)
    return plane, (x, y, altitude)


def _make_transverse_mercator(info: dict[str, Any]) -> Any:
    latitude, longitude, altitude = _origin(info)
    try:
        scale = float(info.get("scale_factor", UTM_SCALE))
    except (TypeError, ValueError):
        scale = 0.0
    if not scale > 0.0:
        raise GeoreferenceError(f"scale_factor {info.get('scale_factor')}: not a number above 0")
    plane = _Plane(f"+proj=tmerc +lat_0=0 +lon_0={longitude!r} +k_0={scale!r} +ellps=WGS84")
    return plane, (*plane.forward(latitude, longitude, 0.0)[:2], altitude)


def _make_local_cartesian(info: dict[str, Any]) -> Any:
    latitude, longitude, altitude = _origin(info)
    return _Tangent(latitude, longitude), (0.0, 0.0, altitude)


_MAKERS = {"mgrs": _make_mgrs, "localcartesianutm": _make_local_utm, "transversemercator": _make_transverse_mercator,
           "localcartesian": _make_local_cartesian, "utm": _make_local_utm, "local": _make_local}
