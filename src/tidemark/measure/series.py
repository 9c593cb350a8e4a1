"""A series: one system in one mode, run 0 cold, then the hot runs, on one warm-up history."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from tidemark.config import SystemEntry
from tidemark.dataset import Provenance
from tidemark.errors import DiskFull, OracleError, RebootNeeded, TidemarkError, is_disk_full
from tidemark.lifetime import was_interrupted
from tidemark.machine import cold, reboot
from tidemark.machine.disk import settle
from tidemark.machine.inventory import inventory
from tidemark.machine.only_one import alone
from tidemark.measure.outcome import Outcome, attempt, disturbed_runs, finished_runs, outcome_path, read_attempts
from tidemark.measure.plan import variant
from tidemark.measure.rates import Rates
from tidemark.measure.run import Before, files_of, measure_run, warm
from tidemark.measure.servers import prepared
from tidemark.measure.spec import SeriesSpec
from tidemark.measure.stage import Bench
from tidemark.measure.warmup import medians_ms, probe, warm_up
from tidemark.paths import Workspace, private_directory
from tidemark.services.kafka import Kafka
from tidemark.stacks import locks
from tidemark.stream.producer import Producer
from tidemark.stream.sizes import EventSizes
from tidemark.stream.topics import Topics
from tidemark.systems.base import Capability, Variant

DYING_SECONDS = 1.0  # its connections break before a killed server counts as ended
FULL_BYTES = 1 << 20  # programs tell of a full disk in too many ways; with less than this it is one


def needs_restart(spec: SeriesSpec, workspace: Workspace) -> bool:
    """Whether `spec` still has a cold run to do, in a boot that nobody has used."""
    if spec.cold != "reboot" or 0 in finished_runs(workspace.root / spec.directory):
        return False
    chosen = _variant(spec)
    return chosen.system.unavailable(chosen.options) is None


def measure_series(spec: SeriesSpec, workspace: Workspace, show: Callable[[str], None]) -> Outcome:
    """Measure the runs of `spec` that are not there yet, and write outcome.json whatever happens but Ctrl-C.

    A run that is complete stays as it is. A series that was interrupted after its cold run goes on with a
    warm-up window that is not counted, so that its hot runs are hot. Raises RebootNeeded, and writes nothing,
    where the cold run needs a boot of its own and this one is used.
    """
    directory = workspace.root / spec.directory
    private_directory(directory)
    chosen = _variant(spec)
    reason = chosen.system.unavailable(chosen.options)
    if reason is not None:
        outcome = Outcome("not-run", reason, 0, ())
    else:
        try:
            with alone(show), attempt(directory):
                try:
                    _measure(spec, workspace, directory, show)
                except RebootNeeded:
                    raise
                except Exception as error:
                    if was_interrupted():
                        raise KeyboardInterrupt from error
                    raise _failed(error, spec, workspace) from error
            outcome = Outcome("complete", None, 0, tuple(finished_runs(directory)))
        except RebootNeeded:
            raise
        except TidemarkError as error:
            outcome = Outcome("failed", str(error), error.exit_code, tuple(finished_runs(directory)))
    outcome = replace(outcome, attempts=read_attempts(directory), disturbed=disturbed_runs(directory))
    outcome.write(outcome_path(workspace, spec))
    return outcome


def _variant(spec: SeriesSpec) -> Variant:
    return variant(SystemEntry(spec.name, spec.system, spec.title, spec.options), "the series")


def _work(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Where the series' servers and tables lie while it runs."""
    return workspace.work / spec.id.replace("/", "-")


def _logs(spec: SeriesSpec, workspace: Workspace) -> Path:
    """Where the servers' logs lie after it."""
    return workspace.root / spec.directory / "logs"


def _failed(error: Exception, spec: SeriesSpec, workspace: Workspace) -> TidemarkError:
    """`error` as one of ours, which names logs where they are kept: the working directory is gone by now."""
    described = _described(error)
    place = re.compile(re.escape(str(_work(spec, workspace))) + r"(?:/[\w-]+)?/([\w-]+\.log)")
    reason = place.sub(lambda found: str(_logs(spec, workspace) / found[1]), str(described))
    failed = TidemarkError(reason)
    failed.exit_code = described.exit_code  # type: ignore[misc]
    return failed


def _described(error: Exception) -> TidemarkError:
    if isinstance(error, TidemarkError):
        return error
    if is_disk_full(error):
        return DiskFull(f"no room left on the device: {error}")
    return TidemarkError(f"{type(error).__name__}: {error}")


def _measure(spec: SeriesSpec, workspace: Workspace, directory: Path, show: Callable[[str], None]) -> None:
    """Measure the runs that are missing. A cold run that is to be measured once more begins the series anew."""
    dataset = Provenance.read(workspace.root / spec.dataset_directory / "dataset.json")
    _set_aside(directory, dataset)
    missing = _missing(spec, directory)
    if not missing:
        return
    reboot.claim(workspace, spec.id, alone=spec.cold == "reboot" and missing[0] == 0)
    rates = Rates(workspace.private / "rates.json", f"{spec.stack} {spec.name} {spec.mode_label}", spec.encoding)
    rest_bytes = settle(None).left_bytes
    started = partial(_bench, spec, workspace, dataset, rates, rest_bytes)
    if rates.events_per_s is None and spec.cold != cold.Method.REBOOT:  # which makes a machine cold for one run alone
        with started(None, show) as (bench, _):
            _explaining(bench, "the probe before run 0", partial(probe, bench, show))
    while missing:
        method = cold.choose(spec.cold)
        with started(method if missing[0] == 0 else None, show) as (bench, proof):
            _runs(bench, directory, missing, proof, method, show)
        missing = _missing(spec, directory)


def _missing(spec: SeriesSpec, directory: Path) -> list[int]:
    finished = finished_runs(directory)
    return [number for number in range(spec.runs) if number not in finished]


@contextmanager
def _bench(
    spec: SeriesSpec,
    workspace: Workspace,
    dataset: Provenance,
    rates: Rates,
    rest_bytes: int | None,
    make_cold: cold.Method | None,
    show: Callable[[str], None],
) -> Iterator[tuple[Bench, cold.ColdProof]]:
    """Servers and producer, started in a clean folder, with the proof of how cold the machine was right before.

    `make_cold`: how it is made so; None where what follows is not a cold run.
    """
    chosen = _variant(spec)
    prepared_directory = workspace.root / spec.dataset_directory
    trips = prepared_directory / "trips.parquet"
    work = _work(spec, workspace)
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    logs = private_directory(_logs(spec, workspace))
    with ExitStack() as stack:
        stack.callback(_tidy, work, logs, spec.keep_tables)
        show("starting the servers")
        servers = stack.enter_context(prepared((Kafka, *chosen.needs), workspace, work, spec.services))
        files = {**files_of(servers, chosen), "dataset": (trips,)}
        if make_cold is not None:
            show("making it cold")
            if make_cold is not cold.Method.NONE:
                cold.page_out([os.getpid()])
            cold.evict(make_cold, [path for group in files.values() for path in group])
        proof = cold.prove(make_cold or cold.Method.NONE, files)
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
                rates=rates,
                dataset=dataset,
                sizes=EventSizes.read(prepared_directory / "events.json"),
                machine=inventory(workspace.root),
                lock_digests=locks(spec.stack),
                rest_bytes=rest_bytes,
                work=work,
            ),
            proof,
        )


def _runs(
    bench: Bench,
    directory: Path,
    missing: list[int],
    proof: cold.ColdProof,
    method: cold.Method,
    show: Callable[[str], None],
) -> None:
    """Measure the `missing` runs one after the other, each disturbed one again as often as configured.

    Where that is run 0 it ends at once: another cold run needs other servers.
    """
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
            measure = partial(measure_run, bench, number, directory, before, merge, tell)
            measured = _explaining(bench, f"run {number} of {spec.label}", measure)
            bench.rates.note(measured.events_per_s)
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
    described = _described(error)
    deadline = time.monotonic() + DYING_SECONDS
    while not bench.servers.ended() and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        bench.servers.check()
    except TidemarkError as reason:
        described = reason
    full = isinstance(described, DiskFull) or shutil.disk_usage(bench.work).free < FULL_BYTES
    kind = DiskFull if full and not isinstance(described, OracleError) else type(described)
    said = "" if not full or "no room left" in str(described) else "no room left on the device: "
    return kind(f"{where}: {said}{described}")


def _set_aside(directory: Path, dataset: Provenance) -> None:
    """Runs on other trips (the dataset was acquired anew from another source) are kept, but not counted."""
    for path in directory.glob("run-*/run.json"):
        if json.loads(path.read_text())["dataset"]["sha256"] != dataset.sha256:
            number = 1
            while (directory / f"superseded-{number}").exists():
                number += 1
            (directory / f"superseded-{number}").mkdir()
            for run in directory.glob("run-*"):
                run.rename(directory / f"superseded-{number}" / run.name)
            return


def _tidy(work: Path, logs: Path, keep_tables: bool) -> None:
    """Keep the servers' logs; give the rest of the disk space back."""
    for path in [*work.glob("*.log"), *work.glob("*/*.log")]:
        with suppress(OSError):  # a full disk must not keep what fills it from being removed
            shutil.copyfile(path, logs / path.name)
    if not keep_tables:
        shutil.rmtree(work, ignore_errors=True)
