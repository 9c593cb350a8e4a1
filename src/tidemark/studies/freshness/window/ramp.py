"""Rates that double step by step while a reader looks on: until the table falls behind, or the producer does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.stream.paced import PacedProducer, Sent
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.window.reader import Reader
from tidemark.studies.freshness.window.samples import End, FreshnessWindow, Look, Step
from tidemark.systems.tables import TableSystem

LATE_SECONDS = 0.5  # that an event may be sent after its moment before a run is marked, and a ramp ends
LOOK_SECONDS = 0.05
BEHIND = 1 / 2  # of a step: so much older than an interval the oldest event that nobody sees is where the ramp ends
TRIES = 10  # at a table's files, which come and go while it is written


@dataclass(frozen=True, slots=True)
class Climbed:
    """One step, and what its events cost: between its begin and its end, in which not all of them became visible."""

    rate: int
    begin_s: float  # after the first event's moment
    seconds: float
    events: int
    latest_s: float  # that an event was sent after its moment, at worst
    lag_s: float  # at its end: the age of the oldest event that nobody had seen
    cpu_s: float
    files: int  # that the table has more at its end, data and metadata


def lag_seconds(window: FreshnessWindow, look: Look | None, passed_ns: int) -> float:
    """The age of the oldest event of `window` that `look` did not find, so long after the first event's moment."""
    left = max((0 if look is None else look.rows) - window.warm, 0)
    for step in window.steps:
        if left < step.events:
            return (passed_ns - step.begin_ns - round(left * 1e9 / step.rate)) / 1e9
        left -= step.events
    return 0.0


class Ramp:
    """One climb. `spent` are processor seconds so far; `goes_on` says whether the window does, or raises."""

    def __init__(
        self,
        settings: FreshnessSettings,
        producer: PacedProducer,
        table: TableSystem,
        reader: Reader,
        spent: Callable[[], float],
        goes_on: Callable[[], bool],
    ) -> None:
        self._settings, self._producer, self._table = settings, producer, table
        self._reader, self._spent, self._goes_on = reader, spent, goes_on
        self._climbed: list[Climbed] = []
        self._end = End.STEPS

    def climb(self, window: FreshnessWindow) -> Sent:
        """Send step after step from `window.begin_ns` on, each due when the one before ends; what was sent in all."""
        step_ns = round(self._settings.step_seconds * 1e9)
        sent = Sent(0, 0.0, 0.0)
        for number in range(self._settings.steps):
            rate = self._settings.rate << number
            step = Step(number * step_ns, rate, round(rate * self._settings.step_seconds))
            cpu_s, files = self._spent(), self._files()
            self._producer.pace(step.events, rate, window.begin_ns + step.begin_ns)
            while time.time_ns() < window.begin_ns + step.begin_ns + step_ns and self._goes_on():
                time.sleep(LOOK_SECONDS)
            # Before the wait for a producer that is behind: what is spent then belongs to no step.
            passed_ns = time.time_ns() - window.begin_ns
            cpu_s, files = self._spent() - cpu_s, self._files() - files
            last = self._reader.looks[-1] if self._reader.looks else None
            did = self._producer.wait()
            window.steps.append(step)
            sent = Sent(sent.events + did.events, sent.cpu_s + did.cpu_s, max(sent.latest_s, did.latest_s))
            lag_s = lag_seconds(window, last, passed_ns)
            begin_s = step.begin_ns / 1e9
            self._climbed.append(
                Climbed(rate, begin_s, self._settings.step_seconds, step.events, did.latest_s, lag_s, cpu_s, files)
            )
            if self._is_over(self._climbed[-1]) or not self._goes_on():
                break
        return sent

    def found(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"end": str(self._end), "steps": [asdict(each) for each in self._climbed]}

    def _is_over(self, step: Climbed) -> bool:
        interval_s = (self._settings.rules.interval_ms or 0) / 1000
        if step.latest_s > LATE_SECONDS:
            self._end = End.PRODUCER
        elif step.lag_s > interval_s + BEHIND * step.seconds:
            self._end = End.LAG
        else:
            return False
        return True

    def _files(self) -> int:
        for _ in range(TRIES):
            try:
                footprint = self._table.footprint()
            except FileNotFoundError:
                continue  # one of them went between being listed and being looked at
            return footprint.data_files + footprint.metadata_files
        return 0
