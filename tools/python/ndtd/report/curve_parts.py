"""Parts that figures of comparisons and of ndt-bench share."""
from typing import Any, Optional

import numpy as np

from . import figures
from .figures import Drawing


def margins(drawing: Drawing, left_in: Optional[float] = None, bottom_in: Optional[float] = None, top_in: Optional[float] = None) -> None:
    """Other margins than those of all figures; what is added above or below makes the figure higher."""
    figure, grid = drawing.figure, drawing.axes[-1].get_gridspec()
    height = float(figure.get_size_inches()[1])
    below, above = grid.bottom * height, (1 - grid.top) * height
    bottom_in, top_in = below if bottom_in is None else bottom_in, above if top_in is None else top_in
    higher = height + bottom_in - below + top_in - above
    figure.set_size_inches(figures.WIDTH_IN, higher)
    grid.left = grid.left if left_in is None else left_in / figures.WIDTH_IN
    grid.bottom, grid.top = bottom_in / higher, 1 - top_in / higher
    for axes in figure.axes:
        axes.set_subplotspec(axes.get_subplotspec())  # which moves it


def factor_axis(axes: Any, values: np.ndarray) -> None:
    """A logarithmic x axis around 1."""
    reach = 1.1 * max(1.5, float(values.max()), 1 / max(float(values.min()), 1e-6))
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100) if reach < 4 else (
        0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)
    ticks = [value for value in steps if 1 / reach <= value <= reach]
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axes.minorticks_off()
