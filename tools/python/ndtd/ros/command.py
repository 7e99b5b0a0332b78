"""What the command lines of both bridges have in common: options, names of topics, and the way from start to end."""
import argparse
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Optional

from .._extras import MissingPackage, need, os_error_text


def add_inputs(p: argparse.ArgumentParser) -> None:
    add = p.add_argument
    add("--scan", action="append", default=[], metavar="TOPIC",
        help="PointCloud2, once per LiDAR (default: the only one); CustomMsg of Livox, packets of Velodyne and Nebula")
    add("--odometry", action="append", default=[], metavar="TOPIC", help="nav_msgs/Odometry")
    add("--twist", action="append", default=[], metavar="TOPIC", help="TwistStamped, TwistWithCovarianceStamped or VelocityReport")
    add("--imu", action="append", default=[], metavar="TOPIC", help="sensor_msgs/Imu")
    add("--gnss", action="append", default=[], metavar="TOPIC", help="sensor_msgs/NavSatFix; needs --projector")
    add("--projector", metavar="FILE", help="map_projector_info.yaml of the map")


def add_outputs(p: argparse.ArgumentParser) -> None:
    add = p.add_argument
    add("--pose", default="localization/pose_estimator/pose_with_covariance", metavar="TOPIC",
        help="PoseWithCovarianceStamped out; '' for none (default: %(default)s)")
    add("--odometry-out", default="localization/pose_estimator/odometry", metavar="TOPIC",
        help="Odometry out: poses between scans, where ndtd has output.rate_hz; '' for none (default: %(default)s)")
    add("--diagnostics", default="/diagnostics", metavar="TOPIC", help="DiagnosticArray out, 1 Hz; '' for none")


def add_tf(p: argparse.ArgumentParser, default: str = "") -> None:
    """default: said of --tf in addition."""
    add = p.add_argument
    add("--initial-pose", choices=("search", "take"), default="search",
        help="search around it and use what fits (default), or take it unseen")
    add("--tf", choices=("auto", "map-odom", "map-base", "none"),
        help=f"auto: map -> odom if tf has odom -> base_link, else map -> base_link (default{default})")
    add("--no-tf-static", action="store_true", help="where the sensors are is configured in ndtd")
    add("--tf-ahead", type=float, default=0.0, metavar="S", help="stamp the transform S seconds ahead (default: 0)")
    add("--map-frame", default="map", metavar="NAME")
    add("--odom-frame", default="odom", metavar="NAME")
    add("--base-frame", default="base_link", metavar="NAME")
    add("--publish-all", action="store_true", help="also poses that are not trusted")
    add("--use-sim-time", action="store_true", help="stamp diagnostics by /clock")


def add_daemon(p: argparse.ArgumentParser) -> None:
    add = p.add_argument
    for name in ("scans", "poses", "motion", "control"):
        add(f"--{name}", metavar="ADDRESS", help=f"the {name} socket of ndtd (default: in the runtime directory)")
    add("--list", action="store_true", help="print the topics of the graph with their types, and exit")
    add("--push", action="store_true", help="the scans socket is PULL (sockets.scans_kind: pull)")
    add("--curve-server-key", metavar="FILE", help="public key of the daemon, for tcp with CURVE")
    add("--curve-keys", metavar="FILE", help="secret key of this program")


def pairs(items: list[str], what: str) -> dict[str, str]:
    """FROM:=TO as a dictionary; ValueError in one line."""
    found = {}
    for item in items:
        name, separator, value = item.partition(":=")
        if not separator or not name or not value:
            raise ValueError(f"{what}'{item}': FROM:=TO is wanted")
        found[name] = value
    return found


class Names:
    """Names of topics as ROS resolves them: namespace, then remappings."""

    def __init__(self, namespace: str, node: str, remap: dict[str, str]) -> None:
        self._prefix, self._node = "/" + namespace.strip("/") if namespace.strip("/") else "", node
        self._remap = {self._absolute(name): self._absolute(to) for name, to in remap.items()}

    def _absolute(self, name: str) -> str:
        if not re.fullmatch(r"~?/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", name, re.ASCII):
            raise ValueError(f"'{name}' is no name of a topic: letters, digits and _ between slashes")
        if name.startswith("~"):
            return f"{self._prefix}/{self._node}/{name[1:].lstrip('/')}"
        return name if name.startswith("/") else f"{self._prefix}/{name}"

    def __call__(self, name: str) -> str:
        """The absolute name; the empty one stays empty."""
        return name and self._remap.get(self._absolute(name), self._absolute(name))


def _projector(args: argparse.Namespace) -> Any:
    if args.gnss and not args.projector:
        raise ValueError("--gnss needs the projection of the map: --projector map_projector_info.yaml")
    if not args.projector:
        return None
    from ..georeference import Projector
    path = Path(args.projector)
    return Projector.from_file(path / "map_projector_info.yaml" if path.is_dir() else path).forward


def options(args: argparse.Namespace, names: Names, **more: Any) -> Any:
    """Options of the bridge; ValueError in one line."""
    from . import link, msgtypes
    from .options import Options
    keys = link.read_keys(args.curve_server_key, args.curve_keys)
    endpoints = {name: getattr(args, name) for name in ("scans", "poses", "motion", "control") if getattr(args, name)}
    motion = {names(topic): types for kind, types in msgtypes.MOTION.items() for topic in getattr(args, kind)}
    common = {"initial_pose": names("initialpose" if args.initialpose is None else args.initialpose), "tf": args.tf or "auto"}
    return Options(scans=[names(topic) for topic in args.scan], motion=motion,
                   pose=names(args.pose), odometry_out=names(args.odometry_out), diagnostics=names(args.diagnostics),
                   tf_topic=names("/tf"), tf_static_topic="" if args.no_tf_static else names("/tf_static"),
                   tf_ahead_ns=int(args.tf_ahead * 1e9), map_frame=args.map_frame, odom_frame=args.odom_frame,
                   base_frame=args.base_frame, search_initial_pose=args.initial_pose == "search",
                   publish_all=args.publish_all, daemon=link.Daemon(endpoints, args.push, keys), projector=_projector(args),
                   **{**common, **more})


def run(program: str, packages: tuple[str, ...], extra: str, work: Callable[[Any, threading.Event], Optional[Any]]) -> int:
    """The exit code of a bridge. work(log, stop): the bridge, or None where nothing is left to do."""
    try:
        for module in packages:
            need(module, extra)
        from .options import Log
        log, stop = Log(program), threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        bridge = work(log, stop)
        if bridge is not None:
            sys.setswitchinterval(0.001)  # a result must not wait for a scan that is being converted
            bridge.run()
            log(f"stopped: {bridge.summary()}")
    except (MissingPackage, OSError) as error:
        print(f"{program}: {os_error_text(error) if isinstance(error, OSError) else error}", file=sys.stderr)
        return 3
    except ValueError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    return 0
