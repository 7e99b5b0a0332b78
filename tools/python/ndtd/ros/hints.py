"""Hints of the log about topics on which nothing comes."""
from typing import Optional

from . import msgtypes, transport
from .options import Log, Options
from .receiver import Input, Receiver

AFTER_S = 5.0
OPTIONS = {msgtypes.ODOMETRY: "--odometry", msgtypes.TWIST: "--twist", msgtypes.TWIST_COVARIANCE: "--twist", msgtypes.IMU: "--imu",
           msgtypes.FIX: "--gnss", **{name: "--scan" for name in msgtypes.SCANS}, **{name: "--twist" for name in msgtypes.VELOCITY}}


def tell(receiver: Receiver, options: Options, log: Log, now_s: float, begin_s: float) -> None:
    """Prints one line per topic and minute; times are monotonic."""
    if now_s - begin_s < AFTER_S:
        return
    participant = receiver.participant
    if not options.scans:
        log.seldom("no scans", f"no publisher of {msgtypes.CLOUD} {participant.place}: {_seen(participant)}; {participant.advice}")
    # Topics that need not be published, or come only once.
    quiet = (options.initial_pose, options.tf_static_topic, options.tf_topic if options.tf != "map-odom" else None)
    for one in list(receiver.inputs):
        if one.topic in quiet:
            continue
        if now_s - max(one.last_s, begin_s) < AFTER_S:
            log.forget(one.topic)
        else:
            log.seldom(one.topic, _why_silent(one, participant, options))


def _seen(participant: transport.Participant) -> str:
    topics = {endpoint.topic for endpoint in participant.endpoints()}
    return f"{len(topics)} topics of {participant.name} are seen" if topics else f"no topic of {participant.name} is seen at all"


def _why_silent(one: Input, participant: transport.Participant, options: Options) -> str:
    endpoints = participant.endpoints()
    writers = [endpoint for endpoint in endpoints if endpoint.topic == one.topic]
    wanted = msgtypes.CLOUD if one.is_scan else " or ".join(one.types)
    if not writers:
        others = sorted({endpoint.topic for endpoint in endpoints if endpoint.type in one.types})
        hint = f"that type is on {', '.join(others)}" if others else _seen(participant)
        return f"no publisher of {one.topic} ({wanted}) {participant.place}: {hint}"
    if one.reader is None:
        return f"{one.topic} has the type {writers[0].type}, not {wanted}" + \
            (f": {OPTIONS[writers[0].type]} takes it" if writers[0].type in OPTIONS else "")
    if one.received == 0 and one.reader.lost() == 0:
        mismatch = _mismatch(one, writers[0], options) or participant.silence_advice
        return f"nothing comes on {one.topic}, though it is advertised" + (f": {mismatch}" if mismatch else "")
    return f"nothing comes on {one.topic} any more, {one.received} messages came, {one.reader.lost()} were lost: " \
        f"{participant.loss_advice}"


def _mismatch(one: Input, writer: transport.Endpoint, options: Options) -> Optional[str]:
    if one.is_scan and options.reliable and not writer.reliable:
        return "its writer is best effort, leave --reliable out"
    return None
