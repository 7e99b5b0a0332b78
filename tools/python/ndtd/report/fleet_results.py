"""Results in the report of a fleet's run: totals, places, configurations against the first one, all of it against another run."""
from typing import Any, Optional

import numpy as np

from ..fleet.run_folder import FleetError
from . import fleet_comparison, fleet_places, fleet_totals
from .comparison import MARGIN_DEG, MARGIN_M
from .fleet_comparison import FleetComparison, Side
from .fleet_places import Grid, Place, Survey
from .fleet_reading import FleetRun
from .fleet_totals import Low, Totals

MOST_NAMED = 10  # configurations in a message


class FleetResults:
    """run: the tables; name: the configuration that is shown; main: its sums; grid, places, unsure (they may be chance): where it is low.

    sweep: its other configurations, each against the first one; against: the run against another one, for each configuration of
    both; found: the one of these that is shown (None: there is no other run); grid_before: the cells of the other run."""

    def __init__(self, run: Any, against: Any = None, configuration: "Optional[str]" = None, margin_m: float = MARGIN_M,
                 margin_deg: float = MARGIN_DEG):
        self.run = FleetRun(run)
        self.name = _chosen(self.run, configuration)
        self.totals, self.grid = _read(self.run, self.name)
        self.configured = [fleet_totals.configured(self.run, self.totals, name) for name in self.run.configurations]
        self.main = next(one for one in self.configured if one.name == self.name)
        self.places, self.unsure = _places(self.run, self.name, self.grid)
        sides = [Side(self.run, self.totals, name, name) for name in self.run.configurations]
        self.sweep = fleet_comparison.compare([(sides[0], side) for side in sides[1:]], margin_m, margin_deg)
        self.against: "list[FleetComparison]" = []
        self.grid_before: "Optional[Grid]" = None
        if against is not None:
            self._compare(FleetRun(against), configuration, margin_m, margin_deg)

    def _compare(self, other: FleetRun, configuration: "Optional[str]", margin_m: float, margin_deg: float) -> None:
        run = self.run
        names = [one.name if run.name != other.name else str(one.folder) for one in (other, run)]
        pairs = _pairs(run, other, configuration)
        shown = next((one for one, two in pairs if two == self.name), pairs[0][0])
        totals, self.grid_before = _read(other, shown, self.grid.edge_m)
        self.against = fleet_comparison.compare([(Side(other, totals, one, names[0]), Side(run, self.totals, two, names[1]))
                                                 for one, two in pairs], margin_m, margin_deg)

    @property
    def found(self) -> "Optional[FleetComparison]":
        """The comparison that is worse; else that of the shown configuration."""
        order = sorted(self.against, key=lambda one: (not one.is_worse, one.second.configuration != self.name))
        return order[0] if order else None

    @property
    def is_worse(self) -> bool:
        """Whether it is worse than the run it is compared with."""
        return any(one.is_worse for one in self.against)

    @property
    def damaged(self) -> "list[int]":
        """Rows of drives that were used up to a damage."""
        return [int(row) for row in self.main.rows if self.run.texts["damage"][row]]


def _chosen(run: FleetRun, configuration: "Optional[str]") -> str:
    if configuration is None:
        return run.configurations[0]
    if configuration not in run.configurations:
        raise FleetError(f"{run.folder}: has no configuration {configuration!r}, but {_some(run)}")
    return configuration


def _some(run: FleetRun) -> str:
    more = len(run.configurations) - MOST_NAMED
    return ", ".join(run.configurations[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _pairs(run: FleetRun, other: FleetRun, configuration: "Optional[str]") -> "list[tuple[str, str]]":
    """Configurations of the other run and of this one that belong together: by name, or the only ones."""
    wanted = [configuration] if configuration else run.configurations
    out = [(name, name) for name in wanted if name in other.configurations]
    if not out and len(wanted) == len(other.configurations) == 1:
        out = [(other.configurations[0], wanted[0])]
    if not out:
        raise FleetError(f"{run.folder} and {other.folder} have no configuration in common: --configuration chooses one of {_some(run)}")
    return out


def _read(run: FleetRun, places_of: str, edge_m: "Optional[float]" = None) -> "tuple[Totals, Grid]":
    """One reading of the scan table: totals of all drives, and cells of a configuration; edge_m: of a cell, None: by the extent."""
    totals, grid = Totals.of(run), Grid(edge_m or fleet_places.cell_edge_m(run, places_of))
    limits = {name: run.min_confidence(name) for name in run.configurations}
    for block in run.blocks(fleet_totals.COLUMNS + fleet_places.COLUMNS):
        configs = run.texts["config"][block.drives]
        for name in set(configs.tolist()) & set(limits):
            mine = block.of(configs == name)
            low = Low(run, mine, limits[name])
            totals.add(run, mine, low)
            if name == places_of:
                grid.add(mine, fleet_places.positions(mine, low.wrong), low)
    grid.merge()
    return totals, grid


def _places(run: FleetRun, name: str, grid: Grid) -> "tuple[list[Place], list[Place]]":
    """Places to survey again, and those that may be chance: a second reading, if there is a bad cell."""
    found, candidates = fleet_places.groups(grid)
    if found:
        survey, limit = Survey(run, grid, found), run.min_confidence(name)
        for block in run.blocks((*fleet_totals.COLUMNS, *fleet_places.COLUMNS, "reason")):
            is_mine = np.asarray(run.texts["config"][block.drives] == name)
            if is_mine.any():
                mine = block.of(is_mine)
                low = Low(run, mine, limit)
                survey.add(mine, fleet_places.positions(mine, low.wrong), low)
    return fleet_places.rank(grid, found, candidates)
