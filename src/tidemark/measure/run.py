"""One run: a fresh runner, one window, then the oracle, the footprint, and the run's files."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tidemark import __version__, code
from tidemark.errors import MachineError
from tidemark.machine import cold
from tidemark.machine.disk import settle
from tidemark.machine.watch import Watch
from tidemark.measure.describe import client_versions
from tidemark.measure.warmup import files_of, warm
from tidemark.measure.workload import Evict, ProgressCallback, RunHistory, TestBed, Window, WindowRunner
from tidemark.process_lifetime import was_interrupted
from tidemark.runs.circumstances import Harness, Interference
from tidemark.runs.manifest import Manifest, SeriesPart, write_run
from tidemark.runs.outcome import DISTURBED
from tidemark.runs.proofs import ColdProof
from tidemark.runs.serde import pairs, picked
from tidemark.runs.spec import FORMAT
from tidemark.services.base import files_below

CODE = code.on_disk()  # when this process began to measure
CODE_CHANGED = "the code changed while it was measured"


def measure_run(
    test_bed: TestBed, number: int, before: RunHistory, last: bool, show: ProgressCallback
) -> tuple[Window, bool]:
    """Measure run `number`; return its window, and True if it was disturbed and the run is to be measured again.

    Its files go to the folder `run-<number>` of the series, or to one below `disturbed` if it is to be measured again.
    `last`: it is the series' last run. Raises OracleError if the system does not hold what it acknowledged; then
    nothing is written, and the error states the difference.
    """
    spec, seconds = test_bed.spec, test_bed.spec.window_seconds
    method = cold.Method(before.proof.method)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    with test_bed.workload.open_window(test_bed, f"run-{number}", seconds, show) as runner:
        if number == 0 and test_bed.workload.evicts is Evict.NEVER:
            warm(path for groups in _groups(test_bed, runner) for group in groups.values() for path in group)
        elif number == 0 or test_bed.workload.evicts is Evict.EACH:
            _make_cold_again(test_bed, runner, method)
        window, watch = runner.new_window(), _watch(test_bed, runner, show)
        opening: ColdProof | None = None
        for _ in runner.segments(window, seconds):
            show("waiting until the disk is at rest")
            watch.opens_after(settle(test_bed.rest_bytes))
            opening = opening or cold.prove(method, *_groups(test_bed, runner))
            with watch:
                runner.execute(window, seconds)
        if opening is None:
            raise MachineError(f"run {number}: the workload brought no segment of a window")
        interference = watch.interference(spec.disturbance)
        runner.finish(window)
        retries = 0 if number == 0 and method is cold.Method.REBOOT else spec.disturbance.retries
        target, again = _target(test_bed.series, number, interference, retries)
        findings = runner.check(window, last and not again, show)
        description = runner.describe(window)
        manifest = Manifest(
            tidemark=Harness(__version__, FORMAT, spec.harness),
            series=picked(SeriesPart, spec.described()),
            run=number,
            cold=number == 0,
            started_at=started_at,
            window_s=seconds,
            elapsed_ns=window.elapsed_ns,
            operations=window.operations,
            events=window.rows,
            first_write_ns=int(window.elapsed()[0]),
            system=description.system,
            versions=pairs(
                {**test_bed.servers.versions(), **description.versions, **client_versions(test_bed.variant.system)}
            ),
            lock_digests=pairs(test_bed.lock_digests),
            dataset=test_bed.dataset,
            machine=test_bed.machine,
            cold_proof=before.proof,
            opening=opening,
            warm_up=before.warm_up,
            time_budget_ns=pairs(window.budget()),
            marks=description.marks + interference.disturbed + (() if code.on_disk() == CODE else (CODE_CHANGED,)),
            interference=interference,
            producer=description.producer,
            sampler_cpu_s=watch.sampler.cpu_s,
            disk=watch.disk(test_bed.rest_bytes),
            oracle=findings.oracle,
            flush=findings.flush,
            merge=findings.merge,
            footprint=findings.footprint,
            footprint_after_flush=findings.footprint_after_flush,
            logical_bytes=description.logical_bytes,
            history=before.history,
            found=pairs(description.found),
            config=pairs(json.loads(json.dumps(spec.configured(), default=str))),
        )
        if was_interrupted():  # DuckDB made an error of it, which a look at the table or a writer's policy took
            raise KeyboardInterrupt
        show("writing the run's files")
        write_run(target, window, watch.sampler.series, manifest, description.files)
    return window, again


def _watch(test_bed: TestBed, runner: WindowRunner[Any], show: ProgressCallback) -> Watch:
    """Return the window's watch, which also shows the elapsed time and ends the window early if a server has died."""

    def each_second(passed: float) -> None:
        longest = test_bed.spec.window_seconds
        if passed > longest:
            show(f"{passed:.0f} s: the window of {longest:g} s is over, and its last work is awaited")
        else:
            show(f"{passed:.0f} of {'at most ' if test_bed.workload.ends_by_itself else ''}{longest:g} s")
        if test_bed.fails(runner):
            runner.cancel()  # events already in memory could last for minutes

    return Watch(test_bed.work, test_bed.groups(runner), test_bed.workload.excluded_groups, each_second)


def _make_cold_again(test_bed: TestBed, runner: WindowRunner[Any], method: cold.Method) -> None:
    """Evict what starting the servers and creating the table has read, while the servers are running.

    Files that are meant to be in memory in every run, cold or hot, are then read once.
    """
    if method is cold.Method.NONE:
        return
    files = [path for groups in _groups(test_bed, runner) for group in groups.values() for path in group]
    cold.page_out([os.getpid(), *test_bed.servers.pids()])
    cold.evict(method, files)
    warm(path for group in runner.excluded_files().values() for path in group)


def _groups(
    test_bed: TestBed, runner: WindowRunner[Any]
) -> tuple[dict[str, tuple[Path, ...]], dict[str, tuple[Path, ...]]]:
    """Return the files whose residency determines how cold the system is at the opening, and those of the workload.

    The latter are measured, but do not affect the verdict: the workload's servers must run before the opening.
    """
    found = {**files_of(test_bed.servers, test_bed.variant), "table": files_below(runner.directory)}
    own = tuple(f"{kind.name} " for kind in test_bed.workload.services)
    apart = {name: found.pop(name) for name in tuple(found) if name.startswith(own)}
    return found, {**apart, **runner.excluded_files()}


def _target(directory: Path, number: int, interference: Interference, retries: int) -> tuple[Path, bool]:
    """Return the folder for the run's files, and whether the run is to be measured again."""
    earlier = len(list(directory.glob(f"{DISTURBED}/run-{number}-*")))
    if interference.disturbed and earlier < retries:
        return directory / DISTURBED / f"run-{number}-{earlier + 1}", True
    return directory / f"run-{number}", False
