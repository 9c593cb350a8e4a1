"""One sitting of a series: servers started in a clean folder, and the runs that follow one upon the other on them.

A sitting is a process of its own, and loads no library of a client before the machine has been made cold: what a
process has mapped can be evicted in part only.
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
from tidemark.measure.files import files_of, warm
from tidemark.measure.workload import Rig, Show, Workload
from tidemark.paths import Workspace, private_directory
from tidemark.runs.proofs import ColdProof
from tidemark.runs.spec import SeriesSpec
from tidemark.services.servers import prepared, started_here
from tidemark.software.stacks import locks
from tidemark.systems.variants import variant_of

if TYPE_CHECKING:
    from tidemark.runs.dataset import Provenance

DYING_SECONDS = 1.0  # its connections break before a killed server counts as ended
FULL_BYTES = 1 << 20  # programs tell of a full disk in too many ways; with less than this it is one


@dataclass(frozen=True, slots=True)
class Sitting:
    """What a sitting is given; it is told its work by the method that is called."""

    spec: SeriesSpec
    kind: type[Workload]
    workspace: Workspace
    show: Show
    rest_bytes: int | None = None  # what waits for the disk on this machine when it is at rest

    def workload(self) -> Workload:
        trips = self.workspace.root / self.spec.dataset_directory / "trips.parquet"
        return self.kind(self.spec, variant_of(self.spec), trips, self.workspace.private)

    def probe(self) -> None:
        """Let the workload find out what it has to know of a system that was never measured here."""
        with _rig(self, None) as (rig, _):
            _explaining(rig, "the probe before run 0", partial(rig.workload.probe, rig, self.show))

    def measure(self, missing: list[int]) -> None:
        """Measure the `missing` runs one after the other, each disturbed one again as often as configured.

        Where that is run 0 it ends at once: another cold run needs another sitting.
        """
        method = cold.choose(self.spec.cold)
        with _rig(self, method if missing[0] == 0 else None) as (rig, proof):
            _runs(rig, missing, proof, method, self.show)


def series_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    return workspace.root / spec.directory


def work_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Where the series' servers and tables lie while it runs."""
    return workspace.work / spec.id.replace("/", "-")


def logs_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Where the servers' logs lie after it."""
    return workspace.root / spec.directory / "logs"


@contextmanager
def _rig(sitting: Sitting, make_cold: cold.Method | None) -> Iterator[tuple[Rig, ColdProof]]:
    """Servers and workload, started in a clean folder, with the proof of how cold the machine was right before.

    `make_cold`: how it is made so; None where what follows is not a cold run.
    """
    spec, workspace, show = sitting.spec, sitting.workspace, sitting.show
    workload = sitting.workload()
    chosen = workload.variant
    work = work_folder(spec, workspace)
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    logs = private_directory(logs_folder(spec, workspace))
    with ExitStack() as stack:
        stack.callback(_remove_unless_kept, work, spec.keep_tables)
        stack.enter_context(workload.placed(work))
        stack.callback(_tidy, work, logs, spec.keep_tables)
        show("starting the servers")
        needed = (*workload.services, *chosen.needs)
        servers = stack.enter_context(prepared(needed, workspace, work, spec.services))
        files = {**files_of(servers, chosen), **workload.inputs()}
        if make_cold is not None:
            show("making it cold")
            cold.evict(make_cold, [path for group in files.values() for path in group])
        proof = cold.prove(make_cold or cold.Method.NONE, files)
        # Only now: these load libraries of clients.
        stack.enter_context(workload.started(work))
        servers.start()
        rig = Rig(
            spec=spec,
            variant=chosen,
            servers=servers,
            workload=workload,
            dataset=_provenance(spec, workspace),
            machine=inventory(workspace.root),
            lock_digests=locks(spec.stack, started_here(needed, spec.services), workload.tools_for(chosen.system)),
            rest_bytes=sitting.rest_bytes,
            work=work,
            series=series_folder(spec, workspace),
        )
        yield rig, proof


def _provenance(spec: SeriesSpec, workspace: Workspace) -> Provenance | None:
    if not spec.dataset_directory:
        return None
    from tidemark.runs.dataset import Provenance

    return Provenance.read(workspace.root / spec.dataset_directory / "dataset.json")


def _runs(rig: Rig, missing: list[int], proof: ColdProof, method: cold.Method, show: Show) -> None:
    from tidemark.measure.run import Before, measure_run
    from tidemark.measure.warmup import medians_ms, warm_up

    spec = rig.spec
    history = ["cold start"] if missing[0] == 0 else ["interrupted before"]
    medians: list[float] = []
    for number in missing:
        while True:
            label = f"run {number} of {spec.runs}"
            tell = partial(_tell, show, label)
            before = Before(proof, ", ".join(history))
            if number > 0:
                warmed = None
                if rig.workload.warms_up:
                    warmed = _explaining(rig, f"the warm-up before {label}", partial(warm_up, rig, medians, tell))
                files = files_of(rig.servers, rig.variant)
                warm(path for group in files.values() for path in group)
                before = Before(cold.prove(method, files), ", ".join(history), warmed)
            measure = partial(measure_run, rig, number, before, number == spec.runs - 1, tell)
            measured = _explaining(rig, f"run {number} of {spec.label}", measure)
            medians = medians_ms(measured.window.elapsed())
            history.append(f"run {number}" + (" (disturbed)" if measured.again else ""))
            if not measured.again:
                break
            if number == 0:
                return


def _tell(show: Show, label: str, what: str) -> None:
    show(f"{label}: {what}")


def _explaining[T](rig: Rig, where: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:
        raise _explained(error, rig, where) from error


def _explained(error: Exception, rig: Rig, where: str) -> TidemarkError:
    """What to say about `error`: which run, and the dead server behind it, whose own words name its log."""
    said_so = described(error)
    deadline = time.monotonic() + DYING_SECONDS
    while not rig.servers.ended() and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        rig.servers.check()
    except TidemarkError as reason:
        said_so = reason
    full = isinstance(said_so, DiskFull) or shutil.disk_usage(rig.work).free < FULL_BYTES
    kind = DiskFull if full and not isinstance(said_so, OracleError) else type(said_so)
    said = "" if not full or "no room left" in str(said_so) else "no room left on the device: "
    return kind(f"{where}: {said}{said_so}")


def described(error: Exception) -> TidemarkError:
    if isinstance(error, TidemarkError):
        return error
    if is_disk_full(error):
        return DiskFull(f"no room left on the device: {error}")
    return TidemarkError(f"{type(error).__name__}: {error}")


def _tidy(work: Path, logs: Path, keep_tables: bool) -> None:
    """Keep the servers' logs; give the rest of the disk space back."""
    for path in [*work.glob("*.log"), *work.glob("*/*.log")]:
        with suppress(OSError):  # a full disk must not keep what fills it from being removed
            shutil.copyfile(path, logs / path.name)
    _remove_unless_kept(work, keep_tables)


def _remove_unless_kept(work: Path, keep_tables: bool) -> None:
    if not keep_tables:
        shutil.rmtree(work, ignore_errors=True)
