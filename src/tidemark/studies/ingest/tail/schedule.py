"""Open-loop schedule: intended starts of requests, whatever the fate of earlier ones, and their distribution.

    due = Due(start_ns + intended(POISSON, 45.0, 8.0, seed), limits)
    while (meant_ns := due.take(clock())) is not None:      the oldest not yet taken; it may lie ahead
        ...wait until then, send, note meant_ns

A request that falls due while all clients are busy starts late, and its response time counts from its intended
start: a stall delays all requests that fall due during it. In a closed loop it delays one, and the others are never
sent (coordinated omission).
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
MOST_DUE = 100_000  # due requests that are not yet taken: beyond it, the rate is too high


def intended(arrivals: str, rate: float, seconds: float, seed: tuple[int, ...]) -> NDArray[np.int64]:
    """Return int64[requests]: nanoseconds from a window's opening to each intended start, all inside its `seconds`.

    `rate` is per second; gaps are random (exponential, from `seed`) or all of one length.
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
