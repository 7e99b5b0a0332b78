"""Results of ndtd to messages of ROS."""
from typing import Any, Optional

import numpy as np

from . import msgtypes

TRUSTED_STATES = ("tracking", "coasting", "extending", None)  # None: a daemon that does not tell
OK, WARN, ERROR, STALE = range(4)
SHOWN = ("seq", "state", "outcome", "reason", "confidence", "transform_probability", "nvtl", "match_ratio", "iterations",
         "innovation", "align_us", "preprocess_us", "queue_us", "map_id")  # in diagnostics


def is_trusted(result: dict[str, Any]) -> bool:
    """Whether a vehicle may use the pose (docs/operations.md, states)."""
    return "pose" in result and result.get("state") in TRUSTED_STATES


class Messages:
    """Builds messages; stamps in ns, poses x y z qx qy qz qw."""

    def __init__(self, types: Any) -> None:
        """types: classes by the names of messages, such as transport.Types."""
        self._types = types
        self._unknown = np.zeros(36)

    def _make(self, type_name: str, /, **fields: Any) -> Any:
        return self._types[type_name](**fields)

    def time(self, stamp_ns: int) -> Any:
        return self._make("builtin_interfaces/msg/Time", sec=stamp_ns // 1_000_000_000, nanosec=stamp_ns % 1_000_000_000)

    def header(self, stamp_ns: int, frame_id: str) -> Any:
        return self._make("std_msgs/msg/Header", stamp=self.time(stamp_ns), frame_id=frame_id)

    def _vector(self, name: str, values: Any) -> Any:
        return self._make(f"geometry_msgs/msg/{name}", **dict(zip("xyzw", (float(value) for value in values))))

    def plain_pose(self, numbers: Any) -> Any:
        """geometry_msgs/Pose."""
        return self._make("geometry_msgs/msg/Pose", position=self._vector("Point", numbers[:3]),
                          orientation=self._vector("Quaternion", numbers[3:]))

    def stamped_pose(self, result: dict[str, Any], frame_id: str) -> Any:
        """geometry_msgs/PoseStamped of a result with a pose."""
        return self._make(msgtypes.STAMPED_POSE, header=self.header(result["stamp_ns"], frame_id), pose=self.plain_pose(result["pose"]))

    def _with_covariance(self, result: dict[str, Any]) -> Any:
        pose = self.plain_pose(result["pose"])
        covariance = np.array(result["covariance"], np.float64) if "covariance" in result else self._unknown
        return self._make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=covariance)

    def pose(self, result: dict[str, Any], frame_id: str) -> Any:
        """geometry_msgs/PoseWithCovarianceStamped of a result with a pose; an unknown covariance is zeros."""
        return self._make(msgtypes.POSE, header=self.header(result["stamp_ns"], frame_id), pose=self._with_covariance(result))

    def odometry(self, moment: dict[str, Any], frame_id: str, child_frame_id: str) -> Any:
        """nav_msgs/Odometry of a pose between scans; the covariance of the twist is unknown, zeros."""
        numbers = moment.get("twist", [0.0] * 6)
        twist = self._make("geometry_msgs/msg/Twist", linear=self._vector("Vector3", numbers[:3]), angular=self._vector("Vector3", numbers[3:]))
        with_covariance = self._make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=self._unknown)
        return self._make(msgtypes.ODOMETRY, header=self.header(moment["stamp_ns"], frame_id), child_frame_id=child_frame_id,
                          pose=self._with_covariance(moment), twist=with_covariance)

    def transform(self, stamp_ns: int, parent: str, child: str, pose: Any) -> Any:
        """tf2_msgs/TFMessage of one transform."""
        transform = self._make("geometry_msgs/msg/Transform", translation=self._vector("Vector3", pose[:3]),
                               rotation=self._vector("Quaternion", pose[3:]))
        stamped = self._make("geometry_msgs/msg/TransformStamped", header=self.header(stamp_ns, parent),
                             child_frame_id=child, transform=transform)
        return self._make(msgtypes.TF, transforms=[stamped])

    def diagnostics(self, stamp_ns: int, statuses: list[tuple[str, int, str, dict[str, Any]]]) -> Any:
        """diagnostic_msgs/DiagnosticArray of (name, level, message, values)."""
        array = []
        for name, level, text, values in statuses:
            pairs = [self._make("diagnostic_msgs/msg/KeyValue", key=key, value=_text(value)) for key, value in values.items()]
            array.append(self._make("diagnostic_msgs/msg/DiagnosticStatus", level=level, name=name, message=text,
                                    hardware_id="ndtd", values=pairs))
        return self._make(msgtypes.DIAGNOSTICS, header=self.header(stamp_ns, ""), status=array)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def localisation_status(result: Optional[dict[str, Any]], counts: dict[str, Any],
                        is_active: bool = True) -> tuple[str, int, str, dict[str, Any]]:
    """The localisation as it was after the last result; None: none has come for a while. is_active: poses are published."""
    name = "ndtd: localisation"
    if result is None:
        return name, STALE, "no results", dict(counts)
    values: dict[str, Any] = {key: result[key] for key in SHOWN if key in result}
    protection = result.get("protection_level") or {}
    values.update({f"protection_{key}": value for key, value in protection.items()})
    values.update(counts)
    if not is_active:
        level, text = WARN, f"poses are withheld, {result.get('state') or result['outcome']}"
    elif is_trusted(result):
        level, text = (WARN if result.get("state") in ("coasting", "extending") else OK), result.get("state") or result["outcome"]
        if protection.get("unsafe"):
            level, text = ERROR, f"unsafe: {protection['reason']}"
    else:
        level, text = ERROR, ": ".join(part for part in (result.get("state"), result["outcome"], result["reason"]) if part)
    return name, level, text, values
