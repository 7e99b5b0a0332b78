"""What the bridge wants of a ROS graph: readers and writers of serialised messages. `dds` is the one of ROS 2, `rospy_graph` of ROS 1."""
from dataclasses import dataclass
from typing import Any, Callable, Protocol


@dataclass(frozen=True)
class Quality:
    """QoS of a reader or a writer; ROS 1 has the depth alone."""
    reliable: bool = True
    transient_local: bool = False
    depth: int = 10


SENSOR = Quality(reliable=False, depth=5)


@dataclass(frozen=True)
class Endpoint:
    """A writer of somebody else."""
    topic: str
    type: str
    reliable: bool = True
    transient_local: bool = False


class Types(Protocol):
    """Message classes and how they are serialised."""

    @property
    def is_ros2(self) -> bool: ...

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Makes a message."""

    def decode(self, raw: bytes, name: str) -> Any: ...

    def encode(self, message: Any, name: str) -> bytes: ...


class Reader(Protocol):
    def take(self) -> list[bytes]:
        """Serialised messages, oldest first."""

    def lost(self) -> int:
        """Messages that a writer has sent and that did not come."""


class Writer(Protocol):
    def write(self, message: Any) -> bool:
        """False: the graph does not take it."""


class Participant(Protocol):
    """One thread waits and takes; writers may be used by any thread."""

    name: str  # of the graph
    place: str  # where it is, as the end of a sentence
    advice: str  # what decides whom it meets
    loss: str  # the count of lost scans
    loss_advice: str
    silence_advice: str  # why nothing may come from a writer that is known

    def expect(self, topic: str, types: tuple[str, ...], quality: Quality) -> None:
        """Tells that a reader of one of these types will be wanted: what needs a while may begin."""

    def reader(self, topic: str, type_name: str, quality: Quality) -> Reader: ...

    def writer(self, topic: str, type_name: str, quality: Quality) -> Writer: ...

    def wait(self, timeout_s: float) -> None:
        """Waits until a reader has something, a writer was discovered, or the time is over."""

    def discovered(self) -> list[Endpoint]:
        """Writers that appeared since the last call."""

    def endpoints(self) -> list[Endpoint]:
        """All writers that are known now."""

    def close(self) -> None:
        """Leaves the graph."""

    def ended(self) -> str:
        """Why the graph wants this program to end; empty: it does not."""
