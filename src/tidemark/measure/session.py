"""Session of a series (`ServerSession`): servers started in a clean folder, and consecutive runs on them.

A session is a separate process, and loads no client library before the machine has been made cold: pages that a
process has mapped can be evicted only in part.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import DiskFull, OracleError, TidemarkError, is_disk_full
from tidemark.machine import cold
from tidemark.machine.inventory import inventory
from tidemark.measure.warmup import files_of, medians_ms, warm, warm_up
from tidemark.measure.workload import ProgressCallback, TestBed, Workload
from tidemark.paths import Workspace, private_directory
from tidemark.runs.proofs import ColdProof
from tidemark.runs.spec import SeriesSpec
from tidemark.services.servers import prepared, started_here
from tidemark.software.stacks import locks
from tidemark.systems.registry import variant_of

if TYPE_CHECKING:
    from tidemark.runs.dataset import Provenance

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
        with _test_bed(self, None) as (test_bed, _):
            _explaining(test_bed, "the probe before run 0", partial(test_bed.workload.probe, test_bed, self.show))

    def measure(self, missing: list[int]) -> None:
        """Measure the `missing` runs in order, and each disturbed one again as often as configured.

        If run 0 is to be measured again, return at once: another cold run needs another session.
        """
        method = cold.choose(self.spec.cold)
        with _test_bed(self, method if missing[0] == 0 else None) as (test_bed, proof):
            _runs(test_bed, missing, proof, method, self.show)


def series_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    return workspace.root / spec.directory


def work_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Return the folder of the series' servers and tables while it runs."""
    return workspace.work / spec.id.replace("/", "-")


def logs_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Return the folder in which the servers' logs are kept afterwards."""
    return workspace.root / spec.directory / "logs"


@contextmanager
def _test_bed(server_session: ServerSession, make_cold: cold.Method | None) -> Iterator[tuple[TestBed, ColdProof]]:
    """Start servers and workload in a clean folder, and yield them with the cold proof taken right before.

    `make_cold` is the method of making the machine cold; None if no cold run follows.
    """
    spec, workspace, show = server_session.spec, server_session.workspace, server_session.show
    workload = server_session.workload()
    chosen = workload.variant
    work = work_folder(spec, workspace)
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    logs = private_directory(logs_folder(spec, workspace))
    with ExitStack() as stack:
        stack.callback(_remove_unless_kept, work, spec.keep_tables)
        stack.enter_context(workload.prepare_directory(work))
        stack.callback(_tidy, work, logs, spec.keep_tables)
        show("starting the servers")
        needed = (*workload.services, *chosen.needs)
        servers = stack.enter_context(prepared(needed, workspace, work, spec.services))
        files = {**files_of(servers, chosen), **workload.inputs()}
        if make_cold is not None:
            show("making it cold")
            cold.evict(make_cold, [path for group in files.values() for path in group])
        proof = cold.prove(make_cold or cold.Method.NONE, files)
        # Only after the cold proof: these load client libraries.
        session = stack.enter_context(workload.start_processes(work))
        servers.start()
        test_bed = TestBed(
            spec=spec,
            variant=chosen,
            servers=servers,
            workload=workload,
            dataset=_provenance(spec, workspace),
            machine=inventory(workspace.root),
            lock_digests=locks(spec.stack, started_here(needed, spec.services), workload.tools_for(chosen.system)),
            rest_bytes=server_session.rest_bytes,
            work=work,
            series=series_folder(spec, workspace),
            session=session,
        )
        yield test_bed, proof


def _provenance(spec: SeriesSpec, workspace: Workspace) -> Provenance | None:
    if not spec.dataset_directory:
        return None
    from tidemark.runs.dataset import Provenance

    return Provenance.read(workspace.root / spec.dataset_directory / "dataset.json")


def _runs(test_bed: TestBed, missing: list[int], proof: ColdProof, method: cold.Method, show: ProgressCallback) -> None:
    from tidemark.measure.run import RunHistory, measure_run

    spec = test_bed.spec
    history = ["cold start"] if missing[0] == 0 else ["interrupted before"]
    medians: list[float] = []
    for number in missing:
        while True:
            label = f"run {number} of {spec.runs}"
            tell = partial(_tell, show, label)
            before = RunHistory(proof, ", ".join(history))
            if number > 0:
                warmed = None
                if test_bed.workload.warms_up:
                    warmed = _explaining(
                        test_bed, f"the warm-up before {label}", partial(warm_up, test_bed, medians, tell)
                    )
                files = files_of(test_bed.servers, test_bed.variant)
                warm(path for group in files.values() for path in group)
                before = RunHistory(cold.prove(method, files), ", ".join(history), warmed)
            measure = partial(measure_run, test_bed, number, before, number == spec.runs - 1, tell)
            measured = _explaining(test_bed, f"run {number} of {spec.label}", measure)
            medians = medians_ms(measured.window.elapsed())
            history.append(f"run {number}" + (" (disturbed)" if measured.again else ""))
            if not measured.again:
                break
            if number == 0:
                return


def _tell(show: ProgressCallback, label: str, what: str) -> None:
    show(f"{label}: {what}")


def _explaining[T](test_bed: TestBed, where: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:
        raise _explained(error, test_bed, where) from error


def _explained(error: Exception, test_bed: TestBed, where: str) -> TidemarkError:
    """Return the error to raise for `error`: it names the run, and the dead server behind it with its log, if any."""
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
    return kind(f"{where}: {text}{said_so}")


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
