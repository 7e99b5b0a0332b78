"""ndt-ros1-bridge: ROS 1 in and out of a running ndtd, through rospy."""
import argparse
import os
import re
import sys
import threading
from typing import Any, Optional

from ._arguments import Parser, add_version
from .ros import command

PROGRAM, NODE = "ndt-ros1-bridge", "ndt_ros1_bridge"
EPILOG = """Topics: a name without a slash gets the namespace. FROM:=TO, __name, __ns, __master, __ip, __hostname
and _use_sim_time work as for nodes of ROS.
Exit status: 0 stopped by a signal or from the graph, 2 wrong usage, 3 no rospy, or a package that is missing. More: docs/ros1.md"""

VARIABLES = {"__ns": "ROS_NAMESPACE", "__master": "ROS_MASTER_URI", "__ip": "ROS_IP", "__hostname": "ROS_HOSTNAME"}


def parser() -> argparse.ArgumentParser:
    p = Parser(prog=PROGRAM, description=__doc__, epilog=EPILOG, allow_abbrev=False)
    add_version(p)
    add = p.add_argument
    add("remap", nargs="*", metavar="FROM:=TO", help="remapping arguments of ROS 1")
    command.add_inputs(p)
    command.add_outputs(p)
    add("--initialpose", metavar="TOPIC", help="pose from rviz in; '' for none (default: initialpose)")
    command.add_tf(p)
    add("--namespace", metavar="NAME", help="default: ROS_NAMESPACE")
    command.add_daemon(p)
    return p


def options(args: argparse.Namespace) -> tuple[Any, str]:
    """Options of the bridge and name of the node from the command line; ValueError in one line.

    What rospy takes from the environment is put there."""
    remap = command.pairs(args.remap, "")
    if args.namespace is not None:
        os.environ["ROS_NAMESPACE"] = args.namespace
    for name, variable in VARIABLES.items():
        if name in remap:
            os.environ[variable] = remap.pop(name)
    namespace = os.environ.get("ROS_NAMESPACE", "")
    if namespace.strip("/") and not re.fullmatch(r"/?[A-Za-z]\w*(/\w+)*/?", namespace, re.ASCII):
        raise ValueError(f"'{namespace}' is no name of a namespace: letters, digits and _ between slashes")
    node = remap.pop("__name", NODE)
    if not re.fullmatch(r"[A-Za-z]\w*", node, re.ASCII):
        raise ValueError(f"__name '{node}' is no name of a node: letters, digits and _")
    remap.pop("__log", None)
    sim_time = remap.pop("_use_sim_time", str(args.use_sim_time)).lower() == "true"
    private = next((name for name in remap if name.startswith("_")), None)
    if private is not None:
        raise ValueError(f"{private}: of parameters only _use_sim_time is known; options are named in --help")
    names = command.Names(namespace, node, remap)
    return command.options(args, names, use_sim_time=sim_time), node


def list_topics() -> None:
    """Topics that somebody publishes, with types and nodes."""
    from .ros import rospy_graph
    uri = rospy_graph.master_uri()
    found = rospy_graph.topics(uri)
    if not found:
        print(f"{PROGRAM}: no topics at {uri}", file=sys.stderr)
    for topic, kind, nodes in found:
        print(f"{topic}  {kind}  {' '.join(nodes)}")


def main(arguments: Optional[list[str]] = None) -> int:
    args = parser().parse_intermixed_args(arguments)  # roslaunch appends __name and __log

    def work(log: Any, stop: threading.Event) -> Any:
        chosen, node = options(args)
        if args.list:
            return list_topics()
        from .ros import bridge, rospy_graph
        types = rospy_graph.Types()
        participant = rospy_graph.connect(node, types, log, stop)
        if participant is None:
            return None
        chosen.use_sim_time |= participant.uses_sim_time
        return bridge.Bridge(chosen, log, types, participant, stop)

    return command.run(PROGRAM, ("rosbags", "zmq", "msgpack"), "ros1", work)


if __name__ == "__main__":
    sys.exit(main())
