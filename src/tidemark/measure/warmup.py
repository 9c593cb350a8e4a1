"""Writing that is not counted: to learn the rate of an unknown system, and until a warm machine is steady."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidemark.machine.sampler import Sampler
from tidemark.measure.loop import Window
from tidemark.measure.stage import Bench, Stage, staged

PROBE_SECONDS = 1.0
# A server is warm when it gets no faster: of the last `LOOKED_AT` stretches none has a median write that is more than
# `WITHIN` above that of the last one. A stretch is a fifth of a window; after `MOST_WINDOWS` windows it has to do.
STRETCHES, LOOKED_AT = 5, 3
WITHIN = 0.05
MOST_WINDOWS = 2


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What was written before a hot run, outside its window.

    `medians_ms`: of the write times, by stretch; those of the run before it come first.
    """

    stretch_s: float
    within: float
    medians_ms: tuple[float, ...]
    seconds: float
    steady: bool


def is_steady(medians: Sequence[float]) -> bool:
    """Whether writes got no faster over the last stretches; that they get slower as a table grows is no warming up."""
    last = medians[-LOOKED_AT:]
    return len(last) == LOOKED_AT and max(last) <= (1 + WITHIN) * last[-1]


def medians_ms(write_ns: npt.NDArray[np.int64]) -> list[float]:
    """Median write times of `STRETCHES` parts of a window, of equal count; of fewer, where there are fewer writes."""
    parts = np.array_split(write_ns, min(STRETCHES, len(write_ns)) or 1)
    return [float(np.median(part)) / 1e6 for part in parts if len(part)]


def probe(bench: Bench, show: Callable[[str], None]) -> None:
    """Learn the rate of a system that was never measured here: how much its first topic has to hold."""
    if not bench.is_ahead:
        return
    with staged(bench, "probe", PROBE_SECONDS, show) as stage:
        show("finding out how fast it is (not counted)")
        window = _write(stage, stage.new_window(), PROBE_SECONDS)
        bench.producer.finish()
        bench.servers.check()
        bench.rates.note(window.events_per_s)


def warm_up(bench: Bench, before: Sequence[float], show: Callable[[str], None]) -> WarmUp:
    """Write, beside the tables that count, until the system is steady; not at all where it was so already.

    `before`: the medians of the run before, as `medians_ms` makes them; none where there is no such run.
    """
    length = bench.spec.window_seconds
    stretch, most = length / STRETCHES, MOST_WINDOWS * length
    medians = list(before)
    if is_steady(medians):
        return WarmUp(stretch, WITHIN, tuple(medians), 0.0, True)
    with staged(bench, "warm-up", most, show) as stage:
        window, seconds = stage.new_window(), 0.0
        if not bench.is_ahead:
            bench.producer.follow(10_000, most)
        while seconds < most and not is_steady(medians):
            count = window.samples.count
            seconds += stretch
            show(f"warming up until it is steady: {seconds:.0f} of at most {most:.0f} s (not counted)")
            _write(stage, window, seconds)
            written = window.samples.column("write")[count:]
            medians += [float(np.median(written)) / 1e6] if len(written) else []
        bench.producer.finish()
        bench.servers.check()
    return WarmUp(stretch, WITHIN, tuple(medians), window.elapsed_ns / 1e9, is_steady(medians))


def _write(stage: Stage, window: Window, until_seconds: float) -> Window:
    """Write until `window` is so long, with an eye on what could die."""
    bench = stage.bench

    def each_second(_seconds: float) -> None:
        if bench.fails():
            stage.source.abandon()

    stage.write(window, until_seconds, lambda: Sampler(bench.work, {}, on_second=each_second))
    return window
