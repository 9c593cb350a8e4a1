"""A series: one system in one mode, run 0 cold, then the hot runs, on one warm-up history."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

from tidemark.config import SystemEntry
from tidemark.dataset import Provenance
from tidemark.errors import DiskFull, OracleError, RebootNeeded, TidemarkError, is_disk_full
from tidemark.events import Encoding
from tidemark.lifetime import was_interrupted
from tidemark.machine import cold, reboot
from tidemark.machine.inventory import inventory
from tidemark.measure.plan import variant
from tidemark.measure.rates import Rates
from tidemark.measure.run import Bench, Measured, measure_run
from tidemark.measure.servers import prepared
from tidemark.measure.spec import SeriesSpec
from tidemark.paths import Workspace, private_directory, write_atomically
from tidemark.services.kafka import Kafka
from tidemark.stacks import locks
from tidemark.stream.producer import Producer
from tidemark.stream.sizes import EventSizes
from tidemark.stream.topics import Topics
from tidemark.systems.base import Variant

DYING_SECONDS = 1.0  # its connections break before a killed server counts as ended
FULL_BYTES = 1 << 20  # programs tell of a full disk in too many ways; with less than this it is one


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a series ended; the pipeline goes on either way, and the tables show the reason."""

    status: str  # complete | failed | not-run
    reason: str | None
    exit_code: int
    runs: tuple[int, ...]

    def write(self, path: Path) -> None:
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Outcome:
        values = json.loads(path.read_text())
        return cls(values["status"], values["reason"], values["exit_code"], tuple(values["runs"]))


def outcome_path(workspace: Workspace, spec: SeriesSpec) -> Path:
    return workspace.root / spec.directory / "outcome.json"


def finished_runs(directory: Path) -> list[int]:
    """Numbers of the runs whose files are whole."""
    return sorted(int(path.parent.name.removeprefix("run-")) for path in directory.glob("run-*/run.json"))


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
            with alone(workspace.private / "measuring.lock", show):
                _measure(spec, workspace, directory, show)
            outcome = Outcome("complete", None, 0, tuple(finished_runs(directory)))
        except RebootNeeded:
            raise
        except Exception as error:
            if was_interrupted():
                raise KeyboardInterrupt from error
            outcome = _failed(error, spec, workspace)
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


@contextmanager
def alone(path: Path, show: Callable[[str], None]) -> Iterator[None]:
    """Wait until nobody else measures in this workspace: two windows at once would measure each other."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            show("waiting for another series to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _failed(error: Exception, spec: SeriesSpec, workspace: Workspace) -> Outcome:
    described = _described(error)
    # Logs were moved out of the working directory, which is gone by now.
    place = re.compile(re.escape(str(_work(spec, workspace))) + r"(?:/[\w-]+)?/([\w-]+\.log)")
    reason = place.sub(lambda found: str(_logs(spec, workspace) / found[1]), str(described))
    runs = tuple(finished_runs(workspace.root / spec.directory))
    return Outcome("failed", reason, described.exit_code, runs)


def _described(error: Exception) -> TidemarkError:
    if isinstance(error, TidemarkError):
        return error
    if is_disk_full(error):
        return DiskFull(f"no room left on the device: {error}")
    return TidemarkError(f"{type(error).__name__}: {error}")


def _measure(spec: SeriesSpec, workspace: Workspace, directory: Path, show: Callable[[str], None]) -> None:
    dataset = Provenance.read(workspace.root / spec.dataset_directory / "dataset.json")
    _set_aside(directory, dataset)
    missing = [number for number in range(spec.runs) if number not in finished_runs(directory)]
    if not missing:
        return
    reboot.claim(workspace, spec.id, alone=spec.cold == "reboot" and missing[0] == 0)
    chosen = _variant(spec)
    work = _work(spec, workspace)
    shutil.rmtree(work, ignore_errors=True)
    private_directory(work)
    logs = private_directory(_logs(spec, workspace))
    method = cold.choose(spec.cold)
    with ExitStack() as stack:
        stack.callback(_tidy, work, logs, spec.keep_tables)
        show("starting the servers")
        servers = stack.enter_context(prepared((Kafka, *chosen.needs), workspace, work, spec.services))
        files = {**servers.files(), "dataset": (workspace.root / spec.dataset_directory / "trips.parquet",)}
        if missing[0] == 0:
            show("making it cold")
            cold.evict(method, [path for group in files.values() for path in group])
        proof = cold.prove(method, files)
        trips = workspace.root / spec.dataset_directory / "trips.parquet"
        producer = stack.enter_context(Producer(trips, work))
        servers.launch()
        kafka = servers.by_class[Kafka]
        assert isinstance(kafka, Kafka)
        bench = Bench(
            spec=spec,
            variant=chosen,
            servers=servers,
            producer=producer,
            topics=Topics(kafka, producer, spec.fingerprint),
            dataset=dataset,
            sizes=EventSizes.read(workspace.root / spec.dataset_directory / "events.json"),
            machine=inventory(workspace.root),
            lock_digests=locks(spec.stack),
            work=work,
        )
        _runs(bench, workspace, directory, missing, proof, method, show)


def _runs(
    bench: Bench,
    workspace: Workspace,
    directory: Path,
    missing: list[int],
    proof: cold.ColdProof,
    method: cold.Method,
    show: Callable[[str], None],
) -> None:
    spec = bench.spec
    key, stores = f"{spec.stack}/{spec.name}/{spec.mode_label}", bool(bench.variant.system.capabilities)
    rates = Rates(workspace.private / "rates.json", key, spec.mode, stores)
    history = "cold start" if missing[0] == 0 else ""
    programs = bench.servers.programs()
    reading: Thread | None = None

    def begin() -> None:
        ahead = rates.events(spec.window_seconds, spec.batch_size, bench.work)
        bench.topics.begin(Encoding(spec.encoding), ahead if spec.producer == "ahead" else spec.batch_size)

    def follow(events_per_s: float) -> None:
        nonlocal reading
        rates.note(events_per_s)
        begin()
        reading = Thread(target=warm, args=(programs,), name="warm")
        reading.start()  # beside the oracle

    def one(number: int, target: Path | None, label: str) -> Measured:
        last = number == spec.runs - 1 and target is not None
        try:
            measured = measure_run(
                bench,
                number,
                target,
                proof,
                history,
                merge=last and spec.maintenance,
                show=lambda what: show(f"{label}: {what}"),
                following=rates.note if last else follow,
            )
        except Exception as error:
            raise _explained(error, bench, f"run {number} of {spec.label}") from error
        finally:
            if reading is not None:
                reading.join()
        return measured

    # The topic can be filled while others are still starting.
    bench.servers.start(lambda service: begin() if service is bench.kafka else None)
    if missing[0] > 0:
        one(missing[0], None, "warm-up, not counted")
        history = "interrupted before; one warm-up window that is not counted"
    for number in missing:
        if number > 0:
            files = bench.servers.files()
            warm(path for group in files.values() for path in group if path not in programs)
            proof = cold.prove(method, files)
        one(number, directory / f"run-{number}", f"run {number} of {spec.runs}")
        history = f"run {number}" if not history.startswith("interrupted") else f"{history}, run {number}"


def warm(files: Iterable[Path]) -> None:
    """Read files of the servers once, so that hot means the same for every system: all of it is in memory."""
    buffer = bytearray(1 << 20)
    for path in files:
        try:
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
        except OSError:
            continue  # a server removes files of its own while it runs


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
    full = shutil.disk_usage(bench.work).free < FULL_BYTES
    kind = DiskFull if full and not isinstance(described, OracleError) else type(described)
    return kind(f"{where}: {'no room left on the device: ' if full else ''}{described}")


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
