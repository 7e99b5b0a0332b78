"""ndt-ros2-bridge: ROS 2 in and out of a running ndtd, over DDS, without an installation of ROS."""
import argparse
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, Optional

from ._arguments import Parser, add_version

EPILOG = """Topics: a name without a slash gets the namespace. -r FROM:=TO and --ros-args work as for nodes of ROS.
Exit status: 0 stopped by a signal, 2 wrong usage, 3 no DDS, or a package that is missing. More: docs/ros2.md"""

LIST_S = 2.0  # in which topics are discovered


def parser() -> argparse.ArgumentParser:
    p = Parser(prog="ndt-ros2-bridge", description=__doc__, epilog=EPILOG, allow_abbrev=False)
    add_version(p)
    add = p.add_argument
    add("--scan", action="append", default=[], metavar="TOPIC",
        help="PointCloud2, once per LiDAR (default: the only one); CustomMsg of Livox, packets of Velodyne and Nebula")
    add("--odometry", action="append", default=[], metavar="TOPIC", help="nav_msgs/Odometry")
    add("--twist", action="append", default=[], metavar="TOPIC", help="TwistStamped, TwistWithCovarianceStamped or VelocityReport")
    add("--imu", action="append", default=[], metavar="TOPIC", help="sensor_msgs/Imu")
    add("--gnss", action="append", default=[], metavar="TOPIC", help="sensor_msgs/NavSatFix; needs --projector")
    add("--projector", metavar="FILE", help="map_projector_info.yaml of the map")
    add("--pose", default="localization/pose_estimator/pose_with_covariance", metavar="TOPIC",
        help="PoseWithCovarianceStamped out; '' for none (default: %(default)s)")
    add("--odometry-out", default="localization/pose_estimator/odometry", metavar="TOPIC",
        help="Odometry out: poses between scans, where ndtd has output.rate_hz; '' for none (default: %(default)s)")
    add("--diagnostics", default="/diagnostics", metavar="TOPIC", help="DiagnosticArray out, 1 Hz; '' for none")
    add("--initialpose", metavar="TOPIC", help="pose from RViz in; '' for none (default: initialpose, with --autoware none)")
    add("--initial-pose", choices=("search", "take"), default="search",
        help="search around it and use what fits (default), or take it unseen")
    add("--tf", choices=("auto", "map-odom", "map-base", "none"),
        help="auto: map -> odom if tf has odom -> base_link, else map -> base_link (default; with --autoware none)")
    add("--autoware", action="store_true",
        help="in place of ndt_scan_matcher: with its services ndt_align_srv and trigger_node, its scores as topics, without tf")
    add("--no-tf-static", action="store_true", help="where the sensors are is configured in ndtd")
    add("--tf-ahead", type=float, default=0.0, metavar="S", help="stamp the transform S seconds ahead (default: 0)")
    add("--map-frame", default="map", metavar="NAME")
    add("--odom-frame", default="odom", metavar="NAME")
    add("--base-frame", default="base_link", metavar="NAME")
    add("--publish-all", action="store_true", help="also poses that are not trusted")
    add("--reliable", action="store_true", help="ask for lost parts of a scan again; the LiDAR's driver must offer it")
    add("--use-sim-time", action="store_true", help="stamp diagnostics by /clock")
    add("--domain", type=int, metavar="ID", help="default: ROS_DOMAIN_ID, or 0")
    add("--namespace", default="", metavar="NAME")
    add("-r", "--remap", action="append", default=[], metavar="FROM:=TO")
    add("-p", "--param", action="append", default=[], metavar="NAME:=VALUE", help="use_sim_time alone")
    add("--ros-args", action="store_true", help=argparse.SUPPRESS)
    for name in ("scans", "poses", "motion", "control"):
        add(f"--{name}", metavar="ADDRESS", help=f"the {name} socket of ndtd (default: in the runtime directory)")
    add("--list", action="store_true", help="print the topics of the graph with their types, and exit")
    add("--push", action="store_true", help="the scans socket is PULL (sockets.scans_kind: pull)")
    add("--curve-server-key", metavar="FILE", help="public key of the daemon, for tcp with CURVE")
    add("--curve-keys", metavar="FILE", help="secret key of this program")
    return p


def _pairs(items: list[str], what: str) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, separator, value = item.partition(":=")
        if not separator or not name or not value:
            raise ValueError(f"{what} '{item}': FROM:=TO is wanted")
        pairs[name] = value
    return pairs


class Names:
    """Names of topics as ROS resolves them: namespace, then remappings."""

    def __init__(self, namespace: str, remap: dict[str, str]) -> None:
        self._prefix = "/" + namespace.strip("/") if namespace.strip("/") else ""
        self._remap = {self._absolute(name): self._absolute(to) for name, to in remap.items()}

    def _absolute(self, name: str) -> str:
        if not re.fullmatch(r"~?/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", name, re.ASCII):
            raise ValueError(f"'{name}' is no name of a topic: letters, digits and _ between slashes")
        if name.startswith("~"):
            return f"{self._prefix}/ndt_ros2_bridge/{name[1:].lstrip('/')}"
        return name if name.startswith("/") else f"{self._prefix}/{name}"

    def __call__(self, name: str) -> str:
        """The absolute name; the empty one stays empty."""
        return name and self._remap.get(self._absolute(name), self._absolute(name))


def _domain(args: argparse.Namespace) -> int:
    text = os.environ.get("ROS_DOMAIN_ID") or "0"
    if args.domain is None and not text.isdigit():
        raise ValueError(f"ROS_DOMAIN_ID '{text}' is not a number")
    domain = int(text) if args.domain is None else args.domain
    if not 0 <= domain <= 232:
        raise ValueError(f"domain {domain}: 0 to 232")
    return domain


def _motion(args: argparse.Namespace, names: Names) -> dict[str, Any]:
    from .ros2 import rmw
    types = {"odometry": (rmw.ODOMETRY,), "twist": (rmw.TWIST, rmw.TWIST_COVARIANCE, *rmw.VELOCITY), "imu": (rmw.IMU,), "gnss": (rmw.FIX,)}
    return {names(topic): types[kind] for kind in types for topic in getattr(args, kind)}


def _projector(args: argparse.Namespace) -> Any:
    if args.gnss and not args.projector:
        raise ValueError("--gnss needs the projection of the map: --projector map_projector_info.yaml")
    if not args.projector:
        return None
    from .georeference import Projector
    path = Path(args.projector)
    return Projector.from_file(path / "map_projector_info.yaml" if path.is_dir() else path).forward


def options(args: argparse.Namespace) -> Any:
    """Options of the bridge from the command line; ValueError in one line."""
    from .ros2 import autoware, link
    from .ros2.options import Options
    remap = _pairs(args.remap, "--remap")
    namespace = remap.pop("__ns", args.namespace)
    remap.pop("__node", None)
    params = _pairs(args.param, "--param")
    sim_time = params.pop("use_sim_time", str(args.use_sim_time)).lower() == "true"
    if params:
        raise ValueError(f"--param {next(iter(params))}: only use_sim_time is known; options are named in --help")
    names = Names(namespace, remap)
    own = {name: names(f"localization/pose_estimator/{name}") for name in (*autoware.SCORES, "ndt_align_srv", "trigger_node")}
    services = {"align_service": own.pop("ndt_align_srv"), "trigger_service": own.pop("trigger_node"), "scores": own} if args.autoware else {}
    initialpose = ("" if args.autoware else "initialpose") if args.initialpose is None else args.initialpose
    keys = link.read_keys(args.curve_server_key, args.curve_keys)
    endpoints = {name: getattr(args, name) for name in ("scans", "poses", "motion", "control") if getattr(args, name)}
    return Options(scans=[names(topic) for topic in args.scan], motion=_motion(args, names), initial_pose=names(initialpose),
                   pose=names(args.pose), odometry_out=names(args.odometry_out), diagnostics=names(args.diagnostics),
                   tf=args.tf or ("none" if args.autoware else "auto"), tf_topic=names("/tf"),
                   tf_static_topic="" if args.no_tf_static else names("/tf_static"),
                   tf_ahead_ns=int(args.tf_ahead * 1e9), map_frame=args.map_frame, odom_frame=args.odom_frame,
                   base_frame=args.base_frame, search_initial_pose=args.initial_pose == "search",
                   publish_all=args.publish_all, use_sim_time=sim_time, reliable=args.reliable, domain_id=_domain(args),
                   daemon=link.Daemon(endpoints, args.push, keys), projector=_projector(args), **services)


def list_topics(domain: int) -> None:
    """Topics that somebody publishes, with types and reliability."""
    import time

    from .ros2 import dds, rmw
    participant = dds.Participant(domain, rmw.Types())
    end_s = time.monotonic() + LIST_S
    while time.monotonic() < end_s:
        participant.wait(0.1)
        participant.discovered()
    found = sorted(set(participant.endpoints()), key=lambda one: (one.topic, one.type))
    if not found:
        print(f"ndt-ros2-bridge: no topics in the domain {domain}", file=sys.stderr)
    for one in found:
        print(f"{one.topic}  {one.type}  {'reliable' if one.reliable else 'best effort'}"
              f"{', transient local' if one.transient_local else ''}")


def main(arguments: Optional[list[str]] = None) -> int:
    args = parser().parse_args(arguments)
    from ._extras import MissingPackage, need, os_error_text
    try:
        for module in ("cyclonedds", "rosbags", "zmq", "msgpack"):
            need(module, "dds")
        if args.list:
            list_topics(_domain(args))
            return 0
        from .ros2.bridge import Bridge
        from .ros2.options import Log
        log = Log()
        bridge = Bridge(options(args), log)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, bridge.stop)
        sys.setswitchinterval(0.001)  # a result must not wait for a scan that is being converted
        bridge.run()
        log(f"stopped: {bridge.summary()}")
    except (MissingPackage, OSError) as error:
        print(f"ndt-ros2-bridge: {os_error_text(error) if isinstance(error, OSError) else error}", file=sys.stderr)
        return 3
    except ValueError as error:
        print(f"ndt-ros2-bridge: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
