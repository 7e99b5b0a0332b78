"""The section of a fleet's report that says where the map has to be surveyed again."""
from . import fleet_figures, fleet_places, html_parts, map_above, trajectory_figure
from .compare_figures import short
from .figures import Drawing
from .fleet_places import Place
from .fleet_results import FleetResults
from .fleet_totals import percent, thousands
from .html_parts import figure, paragraph, section, table
from .verdict import NB, NONE, count, length

MOST_PLACES, MOST_UNSURE, MOST_NAME = 50, 20, 26
NEAR = 1.5  # a map so many times as wide as the surroundings of a place shows what pictures of places would


class SurveySection:
    """`map`: the figure of all cells, `details`: of the first places, None: the map shows them."""

    def __init__(self, results: FleetResults):
        self.results = results
        places, grid = results.places, results.grid
        around = fleet_figures.windows(places)
        box = fleet_figures.extent(grid, places)
        density, self.map_note = map_above.read(results.run.map_file, box, *trajectory_figure.pixels(box), around)
        self.map = fleet_figures.places_map(grid, box, density, places)
        is_wide = box.width > NEAR * 2 * fleet_figures.AROUND_M
        self.details = fleet_figures.place_details(grid, places, around) if around and is_wide else None

    @property
    def drawings(self) -> "list[Drawing]":
        return [self.map, *([self.details] if self.details else [])]

    def html(self) -> str:
        places = self.results.places
        note = paragraph(f"The map is not drawn: {self.map_note}.", "sub") if self.map_note else ""
        parts = [note, paragraph(self._text()), figure(self.map), self._table(places[:MOST_PLACES]) if places else "",
                 figure(self.details) if self.details else "", self._unsure(), self._method()]
        return section("survey", "Where to survey again", *parts)

    def _text(self) -> str:
        places = self.results.places
        if not places:
            return "No place of the map is bad for several drives: nothing has to be surveyed again."
        more = f" The first {MOST_PLACES}:" if len(places) > MOST_PLACES else ""
        return f"{count(len(places), 'place')} where more drives were low than chance explains.{more}"

    def _table(self, places: "list[Place]") -> str:
        before = self.results.grid_before
        has_truth = any(one.error_count for one in places)
        header = ["place", "extent", "drives that were low", "low scans", "how", "worst drive"]
        header[4:4] = [*(["low before"] if before else []), *(["error of trusted poses"] if has_truth else [])]
        rows = []
        for number, one in enumerate(places, 1):
            size = one.high_m - one.low_m
            how = [f"{name} ({percent(times / max(one.low, 1))})" for name, times in one.outcomes.most_common(2) if name]
            how += [name for name, _ in one.reasons.most_common(2) if name]
            more = [percent(before.low_share(one.keys))] if before else []
            if has_truth:
                more.append(f"{length(one.error_sum_m / one.error_count)}, at most {length(one.error_max_m)}" if one.error_count else NONE)
            rows.append((f"{number} {coordinates(one)}", f"{size[0]:.0f}{NB}\N{MULTIPLICATION SIGN}{NB}{size[1]:.0f}{NB}m",
                         f"{one.bad} of {one.passed}", f"{percent(one.share)} of {thousands(one.scans)}", *more, "; ".join(how),
                         self._name(one)))
        return table(header, rows, "words")

    def _name(self, one: Place) -> str:
        return short(self.results.run.names[one.worst[1]], MOST_NAME)

    def _unsure(self) -> str:
        unsure = self.results.unsure
        if not unsure:
            return ""
        listed = f", the first {MOST_UNSURE}" if len(unsure) > MOST_UNSURE else ""
        rows = [(coordinates(one), f"{one.bad} of {one.passed}", f"{percent(one.share)} of {thousands(one.scans)}", self._name(one))
                for one in unsure[:MOST_UNSURE]]
        return html_parts.folded(
            f"{count(len(unsure), 'more place')} where drives were low, but so few passed that it may be chance{listed}: drive there again "
            "before surveying", table(("", "drives that were low", "low scans", "worst drive"), rows))

    def _method(self) -> str:
        results, grid = self.results, self.results.grid
        left_out = ""
        if grid.bad_drives and grid.leaves_out:
            is_one = grid.bad_drives == 1
            left_out = (f" {count(grid.bad_drives, 'drive')} that {'is' if is_one else 'are'} low at most places "
                        f"{'is' if is_one else 'are'} left out.")
        elif grid.bad_drives:
            left_out = " Half of all drives are low at most places: that is no matter of places."
        low = f"below the confidence of {results.run.min_confidence(results.name):g}"
        return paragraph(
            f"A scan is low without a trusted pose, {low}, or where its pose is wrong. Without a trusted pose it counts where the drive "
            f"was: between trusted poses at most {fleet_places.MOST_GAP_S:g} s apart, or at the last one if that is at most "
            f"{fleet_places.FRESH_S:g} s old; {count(grid.nowhere, 'low scan')} of others are nowhere. A cell is bad where "
            f"{percent(fleet_places.LOW_DRIVES)} of the drives that passed had {percent(fleet_places.LOW_SHARE)} of their scans low. Bad "
            "cells near each other are a place, and it is named when drives that are low as often as elsewhere would not be low there "
            "together (95 % sure for all places together). Where drives have no trusted pose for long, the place is where they had one last."
            f"{left_out}", "sub")


def coordinates(one: Place) -> str:
    """Coordinates of the middle of a place, in the map."""
    middle = (one.low_m + one.high_m) / 2
    return f"x{NB}{middle[0]:.0f} y{NB}{middle[1]:.0f} z{NB}{one.centre[2]:.0f}{NB}m".replace("-", "\N{MINUS SIGN}")
