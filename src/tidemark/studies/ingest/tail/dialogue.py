"""Line protocol of a program that sends requests by a schedule, be it one writer or all clients of a front.

    prints "ready"
    reads "write",                            prints "warm": the uncounted requests were sent
    reads "close <seconds> <most>",           prints "closed": after that time, or `most` requests, in a closed loop
    reads "pace <arrivals> <rate> <seconds> <longest wait> <seed> ...",     prints "paced": the schedule is made
    reads "go <start> <end>",                 prints "done <errors as JSON>", once all was taken or given up

`end` is where the schedule ends; its last requests may start later. The intended starts are left in `NOTES` in the
working directory of the program.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tidemark.studies.ingest.tail.schedule import Due, intended

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOTES = "meant.npz"


class Asking(Protocol):
    """Sender of requests: a writer, or clients, each with its own records."""

    said: list[str]

    def warm(self) -> None:
        """Send the uncounted warm-up requests."""

    def in_closed_loop(self, end_ns: int, most: int) -> None:
        """Send each request when the previous one is answered, until `end_ns` or until `most` requests were sent."""

    def by_schedule(self, due: Due) -> list[list[int]]:
        """Send requests by a schedule; return the intended starts of each client's requests, in their order."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes that a program leaves on its schedule."""

    meant: tuple[NDArray[np.int64], ...]  # intended starts in nanoseconds, for each client with records
    scheduled: int
    overloaded: bool

    @property
    def not_begun(self) -> int:
        return self.scheduled - sum(len(each) for each in self.meant)


def read_notes(folder: Path) -> Notes:
    import numpy as np

    with np.load(folder / NOTES) as file:
        count = int(file["count"])
        meant = tuple(file[f"meant_{number}"] for number in range(count))
        return Notes(meant, int(file["scheduled"]), bool(file["overloaded"]))


def _leave(due: Due, meant: list[list[int]]) -> None:
    import numpy as np

    each = {f"meant_{number}": np.array(starts, np.int64) for number, starts in enumerate(meant)}
    np.savez(NOTES, count=len(meant), scheduled=len(due.starts), overloaded=due.overloaded, **each)  # type: ignore[arg-type]


def follow(asking: Asking) -> None:
    """Print "ready" and follow the commands on standard input, to the end."""
    print("ready", flush=True)
    offsets, longest_ns = None, 0
    for line in sys.stdin.buffer:
        match line.decode().split():
            case ["write"]:
                asking.warm()
                print("warm", flush=True)
            case ["close", seconds, most]:
                asking.in_closed_loop(time.perf_counter_ns() + round(1e9 * float(seconds)), int(most))
                print("closed", flush=True)
            case ["pace", arrivals, rate, seconds, longest, *seed]:
                offsets = intended(arrivals, float(rate), float(seconds), tuple(map(int, seed)))
                longest_ns = round(1e9 * float(longest))
                print("paced", flush=True)
            case ["go", start, _] if offsets is not None:
                due = Due((int(start) + offsets).tolist(), longest_ns)
                _leave(due, asking.by_schedule(due))
                break
            case other:
                sys.exit(f"received an unknown command: {other}")
    print("done", json.dumps(asking.said), flush=True)
