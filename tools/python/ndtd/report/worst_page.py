"""The section of the page about the worst scans: numbers, and the pictures with the poses drawn over them."""
import math
from typing import Any

import numpy as np

from .error_figures import DEG
from .figures import escape
from .html_parts import paragraph, pairs, section, table
from .pose_errors import rotate
from .raster import AFTER_RGB, BEFORE_RGB, data_url
from .run import Run
from .time_figures import total_ms
from .verdict import length, milliseconds
from .worst_scans import APART_S, View, Worst, centre_of

VEHICLE_M = 4.5
STEPS = (("iteration", "iteration", 0), ("level", "level", 0), ("score", "score", 5), ("step_m", "step [m]", 3),
         ("step_rad", "step [rad]", 3), ("matched", "matched points", 0), ("eval_us", "evaluation [us]", 3))


def section_of(run: Run, worst: "list[Worst]", chosen_by: str) -> str:
    """Section of the worst scans: by what they were chosen, then one card each."""
    if not worst:
        return section("worst", "Worst scans", paragraph("No scan has a pose."))
    head = paragraph(f"By {chosen_by}; at least {APART_S:g} s apart. Each picture shows the map from above in grey and the points of "
                     "the scan on it: at the guess, where the alignment began, and at the result. Details show a place with walls in both "
                     "directions, without the ground.")
    iterations = run.iterations_of([one.row for one in worst])
    total = total_ms(run)
    return section("worst", "Worst scans", head,
                   *(_card(run, number, one, iterations[one.row], float(total[one.row])) for number, one in enumerate(worst, 1)))


def _card(run: Run, number: int, one: Worst, steps: "list[dict[str, str]]", time_ms: float) -> str:
    row, values = one.row, run.values
    title = f"Scan {run.seq[row]} at {run.time_s[row]:.1f} s"
    if math.isfinite(one.error_m):
        title += f": {length(one.error_m)} and {one.error_rad * DEG:.2g}\N{DEGREE SIGN} off"
    facts = [("outcome", run.outcome[row]), ("state", run.state[row]),
             ("error of the guess", _error(one.guess_error_m, one.guess_error_rad)), ("from guess to result", _moved(run, row)),
             ("confidence", _number(values["confidence"][row], 4)),
             ("innovation", _number(values["innovation"][row], 3, " sigma")), ("iterations", _number(values["iterations"][row], 3)),
             ("hypotheses", _number(values["hypotheses"][row], 3)), ("matched", _percent(values["match_ratio"][row])),
             ("NVTL", _number(values["nvtl_normalized"][row], 3)), ("time", milliseconds(time_ms)), ("reason", run.reason[row])]
    shown = pairs((name, value) for name, value in facts if value)
    drawn = "".join(_view(run, row, view) for view in one.views)
    views = f'<div class="views">{drawn}</div>' if drawn else paragraph(one.why_none, "sub")
    return (f'<div class="worst" id="worst-{number}"><h3><i>{number}</i>{escape(title)}</h3><div class="facts">{shown}</div>'
            f"{views}{_steps(steps)}</div>")


def _steps(steps: "list[dict[str, str]]") -> str:
    if not steps:
        return ""
    rows = [[_cell(step.get(key, ""), digits) for key, _, digits in STEPS] for step in steps]
    return f"<details><summary>Newton iterations</summary>{table([label for _, label, _ in STEPS], rows)}</details>"


def _cell(text: str, digits: int) -> str:
    try:
        return f"{float(text):.{digits}g}" if digits else text
    except ValueError:
        return text


def _number(value: float, digits: int, unit: str = "") -> str:
    return f"{value:.{digits}g}{unit}" if np.isfinite(value) else ""


def _percent(value: float) -> str:
    return f"{100 * value:.3g}\N{NO-BREAK SPACE}%" if np.isfinite(value) else ""


def _error(error_m: float, error_rad: float) -> str:
    return f"{length(error_m)}, {error_rad * DEG:.2g}\N{DEGREE SIGN}" if math.isfinite(error_m) else ""


def _moved(run: Run, row: int) -> str:
    a, b = run.guess[row], run.pose[row]
    if not (np.isfinite(a[0]) and np.isfinite(b[0])):
        return ""
    angle = 2 * math.acos(min(1.0, abs(float(a[3:] @ b[3:])))) * DEG
    return f"{length(float(np.linalg.norm(b[:3] - a[:3])))}, {angle:.2g}\N{DEGREE SIGN}"


def _view(run: Run, row: int, view: View) -> str:
    pose = run.pose[row] if view.is_after else run.guess[row]
    rgb = "rgb({},{},{})".format(*(AFTER_RGB if view.is_after else BEFORE_RGB))
    box, height = view.box, view.box.height
    drawn = []
    if np.isfinite(run.truth[row, 0]):
        drawn.append(_vehicle(run, row, run.truth[row], box, "none", "var(--ink)"))
    drawn.append(_vehicle(run, row, pose, box, rgb, "var(--picture)"))
    bar = _bar_length(box.width)
    x, y, stroke = box.width * 0.04, height * 0.94, box.width / 260
    drawn.append(f'<path d="M{x:.2f} {y - 2 * stroke:.2f}V{y:.2f}H{x + bar:.2f}V{y - 2 * stroke:.2f}" fill="none" stroke="var(--ink)" '
                 f'stroke-width="{2 * stroke:.3f}"/>')
    alt = f"Scan {run.seq[row]} on the map at its {view.label}"
    return (f'<figure class="view"><div><img alt="{escape(alt)}" src="{data_url(view.png)}" width="520" height="390">'
            f'<svg viewBox="0 0 {box.width:.2f} {height:.2f}" aria-hidden="true">{"".join(drawn)}</svg></div>'
            f'<figcaption><b><i class="dot" style="background:{rgb}"></i>{escape(view.label)}</b><span>bar {bar:g} m</span>'
            "</figcaption></figure>")


def _bar_length(width_m: float) -> float:
    return max(one for one in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if one <= width_m / 4)


def _vehicle(run: Run, row: int, pose: np.ndarray, box: Any, fill: str, stroke: str) -> str:
    """An arrowhead at a pose; nothing where it is outside."""
    if not np.isfinite(pose[0]):
        return ""
    at = pose[:2] - centre_of(run, row)[:2]
    if not (box.x <= at[0] <= box.x + box.width and box.y <= at[1] <= box.y + box.height):
        return ""
    shape = np.array([[0.6, 0.0, 0.0], [-0.4, 0.33, 0.0], [-0.22, 0.0, 0.0], [-0.4, -0.33, 0.0]]) * min(VEHICLE_M, box.width * 0.13)
    corners = rotate(np.tile(pose[3:], (len(shape), 1)), shape)[:, :2] + at
    path = "L".join(f"{x - box.x:.2f} {box.y + box.height - y:.2f}" for x, y in corners)
    return f'<path d="M{path}Z" fill="{fill}" stroke="{stroke}" stroke-width="{box.width / 220:.3f}"/>'
