"""Report of an import: its summary, and options of ndtd that follow from the recording."""
from dataclasses import asdict
from pathlib import Path
from typing import Any, List

from .convert import Report
from .sensor_frames import Frames

CLOCK_GAP_S = 5.0
SETTINGS_HEAD = "# What the recording tells ndtd: ndtd -c FILE\n"


def amount(number: float) -> str:
    """1234567 as 1.2 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} "


def settings(recording: Any, frames: Frames, report: Report) -> List[str]:
    """Options of ndtd that follow from the recording, as lines of YAML; where sensors are is in the bag itself."""
    lines = []
    known = [(name, T) for name, T in ((name, frames.of(name)) for name in report.sensors) if T is not None]
    if len(report.sensors) > 1 and len(known) == len(report.sensors):
        rows = [" ".join([name] + [repr(float(x)) for x in T.reshape(-1)]) for name, T in known]
        lines += ["frames:", "  merge_sensors: true", "  sensors:"] + [f"    - {row}" for row in rows]
    if report.timed_scans and report.timed_scans == report.taken.get("scan"):
        lines += ["preprocess:", "  deskew: time"]
    elif hasattr(recording, "settings"):
        lines += ["preprocess:"] + [f"  {key}: {value}" for key, value in recording.settings["preprocess"].items()]
    return lines


def write_settings(path: Path, lines: List[str]) -> bool:
    """Whether there are settings in `path` now; a file that is not of an import stays as it is."""
    if path.exists() and not path.read_text(errors="replace").startswith(SETTINGS_HEAD):
        return False
    if lines:
        path.write_text(SETTINGS_HEAD + "\n".join(lines) + "\n")
    else:
        path.unlink(missing_ok=True)
    return bool(lines)


def _notes(recording, frames, report) -> List[str]:
    notes = list(getattr(recording, "notes", [])) + frames.notes
    for topic in recording.topics:
        if topic.kind == "scan":
            notes += sorted(getattr(topic.state, "notes", ()))
        times = topic.state if hasattr(topic.state, "places") else None
        if times is not None and topic.kind == "scan":
            if times.strays:
                notes.append(f"{topic.name}: {times.strays} points have no time, or one far outside the sweep of their scan: ndtd leaves them out")
            if times.places:
                place = max(times.places, key=times.places.get)
                what = f"{place} of the sweep" if place in ("begin", "middle", "end") else f"{place} it"
                notes.append(f"{topic.name}: points have times; the stamp is at the {what}")
    for name in report.sensors:
        if frames.of(name) is not None:
            x, y, z = frames.of(name)[:3, 3]
            notes.append(f"{name} is at {x:.3f} {y:.3f} {z:.3f} m on {frames.base}: transform in the bag")
    unknown = [name for name in report.sensors if frames.of(name) is None]
    if unknown:
        notes.append(f"the recording does not tell where {', '.join(unknown)} is on the vehicle: frames.T_base_sensor of ndtd")
    if report.rotated:
        notes.append(f"odometry and poses of {', '.join(report.rotated)} are written as those of {frames.base}")
    notes += _other_clocks(report.spans)
    notes += [f"every other scan of {name} looks elsewhere: two sensors in one topic whose frame_id does not tell which, or half turns; "
              "ndtd takes them for one" for name in report.mixed]
    if report.steps_back:
        notes.append(f"{report.steps_back} scans are not later than the scan before them")
    return notes


def _other_clocks(spans):
    """Kinds whose stamps are all before, or all after, those of the scans; an initial pose may be."""
    begin_ns, end_ns = spans.get("scan", (0, 0))
    for kind, (first_ns, last_ns) in spans.items():
        gap_s, where = max(((begin_ns - last_ns) * 1e-9, "before"), ((first_ns - end_ns) * 1e-9, "after"))
        if gap_s > CLOCK_GAP_S and kind != "pose":
            yield f"{kind}: its stamps are {gap_s:.0f} s or more {where} those of the scans: another clock, of no use to ndtd"


def summary(recording: Any, frames: Frames, report: Report, took_s: float) -> dict:
    """All that --json prints."""
    untouched = [{"topic": t.name, "type": t.type, "count": t.count, "why": t.why} for t in recording.topics if t.kind is None]
    return {"recording": recording.name, "duration_s": recording.duration_s, "took_s": took_s,
            **asdict(report), "base_frame": frames.base, "topics_left": untouched, "notes": _notes(recording, frames, report),
            "topics": [{"topic": t.name, "type": t.type, "count": t.count, "kind": t.kind} for t in recording.topics if t.kind]}


def text_of(told: dict) -> str:
    """A summary in lines."""
    taken, took_s = told["taken"], max(told["took_s"], 1e-9)
    lines = ["taken: " + ", ".join(f"{count} {kind}" for kind, count in sorted(taken.items())) +
             f"; {amount(told['points'])}points, {amount(told['empty_points'])}without a return"]
    for key, count in sorted(told["left"].items()):
        lines.append(f"left:  {count} {key}")
    for topic in told["topics_left"]:
        lines.append(f"left:  {topic['count']} of {topic['topic']} ({topic['type']}): {topic['why']}")
    lines += [f"note:  {note}" for note in told["notes"]]
    lines.append(f"took:  {took_s:.1f} s, {taken.get('scan', 0) / took_s:.0f} scans/s, {amount(told['points'] / took_s)}points/s, "
                 f"{amount(told['read_bytes'] / took_s)}B/s")
    return "\n".join(lines)
