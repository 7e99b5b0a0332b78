"""Scans that got worse most: their points on the map at the pose of either run."""
import numpy as np

from . import map_above, worst_scans
from .comparison import Comparison, Unit, with_unit
from .figures import escape
from .html_parts import pairs, paragraph, section
from .raster import AFTER_RGB, BEFORE_RGB, data_url
from .worst_scans import COLUMNS, ROWS, View


class Pictures:
    """Points and surroundings of some pairs. Fill the windows with map_above.read() before html()."""

    def __init__(self, found: Comparison):
        self.found, self.chosen = found, [at for at in found.regressions() if np.isfinite(self._centre(found, at)[0])]
        rows = [[int(row) for row in found.pairs[self.chosen, side]] for side in (0, 1)]
        self._points: "dict[int, np.ndarray]" = {}
        for run, side in ((found.second, rows[1]), (found.first, rows[0])):  # either has the points of the scan
            by_row = worst_scans.points_of(run, side)
            self._points.update({at: by_row[row] for at, row in zip(self.chosen, side) if row in by_row and at not in self._points})
        self.windows = {at: map_above.Window(self._centre(found, at), worst_scans.half_width(points) + 2.0)
                        for at, points in self._points.items()}

    @staticmethod
    def _centre(found: Comparison, at: int) -> np.ndarray:
        """(3,): where the first run is, else the second one, else the truth."""
        one, other = found.pairs[at]
        poses = (found.first.pose[one], found.second.pose[other], found.first.truth[one])
        return next((pose[:3] for pose in poses if np.isfinite(pose[0])), np.full(3, np.nan))

    def html(self, map_note: str) -> str:
        """The section of the page."""
        if not self.chosen:
            return section("regressions", "Scans that got worse", paragraph("No scan got worse."))
        by = "error against ground truth" if self.found.has_truth else "distance between the runs, as there is no ground truth"
        count = len(self.chosen)
        text = f"The {count} scans that changed most for the worse, by {by}." if count > 1 else f"The only one, by {by}."
        note = "" if self._points else paragraph("No pictures: neither folder has the points of these scans (points.bag).", "sub")
        note += paragraph(f"No pictures: {map_note}.", "sub") if map_note and self._points else ""
        return section("regressions", "Scans that got worse", paragraph(text), note,
                       *(self._card(number, at, not map_note) for number, at in enumerate(self.chosen, 1)))

    def _card(self, number: int, at: int, has_map: bool) -> str:
        found, (one, _) = self.found, self.found.pairs[at]
        title = f"Scan {found.first.seq[one]} at {found.time_s[at]:.1f} s"
        if np.isfinite(found.second_error_m[at]) and np.isfinite(found.first_error_m[at]):
            errors = float(found.first_error_m[at]), float(found.second_error_m[at])
            unit = Unit.of("m", *errors)
            title += f": {unit.number(errors[0])} \N{RIGHTWARDS ARROW} {unit.text(errors[1])} off"
        elif np.isfinite(found.distance_m[at]):
            title += f": {with_unit(found.distance_m[at], 'm')} apart"
        views = self._views(at) if has_map and at in self._points else ""
        return (f'<div class="worst" id="regression-{number}"><h3><i>{number}</i>{escape(title)}</h3>{self._facts(at)}'
                + (f'<div class="views">{views}</div>' if views else "") + "</div>")

    def _facts(self, at: int) -> str:
        found, rows = self.found, self.found.pairs[at]
        out = []
        for name, run, row, error in zip(found.names, (found.first, found.second), rows, (found.first_error_deg, found.second_error_deg)):
            parts = [str(run.outcome[row]), str(run.state[row])]
            parts += [f"{with_unit(error[at], 'deg')} off"] if np.isfinite(error[at]) else []
            parts += [f"confidence {run.values['confidence'][row]:.3g}"] if np.isfinite(run.values["confidence"][row]) else []
            parts += [f"{run.values['iterations'][row]:.0f} iterations"] if np.isfinite(run.values["iterations"][row]) else []
            out.append((name, ", ".join(part for part in parts if part)))
        if np.isfinite(found.distance_m[at]):
            out.append(("apart", f"{with_unit(found.distance_m[at], 'm')}, {with_unit(found.distance_deg[at], 'deg')}"))
        return f'<div class="facts">{pairs(out)}</div>'

    def _views(self, at: int) -> str:
        found, window = self.found, self.windows[at]
        one, other = found.pairs[at]
        names = ("second", "first")  # the first run has the colour of results, also in the figures
        views = worst_scans.views_of(self._points[at], window.points, window.centre, found.second.pose[other], found.first.pose[one], names)
        views.sort(key=lambda view: (view.label.endswith("detail"), not view.is_after))
        return "".join(_view(view, found.names[0 if view.is_after else 1], int(found.first.seq[one])) for view in views)


def _view(view: View, name: str, seq: int) -> str:
    label = name + (", detail" if view.label.endswith("detail") else "")
    rgb = "rgb({},{},{})".format(*(AFTER_RGB if view.is_after else BEFORE_RGB))
    return (f'<figure class="view"><div><img alt="Scan {seq} on the map at the pose of {escape(label)}" src="{data_url(view.png)}" '
            f'width="{COLUMNS}" height="{ROWS}"></div><figcaption><b><i class="dot" style="background:{rgb}"></i>{escape(label)}</b>'
            f"<span>{view.box.width:.0f} m wide</span></figcaption></figure>")
