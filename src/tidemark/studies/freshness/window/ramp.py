"""Rates that double step by step while a reader watches, until the table or the producer falls behind."""

from __future__ import annotations

import time
from collections.abc import Callable

from tidemark.stream.paced import PacedProducer, Sent
from tidemark.studies.freshness.record import End, RampRecord, RampStep
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.window.samples import FreshnessWindow, Look, Reader, Step
from tidemark.systems.tables import TableSystem

LATE_SECONDS = 0.5  # delay of an event behind its due time above which a run is marked and a ramp ends
LOOK_SECONDS = 0.05
BEHIND = 1 / 2  # of a step: the ramp ends if the oldest unseen event is older than an interval by more than this
TRIES = 10  # at listing a table's files, which come and go while it is written


def lag_seconds(window: FreshnessWindow, look: Look | None, passed_ns: int) -> float:
    """Return the age of the oldest event of `window` that `look` missed, `passed_ns` after the first event was due."""
    left = max((0 if look is None else look.rows) - window.warm, 0)
    for step in window.steps:
        if left < step.events:
            return (passed_ns - step.begin_ns - round(left * 1e9 / step.rate)) / 1e9
        left -= step.events
    return 0.0


class Ramp:
    """One climb. `spent` returns the CPU seconds so far; `goes_on` returns whether the window continues, or raises."""

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
        self._climbed: list[RampStep] = []
        self._end = End.STEPS

    def climb(self, window: FreshnessWindow) -> Sent:
        """Send steps from `window.begin_ns` on, each due when the previous one ends; return the totals sent."""
        step_ns = round(self._settings.step_seconds * 1e9)
        sent = Sent(0, 0.0, 0.0)
        for number in range(self._settings.steps):
            rate = self._settings.rate << number
            step = Step(number * step_ns, rate, round(rate * self._settings.step_seconds))
            cpu_s, files = self._spent(), self._files()
            self._producer.pace(step.events, rate, window.begin_ns + step.begin_ns)
            while time.time_ns() < window.begin_ns + step.begin_ns + step_ns and self._goes_on():
                time.sleep(LOOK_SECONDS)
            # Before the wait for a late producer: CPU time spent during that wait belongs to no step.
            passed_ns = time.time_ns() - window.begin_ns
            cpu_s, files = self._spent() - cpu_s, self._files() - files
            last = self._reader.looks[-1] if self._reader.looks else None
            did = self._producer.wait()
            window.steps.append(step)
            sent = Sent(sent.events + did.events, sent.cpu_s + did.cpu_s, max(sent.latest_s, did.latest_s))
            lag_s = lag_seconds(window, last, passed_ns)
            begin_s = step.begin_ns / 1e9
            self._climbed.append(
                RampStep(rate, begin_s, self._settings.step_seconds, step.events, did.latest_s, lag_s, cpu_s, files)
            )
            if self._is_over(self._climbed[-1]) or not self._goes_on():
                break
        return sent

    @property
    def record(self) -> RampRecord:
        return RampRecord(str(self._end), tuple(self._climbed))

    def _is_over(self, step: RampStep) -> bool:
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
                continue  # a file disappeared after it was listed
            return footprint.data_files + footprint.metadata_files
        return 0
