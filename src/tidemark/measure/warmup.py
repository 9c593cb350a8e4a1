"""Working until a warm machine is steady: none of it is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tidemark.machine.sampler import Sampler
from tidemark.measure.workload import Rig, Show, Stage, Window
from tidemark.runs.circumstances import WarmUp

# A server is warm when it gets no faster: of the last `LOOKED_AT` stretches none has a median operation that is more
# than `WITHIN` above that of the last one. A stretch is a fifth of a window; after `MOST_WINDOWS` windows it has to do.
STRETCHES, LOOKED_AT = 5, 3
WITHIN = 0.05
MOST_WINDOWS = 2


def is_steady(medians: Sequence[float]) -> bool:
    """Whether operations got no faster over the last stretches; getting slower as a table grows is no warming up."""
    last = medians[-LOOKED_AT:]
    return len(last) == LOOKED_AT and max(last) <= (1 + WITHIN) * last[-1]


def medians_ms(elapsed_ns: npt.NDArray[np.int64]) -> list[float]:
    """Median times of `STRETCHES` parts of a window, of equal count; of fewer, where there are fewer operations."""
    parts = np.array_split(elapsed_ns, min(STRETCHES, len(elapsed_ns)) or 1)
    return [float(np.median(part)) / 1e6 for part in parts if len(part)]


def warm_up(rig: Rig, before: Sequence[float], show: Show) -> WarmUp:
    """Work, beside the tables that count, until the system is steady; not at all where it was so already.

    `before`: the medians of the run before, as `medians_ms` makes them; none where there is no such run.
    """
    length = rig.spec.window_seconds
    stretch, most = length / STRETCHES, MOST_WINDOWS * length
    medians = list(before)
    if is_steady(medians):
        return WarmUp(stretch, WITHIN, tuple(medians), 0.0, True)
    with rig.workload.staged(rig, "warm-up", most, show) as stage:
        window, seconds = stage.new_window(), 0.0
        while seconds < most and not is_steady(medians):
            count = window.operations
            seconds += stretch
            show(f"warming up until it is steady: {seconds:.0f} of at most {most:.0f} s (not counted)")
            uncounted(rig, stage, window, seconds)
            done = window.elapsed()[count:]
            medians += [float(np.median(done)) / 1e6] if len(done) else []
        stage.finish(window)
    return WarmUp(stretch, WITHIN, tuple(medians), window.elapsed_ns / 1e9, is_steady(medians))


def uncounted[W: Window](rig: Rig, stage: Stage[W], window: W, until_seconds: float) -> W:
    """Work until `window` is so long, with an eye on what could die, and on nothing else."""

    def each_second(_seconds: float) -> None:
        if rig.fails():
            stage.abandon()

    for _ in stage.stretches(window, until_seconds):
        with Sampler(rig.work, {}, on_second=each_second):
            stage.advance(window, until_seconds)
    return window
