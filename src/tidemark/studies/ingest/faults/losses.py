"""What each kill cost: what was acknowledged before it and is gone after it, and what became of what was in doubt.

A batch counts for one kill alone: what a look misses that an earlier one missed already is not counted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.studies.ingest.faults.faults import Kill, Look
from tidemark.studies.ingest.load.records import FIELDS
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.outcomes import ACKED, NUMBERS, SENT, UNKNOWN

Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Loss:
    """One kill and what was found after it. Batches, but where rows are said; moments from the window's opening."""

    victim: str
    title: str
    moment_s: float
    started_s: float  # from the kill until the server answers, or the new writer's client is open
    down_s: float  # from the kill until each that it concerns had a commit acknowledged again
    in_flight: int  # attempts that were under way at the kill
    acked: int  # acknowledged since the kill before
    unknown: int  # whose outcome their writer does not know, since the kill before
    done: int  # of those, as they were read back at the end
    not_done: int
    lost: int  # rows that were acknowledged before the kill, and are not there after it
    doubled: int  # rows that are there more than once
    partial: int  # batches of which some rows are there and some are not
    holds: bool
    said: str = ""  # why nobody could look


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What was found before the first kill: rows that are lost or doubled, and batches in part, without any."""

    lost: int
    doubled: int
    partial: int
    holds: bool
    said: str = ""


@dataclass(slots=True)
class _Writer:
    """One writer's batches by their numbers, and what was found of them so far."""

    attempts: Mapping[str, Ints]
    acked_ns: Ints  # the moment; NEVER
    missed: NDArray[np.bool_]
    doubled: Ints  # rows
    partial: NDArray[np.bool_]

    @classmethod
    def of(cls, records: Ints) -> _Writer:
        columns: dict[str, Ints] = dict(zip(FIELDS, records.T, strict=True))
        count = int(columns["sequence"].max(initial=-1)) + 1
        acked_ns, chosen = np.full(count, NEVER), columns["outcome"] == NUMBERS[ACKED]
        acked_ns[columns["sequence"][chosen]] = (columns["start_ns"] + columns["elapsed_ns"])[chosen]
        nothing = np.zeros(count, bool)
        return cls(columns, acked_ns, nothing, np.zeros(count, np.int64), nothing.copy())

    def look(self, counts: Ints, until_ns: int) -> tuple[int, int, int]:
        """Rows that are lost now of what was acknowledged until then, rows doubled now, batches partial now.

        `counts`: int64[batches, rows], how often each id is there.
        """
        there = (counts > 0).sum(axis=1)
        gone = (self.acked_ns <= until_ns) & (there < counts.shape[1]) & ~self.missed
        lost = int((counts.shape[1] - there)[gone].sum())
        self.missed = self.missed | gone
        doubled = (counts > 1).sum(axis=1)
        more = int(np.maximum(doubled - self.doubled, 0).sum())
        self.doubled = np.maximum(self.doubled, doubled)
        partial = (there > 0) & (there < counts.shape[1])
        new = int((partial & ~self.partial).sum())
        self.partial = self.partial | partial
        return lost, more, new


def account(
    records: Sequence[Ints],
    start_ns: int,
    undisturbed: tuple[int, Look],
    kills: Sequence[Kill],
    final: Look,
    rows: int,
) -> tuple[Undisturbed, list[Loss]]:
    """What was lost before any kill, and by each; `records` of the writers from number 1, `rows` of a batch."""
    writers = [_Writer.of(each) for each in records]

    def found(look: Look, until_ns: int) -> tuple[int, int, int]:
        parts = [
            writer.look(_counts(look, number, len(writer.acked_ns), rows), until_ns)
            for number, writer in enumerate(writers, 1)
        ]
        return tuple(map(sum, zip(*parts, strict=True)))  # type: ignore[return-value]

    before = found(undisturbed[1], undisturbed[0]) if undisturbed[1].ids is not None else (0, 0, 0)
    first = Undisturbed(*before, holds=not any(before) and undisturbed[1].ids is not None, said=undisturbed[1].said)
    losses, previous_ns, previous_back_ns = [], start_ns, start_ns
    for place, kill in enumerate(kills):
        wrong = found(kill.look, kill.killed_ns) if kill.look.ids is not None else (0, 0, 0)
        until_ns = kill.back_ns if place + 1 < len(kills) else NEVER
        acked = unknown = done = in_flight = 0
        for number, writer in enumerate(writers, 1):
            acked += int(((writer.acked_ns > previous_ns) & (writer.acked_ns <= kill.killed_ns)).sum())
            begun, outcome = writer.attempts["start_ns"], writer.attempts["outcome"]
            ended = np.where(outcome == SENT, NEVER, begun + writer.attempts["elapsed_ns"])
            alive = (outcome != SENT) | (begun >= previous_back_ns)  # a killed writer's last call is under way no more
            in_flight += int(((begun <= kill.killed_ns) & (ended >= kill.killed_ns) & alive).sum())
            doubt = np.isin(outcome, (SENT, NUMBERS[UNKNOWN])) & (begun >= previous_back_ns) & (begun < until_ns)
            batches = writer.attempts["sequence"][doubt]
            there = (_counts(final, number, len(writer.acked_ns), rows) > 0).any(axis=1)
            unknown, done = unknown + len(batches), done + int(there[batches].sum())
        losses.append(
            Loss(
                victim=kill.victim,
                title=kill.title,
                moment_s=_seconds(kill.killed_ns - start_ns),
                started_s=_seconds(kill.started_ns - kill.killed_ns),
                down_s=_seconds(kill.back_ns - kill.killed_ns),
                in_flight=in_flight,
                acked=acked,
                unknown=unknown,
                done=done,
                not_done=unknown - done if final.ids is not None else 0,
                lost=wrong[0],
                doubled=wrong[1],
                partial=wrong[2],
                holds=not any(wrong) and kill.look.ids is not None,
                said=kill.look.said,
            )
        )
        previous_ns, previous_back_ns = kill.killed_ns, kill.back_ns
    return first, losses


def plain(undisturbed: Undisturbed, losses: Sequence[Loss]) -> dict[str, Any]:
    """Both as JSON has them."""
    return {"undisturbed": asdict(undisturbed), "kills": [asdict(each) for each in losses]}


def _counts(look: Look, number: int, batches: int, rows: int) -> Ints:
    """int64[batches, rows]: how often each id of a writer was seen."""
    if look.ids is None:
        return np.zeros((batches, rows), np.int64)
    own = (look.ids & ((1 << ID_BITS) - 1))[(look.ids >> ID_BITS) == number]
    counts = np.bincount(own[own < rows * batches], minlength=rows * batches)
    return counts.reshape(batches, rows).astype(np.int64)


def _seconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e9, 6)
