"""A node of ROS 1 that reads and writes serialised messages, through rospy.

rospy comes with ROS 1: Debian and Ubuntu have it as python3-rospy; it is not on PyPI. Messages stay bytes (AnyMsg), which rosbags
reads and writes by its definitions of Noetic. rospy calls back in a thread for each connection; readers keep what came until it is
taken. A node registers at the master once: after a new master, a thread here does it again, which rospy does not.
"""
import functools
import http.client
import importlib
import os
import struct
import sys
import threading
import time
import xmlrpc.client
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from .._extras import MissingPackage
from ..recordings import ros_types
from . import msgtypes
from .transport import Endpoint, Quality
from .options import Log

FOLDERS = ("/opt/ros/noetic/lib/python3/dist-packages", "/usr/lib/python3/dist-packages")
MASTER_URI = "http://localhost:11311"
POLL_S = 1.0
ANSWER_S = 5.0  # of the master
Nodes = dict[str, set[str]]  # by topic
BUFFER = 1 << 22  # bytes that rospy takes at once: a cloud


def import_rospy() -> Any:
    """rospy: of this Python, or else that of the system, whose folder is searched after all others. MissingPackage tells how to get it."""
    for folder in (None, *FOLDERS):
        if folder and not (Path(folder) / "rospy").is_dir():
            continue
        sys.path += [folder] if folder else []
        try:
            return _rospy()
        except ImportError as error:
            sys.path = [path for path in sys.path if path != folder]
            if error.name and error.name != "rospy":
                raise MissingPackage(f"{error.name} is not installed, which rospy needs: pip install {error.name}, or use the Python that rospy "
                                     f"is made for (this is {sys.version_info.major}.{sys.version_info.minor})", name=error.name) from None
    raise MissingPackage("rospy is not installed, which is a part of ROS 1 and not on PyPI: apt install python3-rospy (Debian 12, Ubuntu 22.04), "
                         "or source setup.bash of ROS Noetic", name="rospy")


def _rospy() -> Any:
    rospy = importlib.import_module("rospy")
    importlib.import_module("rosgraph").network.get_local_addresses()  # imports netifaces, which is compiled for one Python, late
    return rospy


def ros1_name(name: str) -> str:
    """sensor_msgs/msg/Imu -> sensor_msgs/Imu"""
    return name.replace("/msg/", "/")


class Types:
    """Message classes and their bytes in ROS 1. Threads: any, after the first use of a type."""

    is_ros2 = False

    def __init__(self) -> None:
        self._store = ros_types.default_store(is_ros1=True)
        msgtypes.register(self._store, {})
        # Bridges number the messages of a topic themselves, see Writer.
        self._header = functools.partial(self._store.types["std_msgs/msg/Header"], seq=0)

    def __getitem__(self, name: str) -> Any:
        """Makes a message."""
        return self._header if name == "std_msgs/msg/Header" else self._store.types[name]

    def decode(self, raw: bytes, name: str) -> Any:
        """A message; sequences of numbers are arrays that share the bytes."""
        return self._store.deserialize_ros1(memoryview(raw), name)

    def encode(self, message: Any, name: str) -> bytes:
        return bytes(self._store.serialize_ros1(message, name))

    def definition(self, name: str) -> tuple[str, str]:
        """Text and MD5 sum, which two nodes compare."""
        text, md5 = self._store.generate_msgdef(name, ros_version=1)
        return text, md5

    def has_header(self, name: str) -> bool:
        """Whether a message begins with one."""
        return self.definition(name)[0].startswith("std_msgs/Header ")


class _Timeout(xmlrpc.client.Transport):
    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = super().make_connection(host)
        connection.timeout = ANSWER_S
        return connection


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


class Master:
    """Requests to the master; MasterError where it does not answer."""

    def __init__(self, uri: str, caller: str) -> None:
        """ValueError: no address of a master."""
        self.uri, self._caller = uri, caller
        try:
            self._proxy = xmlrpc.client.ServerProxy(uri, transport=_Timeout())
        except OSError as error:
            raise ValueError(f"ROS_MASTER_URI '{uri}': http://HOST:PORT is wanted ({error})") from None
        if not uri.startswith("http://"):
            raise ValueError(f"ROS_MASTER_URI '{uri}': http://HOST:PORT is wanted")

    def ask(self, request: str, *arguments: Any) -> Any:
        try:
            code, text, value = getattr(self._proxy, request)(self._caller, *arguments)
        except Exception as error:  # of sockets, HTTP, XML, or what another server sends
            raise MasterError(f"no master of ROS at {self.uri}: {_one_line(error)}") from None
        if code != 1:
            raise MasterError(f"the master at {self.uri} refuses {request}: {text}")
        return value

    def topics(self) -> tuple[dict[str, str], Nodes, Nodes]:
        """Types by topic; nodes that publish, and that subscribe, by topic."""
        state, pairs = self.ask("getSystemState"), self.ask("getTopicTypes")
        try:
            publishers, subscribers, _ = ({str(topic): {str(node) for node in nodes} for topic, nodes in rows} for rows in state)
            return {str(topic): str(kind) for topic, kind in pairs}, publishers, subscribers
        except (TypeError, ValueError) as error:
            raise MasterError(f"no master of ROS at {self.uri}: its list of topics is none: {error}") from None


class MasterError(OSError):
    """The master does not answer or refuses; one line."""


def master_uri() -> str:
    """ROS_MASTER_URI; where it is not set, it becomes that of this machine."""
    os.environ["ROS_MASTER_URI"] = os.environ.get("ROS_MASTER_URI") or MASTER_URI
    return os.environ["ROS_MASTER_URI"]


def connect(node: str, types: Types, log: Log, stop: threading.Event) -> "Optional[Participant]":
    """Waits for the master; None: stopped before it was there. ValueError: the address is none."""
    import_rospy()
    uri = master_uri()
    master = Master(uri, "/" + node)
    while not stop.is_set():
        try:
            master.ask("getPid")
            log.forget("no master")
            return Participant(node, types, log, uri)
        except MasterError as error:
            log.seldom("no master", f"{error} (ROS_MASTER_URI); waiting for it")
        stop.wait(POLL_S)
    return None


class Participant:
    """A node. Its namespace is ROS_NAMESPACE."""

    name, advice = "ROS 1", "ROS_MASTER_URI"
    loss, loss_advice = "scans_overtaken", "newer ones came before they were taken"
    silence_advice = "is its node alive, and do the hosts know each other (rosnode ping; ROS_IP, ROS_HOSTNAME)?"

    def __init__(self, node: str, types: Types, log: Log, uri: str) -> None:
        self._rospy = import_rospy()
        self._types, self._log = types, log
        self._ended = ""
        self._rospy.init_node(node, argv=[], disable_signals=True, disable_rosout=True, disable_rostime=True)
        self._rospy.core.add_preshutdown_hook(self._on_shutdown)
        self._me, self._my_uri = self._rospy.get_name(), self._rospy.get_node_uri()
        self._master = Master(uri, self._me)
        self._itself = xmlrpc.client.ServerProxy(self._my_uri, transport=_Timeout())
        self.place = f"at {uri}"
        self.uses_sim_time = self._rospy.get_param("/use_sim_time", False) is True
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._readers: dict[str, Reader] = {}
        self._inputs: set[str] = set()  # that the master was told
        self._outputs: dict[str, str] = {}  # the same, with types
        self._known: set[Endpoint] = set()
        self._new: deque[Endpoint] = deque()
        self._is_there = True  # the master
        threading.Thread(target=self._watch, name="master", daemon=True).start()
        log(f"node {self._me} at {uri}")

    def close(self) -> None:
        """Leaves the graph. rospy would wait for ever for a master that does not answer."""
        leaving = threading.Thread(target=self._rospy.signal_shutdown, args=("stopped",), daemon=True)
        leaving.start()
        leaving.join(ANSWER_S)

    def ended(self) -> str:
        """Another node of this name has come, or somebody has ended this one."""
        return self._ended

    def _on_shutdown(self, reason: str) -> None:
        self._ended = f"stopped from the graph: {reason}"

    # ---- topics ----

    def expect(self, topic: str, types: tuple[str, ...], quality: Quality) -> None:
        """Subscribes at once: a recording begins to play 0.2 s after its topics appear."""
        if topic not in self._readers:
            reader = self._readers[topic] = Reader(types, quality, lambda *what: self._seen(Endpoint(topic, *what)), self._wake)
            reader.subscription = self._rospy.Subscriber(topic, self._rospy.AnyMsg, reader.put, buff_size=BUFFER, tcp_nodelay=True)
            with self._lock:  # not before: rospy waits for a master that has left
                self._inputs.add(topic)

    def reader(self, topic: str, type_name: str, quality: Quality) -> "Reader":
        self.expect(topic, (type_name,), quality)
        self._readers[topic].types = (type_name,)
        return self._readers[topic]

    def writer(self, topic: str, type_name: str, quality: Quality) -> "Writer":
        text, md5 = self._types.definition(type_name)
        fields = {"_type": ros1_name(type_name), "_md5sum": md5, "_full_text": text, "__slots__": []}
        kind = type(type_name.rpartition("/")[2], (self._rospy.AnyMsg,), fields)
        publisher = self._rospy.Publisher(topic, kind, queue_size=quality.depth, tcp_nodelay=True)
        with self._lock:
            self._outputs[topic] = ros1_name(type_name)
        return Writer(publisher, kind, self._types, type_name)

    def wait(self, timeout_s: float) -> None:
        self._wake.wait(timeout_s)
        self._wake.clear()

    def discovered(self) -> list[Endpoint]:
        new = []
        while self._new:
            new.append(self._new.popleft())
        return new

    def endpoints(self) -> list[Endpoint]:
        with self._lock:
            return sorted(self._known, key=lambda one: (one.topic, one.type))

    def _seen(self, endpoint: Endpoint) -> None:
        with self._lock:
            if endpoint in self._known:
                return
            self._known.add(endpoint)
        self._new.append(endpoint)
        self._wake.set()

    # ---- master ----

    def _watch(self) -> None:
        while not self._ended:
            try:
                self._poll()
                if not self._is_there:
                    self._log(f"the master {self.place} answers again")
                    self._log.forget("no master")
                self._is_there = True
            except MasterError as error:
                self._is_there = False
                self._log.seldom("no master", f"{error}; connected topics go on")
            time.sleep(POLL_S)

    def _poll(self) -> None:
        with self._lock:
            inputs, outputs = set(self._inputs), set(self._outputs)
        types, publishers, subscribers = self._master.topics()
        found = {Endpoint(topic, ros_types.ros2_name(types[topic])) for topic, nodes in publishers.items()
                 if types.get(topic, "*") != "*" and nodes - {self._me}}
        with self._lock:
            self._known = {one for one in self._known if replace(one, transient_local=False) in found}  # connections tell latching
        for endpoint in found:
            self._seen(endpoint)
        self._register(*(wanted - {topic for topic, nodes in rows.items() if self._me in nodes}
                         for wanted, rows in ((inputs, subscribers), (outputs, publishers))))

    def _register(self, inputs: set[str], outputs: set[str]) -> None:
        """Tells a master that does not know them the topics of this node, and rospy whom it now can connect to."""
        for topic in inputs:
            uris = self._master.ask("registerSubscriber", topic, "*", self._my_uri)
            try:
                self._itself.publisherUpdate("/master", topic, uris)
            except Exception as error:  # as of the master
                raise MasterError(f"rospy does not take the publishers of {topic} of the master {self.place}: {_one_line(error)}") from None
        for topic in outputs:
            self._master.ask("registerPublisher", topic, self._outputs[topic], self._my_uri)
        if inputs or outputs:
            self._log(f"the master {self.place} is another one: {len(inputs)} inputs and {len(outputs)} outputs are registered again")


class Reader:
    """Keeps the newest messages of a topic, as bytes, until they are taken."""

    def __init__(self, types: tuple[str, ...], quality: Quality, seen: Any, wake: threading.Event) -> None:
        """seen: is told type, reliability and latching of each message."""
        self.types = types
        self.subscription: Any = None
        self._seen, self._wake = seen, wake
        self._waiting: deque[bytes] = deque(maxlen=quality.depth)
        self._lost = 0

    def put(self, message: Any) -> None:
        """Of rospy's threads."""
        header = message._connection_header
        name = ros_types.ros2_name(header["type"])
        self._seen(name, True, header.get("latching") == "1")
        if name in self.types:
            self._lost += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(message._buff)
            self._wake.set()

    def take(self) -> list[bytes]:
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def lost(self) -> int:
        return self._lost


class Writer:
    """Publishes messages of one type, and numbers them where they have a header."""

    def __init__(self, publisher: Any, kind: Any, types: Types, type_name: str) -> None:
        self._publisher, self._kind, self._types, self._type = publisher, kind, types, type_name
        self._has_header = types.has_header(type_name)
        self._lock = threading.Lock()
        self._seq = 0

    def write(self, message: Any) -> bool:
        """False: the node is shut down."""
        raw = bytearray(self._types.encode(message, self._type))
        one = self._kind()
        with self._lock:
            if self._has_header:
                self._seq = (self._seq + 1) & 0xFFFFFFFF
                struct.pack_into("<I", raw, 0, self._seq)
            one._buff = bytes(raw)
            try:
                self._publisher.publish(one)
            except Exception:  # rospy's own: the topic is closed
                return False
        return True


def topics(uri: str) -> list[tuple[str, str, list[str]]]:
    """Topics that somebody publishes: name, type, nodes. MasterError: no master."""
    types, publishers, _ = Master(uri, "/ndt_ros1_bridge").topics()
    return sorted((topic, types.get(topic, "*"), sorted(nodes)) for topic, nodes in publishers.items())
