"""Figures of a replay with ground truth: APE over time and way, RPE over distances, errors per axis over sigma. Without: sigmas."""
from typing import Any

import numpy as np

from . import figures, plot_parts
from .figures import BLUE, GREEN, GREY, INK, MUTED, ORANGE, SKY, VERMILION, Drawing
from .pose_errors import AXES, INSIDE, RPE_DISTANCES_M, Absolute, Relative, absolute, relative, share_inside
from .run import Run

DEG = 180.0 / np.pi


class Errors:
    """Errors of the trusted poses that have ground truth; rows of the run outside are NaN.

    translation_m, rotation_rad (N,), per_axis, sigma (N, 6), nees (N,), compared (N,) bool, relative: one per RPE_DISTANCES_M."""

    def __init__(self, run: Run):
        self.compared = run.is_compared
        at = np.flatnonzero(self.compared)
        found: Absolute = absolute(run.pose[at], run.truth[at], run.covariance[at])

        def spread(values: np.ndarray) -> np.ndarray:
            out = np.full((len(run), *values.shape[1:]), np.nan)
            out[at] = values
            return out

        self.translation_m, self.rotation_rad = spread(found.translation_m), spread(found.rotation_rad)
        self.per_axis, self.sigma, self.nees = spread(found.per_axis), spread(found.sigma), spread(found.nees)
        self.relative: "list[Relative]" = [relative(run.pose[at], run.truth[at], float(d)) for d in RPE_DISTANCES_M]


def ape(run: Run, errors: Errors) -> Drawing:
    """Translation and rotation over time, and over the way."""
    one = figures.new("ape", "Absolute pose error (APE) over time and over the distance travelled", rows=2, columns=2, height_in=3.3,
                      share_y=True)
    factor, unit = plot_parts.length_unit(errors.translation_m)
    rows = ((errors.translation_m * factor, f"translation [{unit}]"), (errors.rotation_rad * DEG, "rotation [deg]"))
    for row, (values, label) in enumerate(rows):
        for column, axis in enumerate((plot_parts.time_axis(run), plot_parts.distance_axis(run))):
            ax = one.axes[2 * row + column]
            plot_parts.shade_untrusted([ax], run, axis)
            plot_parts.line(ax, axis, values, BLUE, linewidth=0.9)
            _quantile_lines(ax, values)
            plot_parts.span_x([ax], axis)
            if row == 1:
                ax.set_xlabel(axis.label)
        one.axes[2 * row].set_ylabel(label)
        plot_parts.from_zero(one.axes[2 * row], values)
    one.caption = ("APE of the trusted poses against ground truth in the frame of the map, without alignment; dashed: median and 95 % "
                   "quantile." + (" Red: no trusted pose." if (~run.trusted).any() else ""))
    return one


def _quantile_lines(ax: Any, values: np.ndarray) -> None:
    finite = values[np.isfinite(values)]
    if len(finite) >= 5:
        for level, style in ((50, (0, (5, 2))), (95, (0, (2, 2)))):
            ax.axhline(np.percentile(finite, level), color=MUTED, linewidth=0.8, linestyle=style)


def rpe(errors: Errors) -> Drawing:
    """Boxes per distance."""
    one = figures.new("rpe", "Relative pose error (RPE) over distances", columns=2, height_in=2.5, share_x=False)
    labels = [f"{d} m" for d in RPE_DISTANCES_M]
    plot_parts.boxes(one.axes[0], [r.translation_m / r.distance_m * 100.0 for r in errors.relative], labels, BLUE)
    plot_parts.boxes(one.axes[1], [r.rotation_rad * DEG / r.distance_m * 100.0 for r in errors.relative], labels, GREEN)
    one.axes[0].set_ylabel("translation [% of distance]")
    one.axes[1].set_ylabel("rotation [deg per 100 m]")
    for ax in one.axes:
        ax.set_xlabel("distance along the truth")
    one.caption = ("RPE of all pairs of poses that far apart. Box: quartiles with the median, line: 5 % to 95 %, dot: largest.")
    return one


def per_axis(run: Run, errors: Errors) -> Drawing:
    """Errors in the base frame within their bands of 1, 2 and 3 sigma."""
    one = figures.new("axes", "Errors per axis with the sigma that ndtd reports", rows=3, columns=2, height_in=4.4,
                      column_gap_in=0.85)
    axis = plot_parts.time_axis(run)
    factor, unit = plot_parts.length_unit(errors.per_axis[:, :3])
    for at, name in enumerate(AXES):
        ax = one.axes[2 * (at % 3) + at // 3]
        scale = factor if at < 3 else DEG
        error, sigma = errors.per_axis[:, at] * scale, errors.sigma[:, at] * scale
        _sigma_bands(ax, axis, sigma)
        outside = np.abs(error) > 3 * sigma
        plot_parts.line(ax, axis, error, BLUE, linewidth=0.8)
        limit = _limit(error, sigma)
        if outside.any():
            ax.plot(axis.x[outside], np.clip(error[outside], -limit * 0.97, limit * 0.97), "o", color=VERMILION, markersize=2.5)
        ax.axhline(0, color=MUTED, linewidth=0.6)
        ax.set_ylim(-limit, limit)
        ax.set_ylabel(f"{name} [{unit if at < 3 else 'deg'}]")
        shares = [share_inside(error, sigma, k) * 100 for k in INSIDE]
        if np.isfinite(shares).all():
            text = "inside 1, 2, 3 sigma: " + ", ".join(f"{share:.3g}" for share in shares) + " %"
            ax.text(0.995, 0.97, text, transform=ax.transAxes, ha="right", va="top", fontsize=7, color=INK)
        plot_parts.span_x([ax], axis)
        if at % 3 == 2:
            ax.set_xlabel(axis.label)
    one.caption = ("Estimate minus truth in the axes of the vehicle; bands: one, two and three sigma of the reported covariance; "
                   "red: outside three sigma. Of a normal distribution 68.3, 95.4 and 99.7 % are inside.")
    return one


def _limit(error: np.ndarray, sigma: np.ndarray) -> float:
    """Upper limit of the y axis: all errors, unless a few hide the rest."""
    known = np.concatenate([np.abs(error), 3.3 * sigma])
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return 1.0
    usual = float(np.percentile(known, 98))
    return max(min(1.25 * float(known.max()), 3.0 * usual), 1e-9)


def _sigma_bands(ax: Any, axis: plot_parts.Axis, sigma: np.ndarray) -> None:
    x = axis.x
    if len(axis.gaps):
        x, sigma = np.insert(x, axis.gaps, x[axis.gaps]), np.insert(sigma, axis.gaps, np.nan)
    x, sigma = figures.decimate(x, sigma, 360)
    for k, alpha in ((3, 0.16), (2, 0.20), (1, 0.30)):
        ax.fill_between(x, -k * sigma, k * sigma, color=SKY, alpha=alpha, linewidth=0)


def consistency(errors: Errors) -> Drawing:
    """Shares within k sigma per axis, and the distribution of errors over sigma."""
    one = figures.new("consistency", "Is the reported covariance right?", columns=2, height_in=2.5, share_x=False)
    left, right = one.axes
    colours = (BLUE, ORANGE, GREY)
    for at, (k, nominal) in enumerate(INSIDE.items()):
        shares = np.array([share_inside(errors.per_axis[:, a], errors.sigma[:, a], k) * 100 for a in range(6)])
        places = np.arange(6) + 0.27 * (at - 1)
        left.bar(places, np.nan_to_num(shares), 0.24, color=colours[at], label=f"{k} sigma")
        left.hlines([nominal * 100] * 6, places - 0.13, places + 0.13, color=INK, linewidth=1.2)
    left.set_xticks(range(6), AXES)
    left.set_ylim(0, 112)
    left.set_yticks([0, 25, 50, 75, 100])
    left.set_ylabel("errors inside [%]")
    left.grid(False, axis="x")
    left.legend(loc="upper right", ncol=3, columnspacing=1.2, handlelength=1.0)
    _normalised(right, errors)
    one.caption = "Left: share of the errors within one, two and three sigma; lines: of a normal distribution. Right: errors over sigma."
    return one


def _normalised(ax: Any, errors: Errors) -> None:
    edges = np.linspace(-5, 5, 41)
    middle = 0.5 * (edges[:-1] + edges[1:])
    for columns, color, label in ((slice(0, 3), BLUE, "translation"), (slice(3, 6), GREEN, "rotation")):
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = (errors.per_axis[:, columns] / errors.sigma[:, columns]).ravel()
        ratio = ratio[np.isfinite(ratio)]
        if len(ratio):
            count = np.histogram(np.clip(ratio, -4.99, 4.99), edges)[0] / (len(ratio) * 0.25)
            ax.step(middle, count, where="mid", color=color, label=label)
    ax.plot(middle, np.exp(-middle**2 / 2) / np.sqrt(2 * np.pi), color=INK, linewidth=1, linestyle=(0, (4, 2)), label="normal")
    ax.set_xlabel("error / sigma")
    ax.set_ylabel("density")
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper right")


def sigmas(run: Run) -> Drawing:
    """Draws, without ground truth, the deviations from the covariance along the axes of the vehicle, and the innovation."""
    one = figures.new("uncertainty", "Reported uncertainty and innovation", rows=3, height_in=4.2, gap_in=0.3, top_in=0.3)
    axis = plot_parts.time_axis(run)
    shown = np.flatnonzero(run.trusted if run.trusted.any() else np.isfinite(run.pose[:, 0]))
    deviation = np.full((len(run), 6), np.nan)
    if len(shown):
        deviation[shown] = absolute(run.pose[shown], run.pose[shown], run.covariance[shown]).sigma
    factor, unit = plot_parts.length_unit(deviation[:, :3])
    for row, (columns, scale, label) in enumerate(((range(3), factor, f"sigma [{unit}]"), (range(3, 6), DEG, "sigma [deg]"))):
        ax = one.axes[row]
        for column, color in zip(columns, (BLUE, ORANGE, GREEN)):
            plot_parts.line(ax, axis, deviation[:, column] * scale, color, AXES[column], linewidth=0.9)
        plot_parts.from_zero(ax, deviation[:, columns].ravel() * scale)
        ax.set_ylabel(label)
        plot_parts.legend(ax)
    plot_parts.line(one.axes[2], axis, run.values["innovation"], BLUE, linewidth=0.9)
    one.axes[2].axhline(4.7, color=VERMILION, linewidth=0.9, linestyle=(0, (4, 2)))
    one.axes[2].set_ylabel("innovation [sigma]")
    one.axes[2].set_ylim(0, max(5.2, 1.1 * float(np.nanmax(run.values["innovation"], initial=0.0))))
    one.axes[2].set_xlabel(axis.label)
    plot_parts.shade_untrusted(one.axes, run, axis)
    plot_parts.span_x(one.axes, axis)
    whose = "trusted poses" if run.trusted.any() else "poses, none of which is trusted,"
    one.caption = (f"Standard deviations of the {whose} in the axes of the vehicle, and the distance of each alignment from its "
                   "prediction; 4.7 sigma (dashed) is exceeded by 1 in 1000 where the covariances are right.")
    return one


