"""One run: a fresh table and a fresh topic, one window, then the oracle, the footprint, and the run's files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tidemark import __version__
from tidemark.errors import OracleError, StreamError
from tidemark.machine import cold
from tidemark.machine.disk import settle
from tidemark.machine.watch import Interference, Watch
from tidemark.measure import maintenance
from tidemark.measure.describe import client_versions, libraries, logical_bytes, marks, series_part, system_part
from tidemark.measure.files import files_of, warm
from tidemark.measure.identity import harness_digest
from tidemark.measure.loop import Window
from tidemark.measure.oracle import Verdict, consult, difference
from tidemark.measure.outcome import DISTURBED
from tidemark.measure.runfiles import (
    SCHEMA_VERSION,
    FlushPart,
    Manifest,
    MergePart,
    ProducerPart,
    TidemarkPart,
    write_run,
)
from tidemark.measure.spec import FORMAT
from tidemark.measure.stage import BESIDE_MARGIN, STREAM_GROUPS, Bench, Stage, staged
from tidemark.measure.warmup import WarmUp
from tidemark.services.base import files_below
from tidemark.services.kafka import Kafka
from tidemark.stream.producer import Produced

STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Measured:
    """A window with everything that was asked right after it; `again`: it is to be measured once more."""

    window: Window
    produced: Produced
    watch: Watch
    opening: cold.ColdProof
    interference: Interference
    again: bool = False


@dataclass(frozen=True, slots=True)
class Before:
    """What a run stands on: the proof of its state, how it was warmed up, and the runs before it, in words."""

    proof: cold.ColdProof
    history: str
    warm_up: WarmUp | None = None


def measure_run(bench: Bench, number: int, before: Before, merge: bool, show: Callable[[str], None]) -> Measured:
    """Measure run `number` and put its files into the folder of the series.

    That is `run-<number>`, or one of those beside where the run was disturbed and may be measured once more. Raises
    OracleError when the table does not hold what was acknowledged; then nothing is written, and the error says what
    differs.
    """
    spec = bench.spec
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    with staged(bench, f"run-{number}", spec.window_seconds, show) as stage:
        if number == 0:
            _make_cold_again(stage, cold.Method(before.proof.method))
        measured = _window(stage, cold.Method(before.proof.method), show)
        stage.consumer.close()
        show("oracle")
        verdict = _ask_the_oracle(stage, measured.window)
        show("flush and footprint")
        footprint = stage.system.footprint()
        flush = maintenance.flush(stage.system)
        _check_rows(stage, measured.window, "flush", flush)
        footprint_after_flush = None if flush is None else stage.system.footprint()
        merged = maintenance.merge(stage.system) if merge else None
        _check_rows(stage, measured.window, "merge", merged)
        retries = 0 if number == 0 and before.proof.method == cold.Method.REBOOT else spec.disturbance.retries
        target, again = _target(bench.series, number, measured.interference, retries)
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            tidemark=TidemarkPart(__version__, FORMAT, harness_digest()),
            series=series_part(spec),
            run=number,
            cold=number == 0,
            started_at=started_at,
            window_s=spec.window_seconds,
            elapsed_ns=measured.window.elapsed_ns,
            operations=measured.window.samples.count,
            events=measured.window.samples.events,
            first_write_ns=measured.window.samples.write[0],
            system=system_part(bench.variant, stage.system, stage.codec.schema),
            versions={**bench.servers.versions(), **libraries(), **client_versions(type(stage.system))},
            lock_digests=bench.lock_digests,
            dataset=asdict(bench.dataset),
            machine=bench.machine,
            cold_proof=before.proof,
            opening=measured.opening,
            warm_up=before.warm_up,
            time_budget_ns=measured.window.budget(),
            marks=marks(measured.window) + measured.interference.disturbed,
            interference=measured.interference,
            producer=ProducerPart.of(
                spec.producer,
                measured.produced,
                bench.dataset.rows,
                measured.window.stretches,
                bench.topics.log_bytes(stage.topic),
            ),
            sampler_cpu_s=measured.watch.sampler.cpu_s,
            disk=measured.watch.disk(bench.rest_bytes),
            oracle=verdict,
            flush=flush,
            merge=merged,
            footprint=footprint,
            footprint_after_flush=footprint_after_flush,
            logical_bytes=logical_bytes(bench.sizes, measured.window.samples.events),
            history=before.history,
            config=json.loads(spec.to_json()),
        )
        show("writing the run's files")
        write_run(target, measured.window.samples, measured.watch.sampler.series, manifest)
    return replace(measured, again=again)


def _make_cold_again(stage: Stage, method: cold.Method) -> None:
    """Evict what starting the servers and creating the table has read, with all of them running.

    The log of the topic is read once after it: it is meant to be in memory in every run, cold or hot.
    """
    if method is cold.Method.NONE:
        return
    servers = stage.bench.servers
    files = [path for groups in _groups(stage) for group in groups.values() for path in group]
    cold.page_out([os.getpid(), *servers.pids()])
    cold.evict(method, files)
    warm(stage.bench.topics.files(stage.topic))


def _groups(stage: Stage) -> tuple[dict[str, tuple[Path, ...]], dict[str, tuple[Path, ...]]]:
    """The files whose share in memory tells how cold the system is at its opening, and those of the stream.

    These are looked at as well and decide nothing: broker and topic have to be at work before the first event.
    """
    found = {**files_of(stage.bench.servers, stage.bench.variant), "table": files_below(stage.directory)}
    stream = {name: found.pop(name) for name in tuple(found) if name.startswith(f"{Kafka.name} ")}
    return found, {**stream, STREAM: stage.bench.topics.files(stage.topic)}


def _window(stage: Stage, method: cold.Method, show: Callable[[str], None]) -> Measured:
    """The window itself, in as many stretches as its topic is short of events."""
    bench, seconds = stage.bench, stage.bench.spec.window_seconds

    def each_second(passed: float) -> None:
        show(f"{passed:.0f} of {seconds:g} s")
        if bench.fails():
            stage.source.abandon()  # what is in memory already could last for minutes

    watch = Watch(bench.work, bench.groups(), STREAM_GROUPS, each_second)
    openings: list[cold.ColdProof] = []

    @contextmanager
    def watched() -> Iterator[None]:
        show("waiting until the disk is at rest")
        watch.opens_after(settle(bench.rest_bytes))
        if not openings:
            openings.append(cold.prove(method, *_groups(stage)))
            if not bench.is_ahead:
                bench.producer.follow(BESIDE_MARGIN, seconds)
        with watch:
            yield

    window = stage.new_window()
    stage.write(window, seconds, watched)
    produced = bench.producer.finish()
    bench.servers.check()
    if window.samples.events == 0:
        raise StreamError(
            f"not one operation ended within the window of {seconds:g} s; "
            "a longer window (protocol) may be what it needs"
        )
    return Measured(window, produced, watch, openings[0], watch.interference(bench.spec.disturbance))


def _target(directory: Path, number: int, interference: Interference, retries: int) -> tuple[Path, bool]:
    """Where the run's files go, and whether it is to be measured once more."""
    earlier = len(list(directory.glob(f"{DISTURBED}/run-{number}-*")))
    if interference.disturbed and earlier < retries:
        return directory / DISTURBED / f"run-{number}-{earlier + 1}", True
    return directory / f"run-{number}", False


def _ask_the_oracle(stage: Stage, window: Window) -> Verdict:
    """Before all else: what a system commits only when it is asked something is not yet in its table."""
    operations = window.samples.count
    verdict = consult(stage.system, window.samples.events, operations, stage.commits_before)
    if not verdict.verdict:
        raise OracleError(f"{difference(verdict, operations)}. The run is not counted.")
    return verdict


def _check_rows(stage: Stage, window: Window, what: str, done: FlushPart | MergePart | None) -> None:
    """A flush or a merge moves rows, and must not change them."""
    if done is not None and not consult(stage.system, window.samples.events).verdict:
        raise OracleError(f"the {what} changed the table's rows. The run is not counted.")
