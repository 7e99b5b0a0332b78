"""ndt-ros2-bridge: ROS 2 in and out of a running ndtd, over DDS, without an installation of ROS."""
import argparse
import os
import sys
import threading
import time
from typing import Any, Optional

from ._arguments import Parser, add_version
from .ros import command

PROGRAM = "ndt-ros2-bridge"
EPILOG = """Topics: a name without a slash gets the namespace. -r FROM:=TO and --ros-args work as for nodes of ROS.
Exit status: 0 stopped by a signal, 2 wrong usage, 3 no DDS, or a package that is missing. More: docs/ros2.md"""

LIST_S = 2.0  # in which topics are discovered


def parser() -> argparse.ArgumentParser:
    p = Parser(prog=PROGRAM, description=__doc__, epilog=EPILOG, allow_abbrev=False)
    add_version(p)
    add = p.add_argument
    command.add_inputs(p)
    command.add_outputs(p)
    add("--initialpose", metavar="TOPIC", help="pose from RViz in; '' for none (default: initialpose, with --autoware none)")
    command.add_tf(p, "; with --autoware none")
    add("--autoware", action="store_true",
        help="in place of ndt_scan_matcher: with its services ndt_align_srv and trigger_node, its scores as topics, without tf")
    add("--reliable", action="store_true", help="ask for lost parts of a scan again; the LiDAR's driver must offer it")
    add("--domain", type=int, metavar="ID", help="default: ROS_DOMAIN_ID, or 0")
    add("--namespace", default="", metavar="NAME")
    add("-r", "--remap", action="append", default=[], metavar="FROM:=TO")
    add("-p", "--param", action="append", default=[], metavar="NAME:=VALUE", help="use_sim_time alone")
    add("--ros-args", action="store_true", help=argparse.SUPPRESS)
    command.add_daemon(p)
    return p


def _domain(args: argparse.Namespace) -> int:
    text = os.environ.get("ROS_DOMAIN_ID") or "0"
    if args.domain is None and not text.isdigit():
        raise ValueError(f"ROS_DOMAIN_ID '{text}' is not a number")
    domain = int(text) if args.domain is None else args.domain
    if not 0 <= domain <= 232:
        raise ValueError(f"domain {domain}: 0 to 232")
    return domain


def options(args: argparse.Namespace) -> Any:
    """Options of the bridge from the command line; ValueError in one line."""
    remap = command.pairs(args.remap, "--remap ")
    namespace = remap.pop("__ns", args.namespace)
    remap.pop("__node", None)
    params = command.pairs(args.param, "--param ")
    sim_time = params.pop("use_sim_time", str(args.use_sim_time)).lower() == "true"
    if params:
        raise ValueError(f"--param {next(iter(params))}: only use_sim_time is known; options are named in --help")
    names = command.Names(namespace, "ndt_ros2_bridge", remap)
    return command.options(args, names, use_sim_time=sim_time, reliable=args.reliable, **_autoware(args, names))


def _autoware(args: argparse.Namespace, names: command.Names) -> dict[str, Any]:
    if not args.autoware:
        return {}
    from .ros import autoware
    own = {name: names(f"localization/pose_estimator/{name}") for name in (*autoware.SCORES, "ndt_align_srv", "trigger_node")}
    return {"align_service": own.pop("ndt_align_srv"), "trigger_service": own.pop("trigger_node"), "scores": own,
            "tf": args.tf or "none", "initial_pose": names(args.initialpose or "")}


def list_topics(domain: int) -> None:
    """Topics that somebody publishes, with types and reliability."""
    from .ros import dds, rmw
    participant = dds.Participant(domain, rmw.Types())
    end_s = time.monotonic() + LIST_S
    while time.monotonic() < end_s:
        participant.wait(0.1)
        participant.discovered()
    found = sorted(set(participant.endpoints()), key=lambda one: (one.topic, one.type))
    if not found:
        print(f"{PROGRAM}: no topics in the domain {domain}; ROS_DOMAIN_ID; without multicast ROS_LOCALHOST_ONLY=1 or "
              "ROS_STATIC_PEERS, of the nodes, too", file=sys.stderr)
    for one in found:
        print(f"{one.topic}  {one.type}  {'reliable' if one.reliable else 'best effort'}"
              f"{', transient local' if one.transient_local else ''}")


def main(arguments: Optional[list[str]] = None) -> int:
    args = parser().parse_args(arguments)

    def work(log: Any, stop: threading.Event) -> Any:
        if args.list:
            return list_topics(_domain(args))
        from .ros import bridge, dds, rmw
        chosen, types = options(args), rmw.Types()
        return bridge.Bridge(chosen, log, types, dds.Participant(_domain(args), types), stop)

    return command.run(PROGRAM, ("cyclonedds", "rosbags", "zmq", "msgpack"), "dds", work)


if __name__ == "__main__":
    sys.exit(main())
