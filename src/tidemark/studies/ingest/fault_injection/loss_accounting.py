"""Cost of each kill: acknowledged rows that are missing after it, and the final status of batches of unknown outcome.

A batch counts for one kill only: a loss that an earlier look already found is not counted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemark.studies.ingest.fault_injection.faults import Kill, Look
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, SENT, UNKNOWN, by_field
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.record import Loss, Losses, Undisturbed

Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


@dataclass(slots=True)
class _Writer:
    """One writer's batches by sequence number, and the findings on them so far."""

    attempts: Mapping[str, Ints]
    acked_ns: Ints  # moment of the acknowledgement, or NEVER
    missed: NDArray[np.bool_]
    doubled: Ints  # rows
    partial: NDArray[np.bool_]

    @classmethod
    def of(cls, records: Ints) -> _Writer:
        columns = by_field(records)
        count = int(columns["sequence"].max(initial=-1)) + 1
        acked_ns, chosen = np.full(count, NEVER), columns["outcome"] == NUMBERS[ACKED]
        acked_ns[columns["sequence"][chosen]] = (columns["start_ns"] + columns["elapsed_ns"])[chosen]
        nothing = np.zeros(count, bool)
        return cls(columns, acked_ns, nothing, np.zeros(count, np.int64), nothing.copy())

    def look(self, counts: Ints, until_ns: int) -> tuple[int, int, int]:
        """Return newly lost rows of those acknowledged until `until_ns`, newly doubled rows, newly partial batches.

        `counts` is int64[batches, rows]: how often each id is present.
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
) -> Losses:
    """Return the losses before any kill and by each kill; `records` are of writers 1, 2, ..., `rows` per batch."""
    writers = [_Writer.of(each) for each in records]

    def found(look: Look, until_ns: int) -> tuple[int, int, int]:
        parts = [
            writer.look(_counts(look, number, len(writer.acked_ns), rows), until_ns)
            for number, writer in enumerate(writers, 1)
        ]
        return tuple(map(sum, zip(*parts, strict=True)))  # type: ignore[return-value]

    before = found(undisturbed[1], undisturbed[0]) if undisturbed[1].ids is not None else (0, 0, 0)
    first = Undisturbed(*before, holds=not any(before) and undisturbed[1].ids is not None, said=undisturbed[1].said)
    losses, previous_ns = [], start_ns
    causes = [_causes(writer.attempts, kills) for writer in writers]
    for place, kill in enumerate(kills):
        wrong = found(kill.look, kill.killed_ns) if kill.look.ids is not None else (0, 0, 0)
        acked = unknown = done = in_flight = 0
        for number, (writer, cause) in enumerate(zip(writers, causes, strict=True), 1):
            acked += int(((writer.acked_ns > previous_ns) & (writer.acked_ns <= kill.killed_ns)).sum())
            begun, outcome = writer.attempts["start_ns"], writer.attempts["outcome"]
            ends = begun + writer.attempts["elapsed_ns"]
            ends_later = np.where(
                outcome == SENT, cause == place, ends >= kill.killed_ns
            )  # SENT: its writer was killed
            in_flight += int(((begun <= kill.killed_ns) & ends_later).sum())
            doubt = np.isin(outcome, (SENT, NUMBERS[UNKNOWN])) & (begun >= start_ns) & (cause == place)
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
        previous_ns = kill.killed_ns
    return Losses(first, tuple(losses))


def _causes(attempts: Mapping[str, Ints], kills: Sequence[Kill]) -> Ints:
    """Return int64[attempts]: the index of the kill that each attempt counts for.

    That is the first kill after all had written again, or a later one that happened while the attempt was under way:
    one writer's next attempt may begin before the slowest writer is back, and last until the next kill.
    """
    killed, back = (np.array([getattr(kill, name) for kill in kills]) for name in ("killed_ns", "back_ns"))
    begun = attempts["start_ns"]
    by_start = np.searchsorted(back, begun, "right")
    by_end = np.searchsorted(killed, begun + attempts["elapsed_ns"], "right") - 1
    of_killed_writer = np.searchsorted(killed, begun, "left")  # its last attempt has no end
    last = np.where(attempts["outcome"] == SENT, of_killed_writer, np.maximum(by_start, by_end))
    return np.minimum(last, len(kills) - 1)


def _counts(look: Look, number: int, batches: int, rows: int) -> Ints:
    """Return int64[batches, rows]: how often each id of a writer was seen."""
    if look.ids is None:
        return np.zeros((batches, rows), np.int64)
    own = (look.ids & ((1 << ID_BITS) - 1))[(look.ids >> ID_BITS) == number]
    counts = np.bincount(own[own < rows * batches], minlength=rows * batches)
    return counts.reshape(batches, rows).astype(np.int64)


def _seconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e9, 6)
