"""When requests are meant to start, whatever became of those before, and who takes which of them.

    due = Due(start_ns + intended(POISSON, 45.0, 8.0, seed), limits)
    while (meant_ns := due.take(clock())) is not None:      the oldest that nobody took; it may lie ahead
        ...wait until then, ask, note meant_ns

A request whose time came while everybody was busy starts late, and its response is counted from when it was meant to
start: a stall delays all requests that came during it. In a closed loop it delays one, and the others are never asked
(coordinated omission).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POISSON, CONSTANT = "poisson", "constant"
ARRIVALS = (POISSON, CONSTANT)
MOST_DUE = 100_000  # requests that are due and nobody has taken: beyond, the rate is too high


def intended(arrivals: str, rate: float, seconds: float, seed: tuple[int, ...]) -> NDArray[np.int64]:
    """int64[requests]: nanoseconds from a window's opening to each intended start, all inside its `seconds`.

    `rate` a second: with random gaps (exponential, from `seed`), or all of one length.
    """
    import numpy as np

    if arrivals == CONSTANT:
        starts = np.arange(1, int(rate * seconds) + 2) / rate
    else:
        draw, gaps = np.random.default_rng(seed), np.empty(0)
        while gaps.sum() < seconds:
            gaps = np.concatenate([gaps, draw.exponential(1 / rate, int(rate * seconds) + 16)])
        starts = np.cumsum(gaps)
    return np.rint(1e9 * starts[starts < seconds]).astype(np.int64)


@dataclass(slots=True)
class Due:
    """A schedule that is worked off, oldest first. `overloaded`: it was given up, as work came faster than it went."""

    starts: list[int]  # nanoseconds of the clock that is asked, ascending
    longest_wait_ns: int
    most: int = MOST_DUE
    taken: int = 0
    overloaded: bool = False

    def take(self, now_ns: int) -> int | None:
        """The intended start of the oldest request that nobody took; None where none is left, or it is overloaded."""
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
    """Ask for one request after the other, none before its time; the intended starts of those, in the same order."""
    taken: list[int] = []
    while (meant := due.take(clock())) is not None:
        while (ahead := meant - clock()) > 0:
            sleep(ahead / 1e9)
        taken.append(meant)
        ask()
    return taken
