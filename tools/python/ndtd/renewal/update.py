"""The stages of ndt-map update, in their order, from a map and recordings of later drives to proven changes."""
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

import numpy as np

from .._arguments import CommandError
from .._progress import Progress
from ..mapping.cloud_store import CloudStore
from ..mapping.drive import Drive, open_drive
from . import localise, proof, votes
from .localise import Located, Voter
from .overlay import Change
from .prior_map import PriorMap

HELD_M, HELD_SIGMAS = 0.05, 4.0  # by which a pose may differ in the part of the map that stays
LEAST_HELD = 0.5  # of the voters of a recording: with fewer it casts no vote


class RenewalError(CommandError):
    """An overlay that is not written; one line for the user."""


@dataclass
class Recording:
    """A recording and its use. parts: numbers of its votes, one, or two for its halves."""

    drive: Drive
    located: Located
    parts: "list[int]" = field(default_factory=list)
    voters: "list[Voter]" = field(default_factory=list)
    not_held: int = 0  # verified scans that the untouched part of the map does not hold
    reason: str = ""  # why it casts no vote

    @property
    def name(self) -> str:
        return self.drive.name


@dataclass
class Renewal:
    """Results from a map and recordings."""

    prior: PriorMap
    recordings: "list[Recording]"
    changes: "dict[int, Change]" = field(default_factory=dict)
    tally: votes.Tally = field(default_factory=votes.Tally)
    proofs: "list[proof.Proof]" = field(default_factory=list)

    @property
    def voting(self) -> "list[Recording]":
        return [one for one in self.recordings if one.voters]


def _open(recordings: "list[str]", prior: PriorMap, work: Path, options: Any) -> "list[Recording]":
    """Each recording, replayed in the map."""
    out = []
    for number, name in enumerate(sorted(recordings)):
        drive = open_drive(name, work, number, options)
        localise.check_scans(drive)
        with Progress(f"{Path(name).name} in the map", options.quiet) as progress:
            out.append(Recording(drive, localise.locate(drive, prior.path, options, progress.update)))
    return out


def _read(recordings: "list[Recording]", store: CloudStore) -> None:
    """Points of the scans that may vote."""
    for one in recordings:
        count = int(one.located.verified.sum())
        if not localise.may_vote(one.located):
            one.reason = f"{count} of {len(one.located.verified)} scans are verified in this map: it casts no vote"
            continue
        one.voters = localise.read_voters(one.drive, one.located, 0, store)


def _divide(voting: "list[Recording]") -> None:
    """Numbers the parts whose votes are counted together: two in a row for each recording, of which one that is alone uses both."""
    for number, one in enumerate(voting):
        middle = len(one.located.stamps_ns) // 2 if len(voting) == 1 else len(one.located.stamps_ns)
        for voter in one.voters:
            voter.part = 2 * number + (voter.row >= middle)
        one.parts = sorted({voter.part for voter in one.voters})


def _drop_drifting(renewal: Renewal, changes: "dict[int, Change]", work: Path, options: Any) -> None:
    """A scan votes only where the part of the map that stays holds its pose: it is verified there as well, at the same place."""
    untouched = {number: replace(one, added_m=np.empty((0, 3))) for number, one in changes.items()}
    renewal.prior.write_overlay(work / "untouched", untouched)
    for one in renewal.voting:
        with Progress(f"{Path(one.name).name} in what stays", options.quiet) as progress:
            there = localise.locate(one.drive, work / "untouched", options, progress.update)
        off_m = np.linalg.norm(there.position_m - one.located.position_m, axis=1)
        limit_m = HELD_M + HELD_SIGMAS * one.located.deviation_m
        held = there.verified & (off_m <= limit_m)
        kept = [voter for voter in one.voters if held[voter.row]]
        one.not_held = len(one.voters) - len(kept)
        if len(kept) < LEAST_HELD * len(one.voters):
            one.reason = f"the part of the map that stays holds {len(kept)} of {len(one.voters)} poses: it casts no vote"
            kept = []
        one.voters = kept


def _prove(renewal: Renewal, found: "dict[int, dict[int, Change]]", work: Path, options: Any) -> None:
    """Replays each held-out recording (or half) in the map that the others make."""
    voting = renewal.voting
    halves = len(voting) == 1
    for number, one in enumerate(voting):
        place = work / f"renewed{number}"
        renewal.prior.write_overlay(place, found[one.parts[-1]])
        with Progress(f"{Path(one.name).name}, held out", options.quiet) as progress:
            after = localise.locate(one.drive, place, options, progress.update)
        begin = len(after.stamps_ns) // 2 if halves else 0
        renewal.proofs.append(proof.compare(one.name, one.located, after, begin))


def _subsets(renewal: Renewal) -> "dict[int, set[int]]":
    """All parts, and for each held-out one the others; by number."""
    every = {part for one in renewal.voting for part in one.parts}
    held = {one.parts[-1]: every - (set(one.parts) if len(renewal.voting) > 1 else {one.parts[-1]}) for one in renewal.voting}
    return {votes.ALL: every, **held}


def _count(renewal: Renewal, store: CloudStore, subsets: "dict[int, set[int]]", what: str, options: Any) -> Any:
    with Progress(what, options.quiet) as progress:
        return votes.count_votes(renewal.prior, store, [voter for one in renewal.voting for voter in one.voters], subsets, progress.update)


def renew(given: Any, recordings: "list[str]", work: Path, options: Any, note: Callable[[str], None]) -> Renewal:
    """All stages; RenewalError where the overlay is refused, or nobody votes. `work`: a folder for what is temporary.

    options: config, deskew, given_start, frame, import_options, quiet of the command line."""
    renewal = Renewal(PriorMap(given), [])
    renewal.recordings = _open(recordings, renewal.prior, work, options)
    with CloudStore(work / "clouds") as store:
        _read(renewal.recordings, store)
        _divide(renewal.voting)
        if renewal.voting:
            tentative, _ = _count(renewal, store, {votes.ALL: {part for one in renewal.voting for part in one.parts}}, "votes", options)
            _drop_drifting(renewal, tentative[votes.ALL], work, options)
            _divide(renewal.voting)
        for one in renewal.recordings:
            if one.reason:
                note(f"{one.name}: {one.reason}")
        if not renewal.voting:
            raise RenewalError("no recording is localised in this map well enough to tell what has changed in it; nothing is written")
        if len(renewal.voting) == 1 and len(renewal.voting[0].parts) < 2:
            raise RenewalError(f"{renewal.voting[0].name}: all its scans that vote are in one half of it, and no other recording votes: "
                               "nothing is left to prove the changes with; nothing is written")
        found, renewal.tally = _count(renewal, store, _subsets(renewal), "votes that are held", options)
    renewal.changes = found[votes.ALL]
    _prove(renewal, found, work, options)
    for proven in renewal.proofs:
        if proven.harm:
            raise RenewalError(f"{proven.name}: held out, it is worse in the renewed map: {proven.harm}; nothing is written")
    return renewal
