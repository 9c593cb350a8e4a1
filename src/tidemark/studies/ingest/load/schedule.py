"""Open-loop schedule: intended starts of requests, whatever happened to earlier ones, and their distribution.

    due = Due(start_ns + intended(POISSON, 45.0, 8.0, seed), limits)
    while (meant_ns := due.take(clock())) is not None:      the oldest not yet taken; it may lie ahead
        ...wait until then, send, note meant_ns

A request that falls due while all clients are busy starts late, and its response time counts from its intended
start: a stall delays all requests that fall due during it. In a closed loop it delays one, and the others are never
sent (coordinated omission).

A program that sends requests, be it one writer or all clients of a front, exchanges these lines:

    prints "ready"
    reads "write",                            prints "warm": the uncounted requests were sent
    reads "close <seconds> <most>",           prints "closed": after that time, or `most` requests, in a closed loop
    reads "pace <arrivals> <rate> <seconds> <longest wait> <seed> ...",     prints "paced": the schedule is made
    reads "go <start> <end>",                 prints "done <errors as JSON>", once all was sent or given up

`start` and `end` are nanoseconds of the kernel's monotonic clock, which all processes share. Without a schedule, a
closed loop runs between them: after `end` it begins no request, and retries none. A schedule ends at `end`; its last
requests may start later. The intended starts are left in a file in the working directory of the program.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POISSON, CONSTANT, SPREAD = "poisson", "constant", "spread"
MOST_DUE = 100_000  # due requests that are not yet taken: beyond it, the rate is too high


def intended(arrivals: str, rate: float, seconds: float, seed: tuple[int, ...]) -> NDArray[np.int64]:
    """Return int64[requests]: nanoseconds from a window's opening to each intended start, all inside its `seconds`.

    `rate` is per second; gaps are random (exponential, from `seed`) or all of one length. SPREAD has one request in
    each interval of that length, at a random moment of it.
    """
    import numpy as np

    draw, gaps = np.random.default_rng(seed), np.empty(0)
    if arrivals in (CONSTANT, SPREAD):
        intervals = np.arange(round(rate * seconds) + 1)
        starts = (intervals + (1 if arrivals == CONSTANT else draw.random(len(intervals)))) / rate
    else:
        while gaps.sum() < seconds:
            gaps = np.concatenate([gaps, draw.exponential(1 / rate, int(rate * seconds) + 16)])
        starts = np.cumsum(gaps)
    return np.rint(1e9 * starts[starts < seconds]).astype(np.int64)


@dataclass(slots=True)
class Due:
    """Schedule served oldest first. `overloaded`: given up, as requests fell due faster than they were served."""

    starts: list[int]  # nanoseconds of the clients' clock, ascending
    longest_wait_ns: int
    most: int = MOST_DUE
    taken: int = 0
    overloaded: bool = False

    def take(self, now_ns: int) -> int | None:
        """Return the intended start of the oldest request not yet taken; None if none is left, or if overloaded."""
        if self.overloaded or self.taken == len(self.starts):
            return None
        oldest = self.starts[self.taken]
        waiting = bisect_right(self.starts, now_ns, lo=self.taken) - self.taken
        if waiting > self.most or now_ns - oldest > self.longest_wait_ns:
            self.overloaded = True
            return None
        self.taken += 1
        return oldest


def work_off(due: Due, ask: Callable[[], None], clock: Callable[[], int], sleep: Callable[[float], None]) -> list[int]:
    """Send one request after the other, none before its time; return their intended starts, in the same order."""
    taken: list[int] = []
    while (meant := due.take(clock())) is not None:
        while (ahead := meant - clock()) > 0:
            sleep(ahead / 1e9)
        taken.append(meant)
        ask()
    return taken


def notes_file(number: int) -> str:
    """Return the name of the file with the notes of program `number`, from 1."""
    return f"meant-{number}.npz"


class Asking(Protocol):
    """Sender of requests: a writer, or clients, each with its own records."""

    def warm(self) -> None:
        """Send the uncounted warm-up requests."""

    def until(self, end_ns: int) -> None:
        """Send each request when the previous one is answered, until `end_ns`."""

    def in_closed_loop(self, end_ns: int, most: int) -> None:
        """Send requests as `until` does, but at most `most`."""

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


def read_notes(folder: Path, number: int = 1) -> Notes:
    import numpy as np

    with np.load(folder / notes_file(number)) as file:
        count = int(file["count"])
        meant = tuple(file[f"meant_{number}"] for number in range(count))
        return Notes(meant, int(file["scheduled"]), bool(file["overloaded"]))


def _leave(due: Due, meant: list[list[int]], place: str) -> None:
    import numpy as np

    each = {f"meant_{number}": np.array(starts, np.int64) for number, starts in enumerate(meant)}
    np.savez(place, count=len(meant), scheduled=len(due.starts), overloaded=due.overloaded, **each)  # type: ignore[arg-type]


def follow(asking: Asking, number: int = 1) -> None:
    """Print "ready" and follow the commands on standard input, up to the end of what "go" starts.

    `number` is that of the program among those that share its working directory.
    """
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
            case ["go", start, end] if offsets is None:
                time.sleep(max(0, int(start) - time.perf_counter_ns()) / 1e9)
                asking.until(int(end))
                return
            case ["go", start, _] if offsets is not None:
                due = Due((int(start) + offsets).tolist(), longest_ns)
                _leave(due, asking.by_schedule(due), notes_file(number))
                return
            case other:
                sys.exit(f"received an unknown command: {other}")
