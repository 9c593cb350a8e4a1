"""Samples of one window by a schedule: a row per attempt, timed from the intended start of its request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidemark.studies.ingest.tail.dialogue import Notes
from tidemark.studies.ingest.window.samples import IngestWindow

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True)
class TailWindow(IngestWindow):
    """Window in which `response_ns` counts from the intended start; `wait_ns` is the part of it before the first try.

    Attempts that were due in the window and began after its end are included; leaving them out would omit the longest
    waits. A window that was given up as overloaded ends with its last attempt.
    """

    notes: Notes | None = None
    of_front: bool = False  # its answers name the commit that holds a request

    def take(self, records: Sequence[NDArray[np.int64]], start_ns: int) -> None:
        IngestWindow.take(self, records, start_ns)
        assert self.notes is not None, "a schedule's notes are read before its records"
        columns = self.columns
        meant = np.zeros(self.operations, np.int64)
        for number, starts in enumerate(self.notes.meant, 1):
            own = columns["writer"] == number
            if own.any():
                sequence = columns["sequence"][own]
                meant[own] = starts[sequence - sequence.min()] - start_ns
        ends = columns["start_ns"] + columns["elapsed_ns"]
        service = columns["response_ns"]  # from the first try on, as in the closed loop
        columns["response_ns"] = ends - meant
        columns["wait_ns"] = columns["response_ns"] - service
        if self.of_front:
            columns["commit"], columns["commits"] = columns["commits"], columns["commit"]
        if self.notes.overloaded:
            self.elapsed_ns = min(self.elapsed_ns, int(ends.max()))
