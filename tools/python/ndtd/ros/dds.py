"""A DDS participant that reads and writes serialised messages.

Messages stay bytes: cyclonedds checks them against the IDL and hands them over, so that a cloud is not taken apart element
by element. One thread waits and takes, and one for each service; writers may be used by any thread.
"""
import os
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Optional
from xml.sax.saxutils import quoteattr

from .._extras import need
from . import rmw
from .transport import Endpoint, Quality

# A cloud is hundreds of datagrams: the usual buffer of 208 kB loses some of them. The system's net.core.rmem_max caps it.
RECEIVE_BUFFER = ("<CycloneDDS><Domain><Internal><SocketReceiveBufferSize min='default' max='16MB'/></Internal>"
                  "</Domain></CycloneDDS>")


ANSWER_WAIT_S = 0.1  # as rmw_cyclonedds


def configuration() -> str:
    """Configuration of discovery by the variables of ROS 2, as rmw_cyclonedds takes them. CYCLONEDDS_URI comes last and wins."""
    is_local = os.environ.get("ROS_LOCALHOST_ONLY") == "1" or os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE") == "LOCALHOST"
    peers = [name for name in os.environ.get("ROS_STATIC_PEERS", "").split(";") if name] + ["localhost"] * is_local
    parts = [RECEIVE_BUFFER]
    if peers:
        names = "".join(f"<Peer address={quoteattr(name)}/>" for name in peers)
        parts.append(f"<CycloneDDS><Domain><General><AllowMulticast>{'false' if is_local else 'default'}</AllowMulticast></General>"
                     f"<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>"
                     f"<Peers>{names}</Peers></Discovery></Domain></CycloneDDS>")
    return ",".join(parts + [os.environ[name] for name in ("CYCLONEDDS_URI",) if os.environ.get(name)])


class Participant:
    """A participant of a domain (ROS_DOMAIN_ID). OSError: the network cannot be used."""

    name, advice = "ROS 2", "ROS_DOMAIN_ID, CYCLONEDDS_URI"
    loss, loss_advice, silence_advice = "scans_lost_on_dds", "net.core.rmem_max, see docs/ros2.md", ""

    def __init__(self, domain_id: int, types: rmw.Types) -> None:
        self.place = f"in the domain {domain_id}"
        self._core = need("cyclonedds.core", "dds")
        domain = need("cyclonedds.domain", "dds")
        self._policy = need("cyclonedds.qos", "dds")
        self._layer = need("cyclonedds._clayer", "dds")
        self._types = types
        self._topics: dict[tuple[str, str], Any] = {}
        try:
            self._domain = domain.Domain(domain_id, configuration())
            self._participant = domain.DomainParticipant(domain_id)
        except self._core.DDSException as error:
            raise OSError(f"DDS domain {domain_id} cannot be joined, {error}: the network, or CYCLONEDDS_URI?") from None
        self._key = self._participant.guid
        self._waitset = self._core.WaitSet(self._participant)
        self._known: dict[Any, Endpoint] = {}
        self._open_discovery()

    def _open_discovery(self) -> None:
        builtin = need("cyclonedds.builtin", "dds")
        self._discovery = builtin.BuiltinDataReader(self._participant, builtin.BuiltinTopicDcpsPublication)
        states = self._core.SampleState.NotRead | self._core.ViewState.Any | self._core.InstanceState.Any
        self._discovery_condition = self._core.ReadCondition(self._discovery, states)
        self._waitset.attach(self._discovery_condition)

    def _topic(self, name: str, type_name: str) -> Any:
        """name: that of DDS."""
        if (name, type_name) not in self._topics:
            topic = need("cyclonedds.topic", "dds")
            idl = self._types.idl(type_name)
            self._topics[name, type_name] = topic.Topic(self._participant, name, idl)
        return self._topics[name, type_name]

    def _qos(self, quality: Quality, user_data: bytes, is_writer: bool) -> Any:
        p = self._policy.Policy
        durability = p.Durability.TransientLocal if quality.transient_local else p.Durability.Volatile
        policies = [p.Reliability.Reliable(100_000_000) if quality.reliable else p.Reliability.BestEffort, durability,
                    p.History.KeepLast(quality.depth), p.IgnoreLocal.Participant,
                    p.Userdata(user_data), p.DataRepresentation(use_cdrv0_representation=True)]
        if is_writer:
            policies.append(p.WriterDataLifecycle(autodispose=False))
            if quality.transient_local:
                policies.append(p.DurabilityService(0, p.History.KeepLast(quality.depth), -1, -1, -1))
        return self._policy.Qos(*policies)

    def writer(self, topic: str, type_name: str, quality: Quality) -> "Writer":
        entity = self._writer(rmw.dds_topic(topic), type_name, self._qos(quality, self._types.user_data(type_name), True))
        return Writer(entity, self._layer, self._types, type_name)

    def _writer(self, name: str, type_name: str, qos: Any) -> Any:
        return need("cyclonedds.pub", "dds").DataWriter(self._participant, self._topic(name, type_name), qos)

    def expect(self, topic: str, types: tuple[str, ...], quality: Quality) -> None:
        """Discovery finds the writers of a topic at once."""

    def reader(self, topic: str, type_name: str, quality: Quality) -> "Reader":
        """A reader that wait() watches."""
        qos = self._qos(quality, self._types.user_data(type_name), False)
        return self._reader(rmw.dds_topic(topic), type_name, qos, self._waitset)

    def _reader(self, name: str, type_name: str, qos: Any, waitset: Any) -> "Reader":
        sub = need("cyclonedds.sub", "dds")
        entity = sub.DataReader(self._participant, self._topic(name, type_name), qos)
        mask = self._core.SampleState.NotRead | self._core.ViewState.Any | self._core.InstanceState.Any
        condition = self._core.ReadCondition(entity, mask)
        waitset.attach(condition)
        return Reader(entity, condition, int(mask), self._layer)

    def service(self, name: str, type_name: str) -> "Service":
        """The server of a service, for one thread."""
        waitset = self._core.WaitSet(self._participant)
        user_data = f"serviceid={uuid.uuid4().hex};".encode()  # tells clients which reader and writer belong together
        request, reply = rmw.dds_service(name)
        reader = self._reader(request, type_name + rmw.REQUEST, self._qos(Quality(), user_data, False), waitset)
        writer = self._writer(reply, type_name + rmw.RESPONSE, self._qos(Quality(), user_data, True))
        return Service(waitset, reader, writer, self._layer, self._types, type_name)

    def wait(self, timeout_s: float) -> None:
        """Waits until a reader has something, a writer was discovered, or the time is over."""
        self._waitset.wait(int(timeout_s * 1e9))

    def discovered(self) -> list[Endpoint]:
        """Writers of ROS 2 topics that appeared since the last call."""
        new: list[Endpoint] = []
        try:
            samples = self._discovery.take(N=100)
        except self._core.DDSException:
            return new
        for sample in samples:
            endpoint = self._endpoint(sample)
            if sample.sample_info.instance_state != self._core.InstanceState.Alive or not sample.sample_info.valid_data:
                self._known.pop(sample.key, None)
            elif endpoint is not None:
                self._known[sample.key] = endpoint
                new.append(endpoint)
        return new

    def endpoints(self) -> list[Endpoint]:
        """All writers of ROS 2 topics that are known now."""
        return list(self._known.values())

    def close(self) -> None:
        """The end of the process does it."""

    def ended(self) -> str:
        """DDS ends nobody."""
        return ""

    def _endpoint(self, sample: Any) -> Optional[Endpoint]:
        topic = rmw.ros_topic(sample.topic_name or "")
        if topic is None or sample.participant_key == self._key:
            return None
        policy = self._policy.Policy
        return Endpoint(topic, rmw.ros_type(sample.type_name), policy.Reliability.BestEffort not in sample.qos,
                        policy.Durability.Volatile not in sample.qos)


class Writer:
    """Publishes messages of one type."""

    def __init__(self, entity: Any, layer: Any, types: rmw.Types, type_name: str) -> None:
        self._entity, self._layer, self._types, self._type = entity, layer, types, type_name

    def write(self, message: Any) -> bool:
        """False: DDS does not take it, such as for a reader that has stopped."""
        return self._layer.ddspy_write(self._entity._ref, self._types.encode(message, self._type)) == 0


class Reader:
    """Takes messages of one topic, as bytes."""

    def __init__(self, entity: Any, condition: Any, mask: int, layer: Any) -> None:
        self._entity, self._condition, self._mask, self._layer = entity, condition, mask, layer

    def take(self) -> list[bytes]:
        """CDR with the encapsulation, oldest first."""
        return [cdr for cdr, _ in self.take_with_writers()]

    def take_with_writers(self) -> list[tuple[bytes, int]]:
        """The same with the handles of the writers."""
        samples = self._layer.ddspy_take(self._entity._ref, self._mask, 64)
        if isinstance(samples, int):
            return []
        return [(cdr, info.publication_handle) for cdr, info in samples if info.valid_data]

    def participant_of(self, writer: int) -> Any:
        """The key of the participant of a writer; None: it has left."""
        data = self._entity.get_matched_publication_data(writer)
        return data.participant_key if data is not None else None

    def lost(self) -> int:
        """Messages that a writer has sent and that did not come."""
        return self._entity.get_sample_lost_status().total_count


@dataclass
class Request:
    """A request of a client: its fields, and whom the reply is for."""
    message: Any
    participant: Any


class Service:
    """The server of one service."""

    def __init__(self, waitset: Any, reader: Reader, writer: Any, layer: Any, types: rmw.Types, type_name: str) -> None:
        self._waitset, self._reader, self._writer = waitset, reader, writer
        self._layer, self._types, self._type = layer, types, type_name

    def serve(self, timeout_s: float, handle: Callable[[Request], None], refuse: Callable[[Exception], None]) -> None:
        """Waits for requests and hands them over one by one. refuse: one cannot be read, or handling it has failed."""
        self._waitset.wait(int(timeout_s * 1e9))
        for cdr, writer in self._reader.take_with_writers():
            try:
                handle(Request(self._types.decode(cdr, self._type + rmw.REQUEST), self._reader.participant_of(writer)))
            except Exception as error:  # whatever a stranger sends
                refuse(error)

    def answer(self, request: Request, **fields: Any) -> bool:
        """False: DDS does not take it. The reader of a client may be discovered after its request, so this waits for it."""
        end_s = time.monotonic() + ANSWER_WAIT_S
        while not self._is_matched(request.participant) and time.monotonic() < end_s:
            time.sleep(0.01)
        name = self._type + rmw.RESPONSE
        reply = self._types[name](guid=request.message.guid, seq=request.message.seq, **fields)
        return self._layer.ddspy_write(self._writer._ref, self._types.encode(reply, name)) == 0

    def _is_matched(self, participant: Any) -> bool:
        readers = (self._writer.get_matched_subscription_data(handle) for handle in self._writer.get_matched_subscriptions())
        return any(reader is not None and reader.participant_key == participant for reader in readers)
