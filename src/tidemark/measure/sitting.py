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

from tidemark.config import SystemEntry
from tidemark.errors import DiskFull, OracleError, TidemarkError, is_disk_full
from tidemark.machine import cold
from tidemark.machine.inventory import inventory
from tidemark.measure.files import files_of, warm
from tidemark.measure.plan import variant
from tidemark.measure.rates import Rates
from tidemark.measure.servers import prepared
from tidemark.measure.spec import SeriesSpec
from tidemark.paths import Workspace, private_directory
from tidemark.services.kafka import Kafka
from tidemark.stacks import locks
from tidemark.systems.base import Capability, Variant

if TYPE_CHECKING:
    from tidemark.measure.stage import Bench

DYING_SECONDS = 1.0  # its connections break before a killed server counts as ended
FULL_BYTES = 1 << 20  # programs tell of a full disk in too many ways; with less than this it is one


@dataclass(frozen=True, slots=True)
class Sitting:
    """What a sitting is given; it is told its work by the method that is called."""

    spec: SeriesSpec
    workspace: Workspace
    rates: Rates
    rest_bytes: int | None  # what waits for the disk on this machine when it is at rest
    show: Callable[[str], None]

    def probe(self) -> None:
        """Learn the rate of a system that was never measured here."""
        with _bench(self, None) as (bench, _):
            from tidemark.measure.warmup import probe

            _explaining(bench, "the probe before run 0", partial(probe, bench, self.show))

    def measure(self, missing: list[int]) -> None:
        """Measure the `missing` runs one after the other, each disturbed one again as often as configured.

        Where that is run 0 it ends at once: another cold run needs another sitting.
        """
        method = cold.choose(self.spec.cold)
        with _bench(self, method if missing[0] == 0 else None) as (bench, proof):
            _runs(bench, missing, proof, method, self.show)


def series_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    return workspace.root / spec.directory


def variant_of(spec: SeriesSpec) -> Variant:
    return variant(SystemEntry(spec.name, spec.system, spec.title, spec.options), "the series")


def work_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Where the series' servers and tables lie while it runs."""
    return workspace.work / spec.id.replace("/", "-")


def logs_folder(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Where the servers' logs lie after it."""
    return workspace.root / spec.directory / "logs"


@contextmanager
def _bench(sitting: Sitting, make_cold: cold.Method | None) -> Iterator[tuple[Bench, cold.ColdProof]]:
    """Servers and producer, started in a clean folder, with the proof of how cold the machine was right before.

    `make_cold`: how it is made so; None where what follows is not a cold run.
    """
    spec, workspace, show = sitting.spec, sitting.workspace, sitting.show
    chosen = variant_of(spec)
    prepared_directory = workspace.root / spec.dataset_directory
    trips = prepared_directory / "trips.parquet"
    work = work_folder(spec, workspace)
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    logs = private_directory(logs_folder(spec, workspace))
    with ExitStack() as stack:
        stack.callback(_tidy, work, logs, spec.keep_tables)
        show("starting the servers")
        servers = stack.enter_context(prepared((Kafka, *chosen.needs), workspace, work, spec.services))
        files = {**files_of(servers, chosen), "dataset": (trips,)}
        if make_cold is not None:
            show("making it cold")
            cold.evict(make_cold, [path for group in files.values() for path in group])
        proof = cold.prove(make_cold or cold.Method.NONE, files)
        # Only now: these load libraries of clients.
        from tidemark.dataset import Provenance
        from tidemark.measure.stage import Bench
        from tidemark.stream.producer import Producer
        from tidemark.stream.sizes import EventSizes
        from tidemark.stream.topics import Topics

        producer = stack.enter_context(Producer(trips, work))
        servers.start()
        kafka = servers.by_class[Kafka]
        assert isinstance(kafka, Kafka)
        yield (
            Bench(
                spec=spec,
                variant=chosen,
                servers=servers,
                producer=producer,
                topics=Topics(kafka, producer, spec.fingerprint),
                rates=sitting.rates,
                dataset=Provenance.read(prepared_directory / "dataset.json"),
                sizes=EventSizes.read(prepared_directory / "events.json"),
                machine=inventory(workspace.root),
                lock_digests=locks(spec.stack),
                rest_bytes=sitting.rest_bytes,
                work=work,
                series=series_folder(spec, workspace),
            ),
            proof,
        )


def _runs(
    bench: Bench, missing: list[int], proof: cold.ColdProof, method: cold.Method, show: Callable[[str], None]
) -> None:
    from tidemark.measure.run import Before, measure_run
    from tidemark.measure.warmup import medians_ms, warm_up

    spec = bench.spec
    stores = Capability.READ_BACK in bench.variant.system.capabilities
    history = ["cold start"] if missing[0] == 0 else ["interrupted before"]
    medians: list[float] = []
    for number in missing:
        while True:
            label = f"run {number} of {spec.runs}"
            tell = partial(_tell, show, label)
            before = Before(proof, ", ".join(history))
            if number > 0:
                warmed = (
                    _explaining(bench, f"the warm-up before {label}", partial(warm_up, bench, medians, tell))
                    if stores
                    else None
                )
                files = files_of(bench.servers, bench.variant)
                warm(path for group in files.values() for path in group)
                before = Before(cold.prove(method, files), ", ".join(history), warmed)
            merge = number == spec.runs - 1 and spec.maintenance
            measure = partial(measure_run, bench, number, before, merge, tell)
            measured = _explaining(bench, f"run {number} of {spec.label}", measure)
            bench.rates.note(measured.window.events_per_s)
            medians = medians_ms(measured.window.samples.column("write"))
            history.append(f"run {number}" + (" (disturbed)" if measured.again else ""))
            if not measured.again:
                break
            if number == 0:
                return


def _tell(show: Callable[[str], None], label: str, what: str) -> None:
    show(f"{label}: {what}")


def _explaining[T](bench: Bench, where: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:
        raise _explained(error, bench, where) from error


def _explained(error: Exception, bench: Bench, where: str) -> TidemarkError:
    """What to say about `error`: which run, and the dead server behind it, whose own words name its log."""
    said_so = described(error)
    deadline = time.monotonic() + DYING_SECONDS
    while not bench.servers.ended() and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        bench.servers.check()
    except TidemarkError as reason:
        said_so = reason
    full = isinstance(said_so, DiskFull) or shutil.disk_usage(bench.work).free < FULL_BYTES
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
    if not keep_tables:
        shutil.rmtree(work, ignore_errors=True)
