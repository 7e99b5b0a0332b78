"""ndt-map changes: what an overlay changes in its map, as a table, a picture, and for maps on the web."""
import argparse
from pathlib import Path

from ._arguments import Parser, UsageError, add_version, finish
from ._extras import need
from .georeference import Projector
from .mapping.output import MOST_PLACES
from .renewal import changes


def parser() -> argparse.ArgumentParser:
    """The options; docs/renewal.md explains them."""
    out = Parser(prog="ndt-map changes", description="Shows what an overlay of ndt-map update changes in its map.")
    add_version(out)
    out.add_argument("overlay", metavar="OVERLAY", help="folder that ndt-map update has written")
    out.add_argument("--picture", metavar="FILE.png", help="the map from above: kept, gone, new (needs ndtd[report])")
    out.add_argument("--geojson", metavar="FILE", help="squares that change, on the earth: the map needs a map_projector_info.yaml")
    return out


def show(args: argparse.Namespace) -> None:
    """Prints, draws and writes what is asked for."""
    if args.picture:
        need("matplotlib", "report")
    about, prior, found = changes.load(args.overlay)
    projector = Projector.find(prior.path) if args.geojson else None
    if args.geojson and projector is None:
        raise UsageError(f"--geojson: where is the map on the earth? {prior.path} has no map_projector_info.yaml beside it")
    gone, new = changes.points_of(prior, found)
    places = changes.places(gone, new)
    print(f"overlay {about['overlay_id']} of {about['map']}: {len(gone)} points leave, {len(new)} are added, {len(places)} places of 4 m change")
    for place in places[:MOST_PLACES]:
        print("x {:9.1f}  y {:9.1f}  z {:6.1f}  gone {:6d}  new {:6d}".format(*place["at_m"], place["removed"], place["added"]))
    if args.picture:
        from .report import update_page
        update_page.write_picture(Path(args.picture), prior.path, gone, new, about.get("ways_m"))
    if projector is not None:
        changes.write_geojson(Path(args.geojson), places, projector)


def main(arguments: "list[str]") -> int:
    """The command; returns its exit code."""
    args = parser().parse_args(arguments)
    return finish("ndt-map changes", lambda: show(args))
