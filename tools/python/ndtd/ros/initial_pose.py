"""A pose that somebody gives, from RViz or from a client of the service: checked, and searched around by ndtd."""
import threading
import time
from typing import Any, Optional

import numpy as np

from ..recordings import messages as m
from . import link, to_ndtd

DEVIATION = (2.0, 2.0, 5.0, 0.1, 0.1, 0.3)  # m, rad: where RViz leaves zeros
SEARCH_S = 30.0


def check(pose: m.Pose, map_frame: str) -> None:
    """to_ndtd.Refused: it is in another frame, or no pose."""
    frame = pose.frame_id.lstrip("/")
    if frame != map_frame:
        raise to_ndtd.Refused(f"a pose in the frame '{frame[:64]}'; ndtd wants '{map_frame}' (in RViz: Fixed Frame)")
    if not np.isfinite(pose.pose).all() or abs(np.linalg.norm(pose.pose[3:]) - 1) > 0.01:
        raise to_ndtd.Refused("a pose that is not finite, or whose quaternion has not the length 1")


def filled_covariance(covariance: Optional[np.ndarray]) -> np.ndarray:
    """RViz tells x, y and yaw; a variance of zero stands for unknown."""
    filled = np.zeros((6, 6)) if covariance is None else np.array(covariance, np.float64).reshape(6, 6)
    for axis, deviation in enumerate(DEVIATION):
        if not filled[axis, axis] > 0:
            filled[axis, :] = filled[:, axis] = 0.0
            filled[axis, axis] = deviation * deviation
    return filled


def search(control: link.Control, pose: m.Pose, stop: threading.Event) -> dict[str, Any]:
    """The answer of ndtd to `localize` around a pose, at its end (proto/SCHEMA.md); an accepted pose is that of ndtd then.

    link.NoAnswer: ndtd does not answer or refuses; a search that runs on is cancelled, so that its pose is not used later."""
    found = control.request("localize", apply=True, pose=pose.pose, covariance=filled_covariance(pose.covariance))["search"]
    number, end_s = found["search_id"], time.monotonic() + SEARCH_S
    try:
        while found["running"] and found["search_id"] == number:
            if stop.is_set():
                raise link.NoAnswer("the bridge is stopped")
            if time.monotonic() > end_s:
                raise link.NoAnswer(f"the search did not end within {SEARCH_S:g} s: do scans come?")
            time.sleep(0.05)
            found = control.request("search")["search"]
    except link.NoAnswer:
        _cancel(control)
        raise
    if found["search_id"] != number:
        raise link.NoAnswer("another search has taken the place of this one")
    return found


def _cancel(control: link.Control) -> None:
    try:
        control.request("cancel_search")
    except link.NoAnswer:
        pass  # it is away: nothing runs there


def text(found: dict[str, Any]) -> str:
    """The outcome of a search in one line."""
    if not found.get("accepted"):
        return f"not accepted: {found.get('reason') or 'no place fits'}"
    x, y, z, qx, qy, qz, qw = found["pose"]
    yaw = np.degrees(np.arctan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy ** 2 + qz ** 2)))
    return f"found, x {x:.2f} y {y:.2f} z {z:.2f} m yaw {yaw:.1f} deg, confidence {found['confidence']:.3f}"
