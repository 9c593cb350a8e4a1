"""Warm-up until the system is steady, which is not counted, and the files whose residency makes it cold or hot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidemark.machine import cold
from tidemark.machine.sampler import Sampler
from tidemark.measure.workload import ProgressCallback, TestBed, Window, WindowRunner
from tidemark.runs.circumstances import WarmUp
from tidemark.runs.proofs import ColdProof
from tidemark.services.servers import Servers
from tidemark.systems.base import Variant

# A server is warm when it gets no faster: none of the last `LOOKED_AT` stretches has a median latency more than
# `WITHIN` above that of the last one. A stretch is a fifth of a window; warm-up ends after `MOST_WINDOWS` windows.
STRETCHES, LOOKED_AT = 5, 3
WITHIN = 0.05
MOST_WINDOWS = 2
CLIENT = "client libraries"


def is_steady(medians: Sequence[float]) -> bool:
    """Return True if operations got no faster over the last stretches; slowing down as a table grows is ignored."""
    last = medians[-LOOKED_AT:]
    return len(last) == LOOKED_AT and max(last) <= (1 + WITHIN) * last[-1]


def medians_ms(elapsed_ns: npt.NDArray[np.int64]) -> list[float]:
    """Return median latencies (ms) of `STRETCHES` parts of a window of equal count; fewer if operations are fewer."""
    parts = np.array_split(elapsed_ns, min(STRETCHES, len(elapsed_ns)) or 1)
    return [float(np.median(part)) / 1e6 for part in parts if len(part)]


def warm_up(test_bed: TestBed, before: Sequence[float], show: ProgressCallback) -> WarmUp:
    """Run the workload on separate tables until the system is steady; do nothing if it is steady already.

    `before`: medians of the preceding run, as returned by `medians_ms`; empty if there is no such run.
    """
    length = test_bed.workload.warm_up_seconds
    stretch, most = length / STRETCHES, MOST_WINDOWS * length
    medians = list(before)
    if is_steady(medians):
        return WarmUp(stretch, WITHIN, tuple(medians), 0.0, True)
    with test_bed.workload.open_window(test_bed, "warm-up", most, show) as runner:
        window, seconds = runner.new_window(), 0.0
        while seconds < most and not is_steady(medians):
            count = window.operations
            seconds += stretch
            show(f"warming up until it is steady: {seconds:.0f} of at most {most:.0f} s (not counted)")
            uncounted(test_bed, runner, window, seconds)
            done = window.elapsed()[count:].copy()  # a view would keep the samples from growing
            medians += [float(np.median(done)) / 1e6] if len(done) else []
        runner.finish(window)
    return WarmUp(stretch, WITHIN, tuple(medians), window.elapsed_ns / 1e9, is_steady(medians))


def uncounted[W: Window](test_bed: TestBed, runner: WindowRunner[W], window: W, until_seconds: float) -> W:
    """Run until `window` is `until_seconds` long, checking only for dead processes, and return it."""
    runner.is_counted = False

    def each_second(_seconds: float) -> None:
        if test_bed.fails(runner):
            runner.cancel()

    for _ in runner.segments(window, until_seconds):
        with Sampler(test_bed.work, {}, on_second=each_second):
            runner.execute(window, until_seconds)
    return window


def files_of(servers: Servers, variant: Variant) -> dict[str, tuple[Path, ...]]:
    """Return the files that make a system cold or hot: those of the servers, and the libraries of the client."""
    packages = variant.system.libraries
    return {**servers.files(), CLIENT: cold.library_files([*packages, "pyarrow"]) if packages else ()}


def prove_warm(method: cold.Method, test_bed: TestBed) -> ColdProof:
    """Read the files that make a system cold or hot unless they are in the page cache; return the proof of it."""
    files = files_of(test_bed.servers, test_bed.variant)
    proof = cold.prove(method, files)
    if proof.resident_share != 1:
        warm(path for group in files.values() for path in group)
        proof = cold.prove(method, files)
    return proof


def warm(files: Iterable[Path]) -> None:
    """Read files once, so that they are in the page cache."""
    buffer = bytearray(1 << 20)
    for path in files:
        with suppress(OSError), path.open("rb", buffering=0) as file:  # a running server may remove its files
            while file.readinto(buffer):
                pass
