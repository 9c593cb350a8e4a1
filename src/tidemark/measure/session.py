"""Session of a series (`ServerSession`): servers started in a clean folder, and consecutive runs on them.

In a block of rounds (`measure_in_turn`), the series of all systems use the same servers, one after the other.

A session is a separate process, and loads no client library before the machine has been made cold: pages that a
process has mapped can be evicted only in part.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from tidemark.errors import DiskFull, OracleError, RebootNeeded, TidemarkError, is_disk_full
from tidemark.machine import cold
from tidemark.machine.inventory import inventory
from tidemark.machine.processes import confine
from tidemark.measure.warmup import files_of, medians_ms, prove_warm, warm_up
from tidemark.measure.workload import Evict, ProgressCallback, RunHistory, TestBed, Workload
from tidemark.paths import Workspace, private_directory
from tidemark.process_lifetime import was_interrupted
from tidemark.runs.dataset import Provenance
from tidemark.runs.outcome import SeriesRecord
from tidemark.runs.proofs import ColdProof
from tidemark.runs.spec import SeriesSpec
from tidemark.services.servers import Servers, prepared, started_here
from tidemark.software.stacks import locks
from tidemark.systems.registry import variant_of

DYING_SECONDS = 1.0  # a killed server's connections break before it counts as ended
FULL_BYTES = 1 << 20  # with less free space the disk counts as full: programs report that in too many ways


@dataclass(frozen=True, slots=True)
class ServerSession:
    """Parameters of a session; the method that is called determines its work."""

    spec: SeriesSpec
    kind: type[Workload]
    workspace: Workspace
    show: ProgressCallback
    rest_bytes: int | None = None  # dirty bytes on this machine when it is idle

    def workload(self) -> Workload:
        trips = self.workspace.root / self.spec.dataset_directory / "trips.parquet"
        return self.kind(self.spec, variant_of(self.spec), trips, self.workspace.private)

    def probe(self) -> None:
        """Let the workload determine what it must know of a system that was never measured here."""
        with _test_beds([self], None) as ([test_bed], _):
            _explaining(test_bed, "the probe before run 0", partial(test_bed.workload.probe, test_bed, self.show))

    def measure(self, missing: list[int]) -> None:
        """Measure the `missing` runs in order, and each disturbed one again as often as configured.

        If run 0 is to be measured again, return at once: another cold run needs another session.
        """
        is_cold = missing[0] == 0 and self.workload().evicts is not Evict.NEVER
        with _test_beds([self], cold.choose(self.spec.cold) if is_cold else None) as ([test_bed], proof):
            history = "cold start" if missing[0] == 0 else "interrupted before"
            _runs(self, test_bed, missing, RunHistory(proof, history), [])


def measure_in_turn(sessions: Sequence[ServerSession]) -> None:
    """Measure the missing runs of each series, in order, on the same servers, and write its outcome.

    A series that fails is the last one: the others need servers and processes that it has not used. A system that is
    steady since an earlier round is not warmed up again. Before each series all servers settle, those of other systems
    too.
    """
    with _test_beds(sessions, None) as (test_beds, proof):
        servers = Servers({kind: service for each in test_beds for kind, service in each.servers.by_class.items()})
        processors, previous = os.sched_getaffinity(0), "the servers' start"
        medians: dict[str, list[float]] = {}  # of the latest run of each system and mode
        for session, test_bed in zip(sessions, test_beds, strict=True):
            spec, record = session.spec, SeriesRecord(test_bed.series)
            confine([os.getpid()], processors)  # an earlier one may have been bound to fewer
            before = RunHistory(proof, f"round {spec.repeat}, after {previous}")
            try:
                with record.attempt():
                    known = medians.get(spec.repeated_id, [])
                    work = partial(_measure, session, test_bed, servers, record.missing(spec.numbers), before, known)
                    medians[spec.repeated_id] = with_logs(work, session)
            except TidemarkError as error:
                record.end("failed", str(error), error.exit_code)
                return
            record.end("complete")
            previous = spec.label


def _measure(
    session: ServerSession,
    test_bed: TestBed,
    servers: Servers,
    missing: list[int],
    before: RunHistory,
    medians: list[float],
) -> list[float]:
    _explaining(test_bed, "before the window", servers.settle)
    if test_bed.workload.needs_probe():
        _explaining(test_bed, "the probe", partial(test_bed.workload.probe, test_bed, session.show))
    return _runs(session, test_bed, missing, before, medians)


def with_logs[T](work: Callable[[], T], session: ServerSession) -> T:
    """Do `work`; convert its error to a TidemarkError that names the kept copies of logs: the work folder goes."""
    try:
        return work()
    except RebootNeeded:
        raise
    except Exception as error:
        if was_interrupted():
            raise KeyboardInterrupt from error
        said, spec, workspace = described(error), session.spec, session.workspace
        place = re.compile(re.escape(str(work_folder(spec, workspace))) + r"(?:/[\w-]+)?/([\w-]+\.log)")
        failed = TidemarkError(place.sub(lambda found: str(logs_folder(spec, workspace) / found[1]), str(said)))
        failed.exit_code = said.exit_code  # type: ignore[misc]
        raise failed from error


def work_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Return the folder of the servers and tables while the series, or its round, is measured."""
    return workspace.work / spec.job


def drop_work(spec: SeriesSpec, workspace: Workspace) -> None:
    """Remove what a killed process left of the servers and tables of a series, or its round, that has all its runs."""
    _remove_unless_kept(work_folder(spec, workspace), spec.keep_tables)


def logs_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Return the folder in which the servers' logs are kept afterwards."""
    return workspace.results / "logs" / spec.job if spec.in_round else workspace.root / spec.directory / "logs"


@contextmanager
def _test_beds(
    sessions: Sequence[ServerSession], make_cold: cold.Method | None
) -> Iterator[tuple[list[TestBed], ColdProof]]:
    """Start the servers of all `sessions` in a clean folder; yield a test bed each, with the proof taken right before.

    `make_cold` is the method of making the machine cold; None if no cold run follows. Several sessions are of the same
    workload and stack, and each has the servers that it needs.
    """
    first = sessions[0]
    spec, workspace = first.spec, first.workspace
    workloads = [session.workload() for session in sessions]
    needed = [(*workload.services, *workload.variant.needs) for workload in workloads]
    work = work_folder(spec, workspace)
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    logs = private_directory(logs_folder(spec, workspace))
    with ExitStack() as stack:
        stack.callback(_remove_unless_kept, work, spec.keep_tables)
        stack.enter_context(workloads[0].prepare_directory(work))
        stack.callback(_tidy, work, logs, spec.keep_tables)
        first.show("starting the servers")
        servers = stack.enter_context(prepared(chain(*needed), workspace, work, spec.services))
        files: dict[str, tuple[Path, ...]] = {}
        for workload in workloads:
            files |= {**files_of(servers, workload.variant), **workload.inputs()}
        if make_cold is not None:
            first.show("making it cold")
            cold.evict(make_cold, [path for group in files.values() for path in group])
        proof = cold.prove(make_cold or cold.Method.NONE, files)
        # Only after the cold proof: these load client libraries.
        running = stack.enter_context(workloads[0].start_processes(work))
        servers.start()
        trips = workspace.root / spec.dataset_directory / "dataset.json"
        provenance, machine = Provenance.read(trips) if spec.dataset_directory else None, inventory(workspace.root)
        yield (
            [
                TestBed(
                    spec=session.spec,
                    variant=workload.variant,
                    servers=servers.of(kinds),
                    workload=workload,
                    dataset=provenance,
                    machine=machine,
                    lock_digests=locks(
                        spec.stack, started_here(kinds, spec.services), workload.tools_for(workload.variant.system)
                    ),
                    rest_bytes=session.rest_bytes,
                    work=private_directory(work / session.spec.id.replace("/", "-")) if session.spec.in_round else work,
                    series=workspace.root / session.spec.directory,
                    session=workload.taken_over(running),
                )
                for session, workload, kinds in zip(sessions, workloads, needed, strict=True)
            ],
            proof,
        )


def _runs(
    session: ServerSession, test_bed: TestBed, missing: list[int], start: RunHistory, medians: list[float]
) -> list[float]:
    """Measure the `missing` runs; return the medians of the last one. `medians`: of the run before, if there is one."""
    from tidemark.measure.run import measure_run

    spec = test_bed.spec
    history = [start.history]
    for number in missing:
        while True:
            label = f"run {number} of {spec.runs}"
            tell = partial(_tell, session.show, label)
            before = replace(start, history=", ".join(history))
            if number > 0:
                where, warming = f"the warm-up before {label}", partial(warm_up, test_bed, medians, tell)
                warmed = _explaining(test_bed, where, warming) if test_bed.workload.warms_up else None
                before = RunHistory(prove_warm(cold.choose(spec.cold), test_bed), before.history, warmed)
            last = number == spec.runs - 1 and not spec.in_round
            measure = partial(measure_run, test_bed, number, before, last, tell)
            window, again = _explaining(test_bed, f"run {number} of {spec.label}", measure)
            medians = medians_ms(window.elapsed())
            history.append(f"run {number}" + (" (disturbed)" if again else ""))
            if not again:
                break
            if number == 0:
                return medians
    return medians


def _tell(show: ProgressCallback, label: str, what: str) -> None:
    show(f"{label}: {what}")


def _explaining[T](test_bed: TestBed, where: str, work: Callable[[], T]) -> T:
    """Do `work`; its error becomes one that begins with `where`, and names the dead server behind it with its log."""
    try:
        return work()
    except Exception as error:
        said_so = described(error)
        deadline = time.monotonic() + DYING_SECONDS
        while not test_bed.servers.ended() and time.monotonic() < deadline:
            time.sleep(0.05)
        try:
            test_bed.servers.check()
        except TidemarkError as reason:
            said_so = reason
        full = isinstance(said_so, DiskFull) or shutil.disk_usage(test_bed.work).free < FULL_BYTES
        kind = DiskFull if full and not isinstance(said_so, OracleError) else type(said_so)
        text = "" if not full or "no room left" in str(said_so) else "no room left on the device: "
        raise kind(f"{where}: {text}{said_so}") from error


def described(error: Exception) -> TidemarkError:
    if isinstance(error, TidemarkError):
        return error
    if is_disk_full(error):
        return DiskFull(f"no room left on the device: {error}")
    return TidemarkError(f"{type(error).__name__}: {error}")


def _tidy(work: Path, logs: Path, keep_tables: bool) -> None:
    """Copy the servers' logs to `logs`, then free the disk space of the rest."""
    for path in [*work.glob("*.log"), *work.glob("*/*.log")]:
        with suppress(OSError):  # a full disk must not prevent the removal of what fills it
            shutil.copyfile(path, logs / path.name)
    _remove_unless_kept(work, keep_tables)


def _remove_unless_kept(work: Path, keep_tables: bool) -> None:
    if not keep_tables:
        shutil.rmtree(work, ignore_errors=True)
