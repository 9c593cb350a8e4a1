"""`tidemark bench`: cost of the harness itself on this machine, with interleaved variants so that drift cancels out."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tidemark.dataset import make_dataset
from tidemark.machine.inventory import inventory
from tidemark.machine.processes import hold_machine
from tidemark.machine.watch import Watch
from tidemark.measure.workload import TestBed
from tidemark.paths import Workspace, private_directory, write_atomically
from tidemark.progress import Progress
from tidemark.runs.spec import BATCH, SINGLE, STAGES, SeriesSpec
from tidemark.schema import Origin
from tidemark.services.base import Service
from tidemark.services.http import keep_loopback_direct
from tidemark.services.kafka import Kafka
from tidemark.services.leftovers import drop_leftovers
from tidemark.services.servers import prepared
from tidemark.settings import DatasetConfig
from tidemark.stream.events import Encoding
from tidemark.stream.producer import Producer
from tidemark.stream.sizes import weigh
from tidemark.stream.topics import Topics
from tidemark.studies.streams.loop import clock
from tidemark.studies.streams.runner import open_window
from tidemark.studies.streams.samples import GROW, Samples, StreamWindow
from tidemark.studies.streams.session import Rates
from tidemark.studies.streams.settings import StreamSettings
from tidemark.studies.streams.study import Streams
from tidemark.systems.registry import SystemEntry, registry, variant

TRIPS = 200_000
READ_AHEAD = 64  # as in the shipped configuration
WHOLE_MONTH = 4_181_444  # events: yellow 2025-11, for the producer's projection


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Variant of a window; `name` states the difference."""

    name: str
    system: str
    mode: str
    batch_size: int = 1
    encoding: str = "record"
    overlap: bool = False
    read_ahead: int | None = None  # None: READ_AHEAD in single mode


ARRANGEMENTS = (
    Arrangement("null, single", "null", SINGLE),
    Arrangement("null, single, read one by one", "null", SINGLE, read_ahead=1),
    Arrangement("null, single, stream encoding", "null", SINGLE, encoding="stream"),
    Arrangement("null, batch of 1,000", "null", BATCH, 1000),
    Arrangement("null, batch of 1,000, stream encoding", "null", BATCH, 1000, encoding="stream"),
    Arrangement("null, batch of 1,000, overlap", "null", BATCH, 1000, overlap=True),
    Arrangement("ducklake, single", "ducklake", SINGLE),
    Arrangement("ducklake, single, read one by one", "ducklake", SINGLE, read_ahead=1),
    Arrangement("ducklake, batch of 1,000", "ducklake", BATCH, 1000),
    Arrangement("ducklake, batch of 1,000, overlap", "ducklake", BATCH, 1000, overlap=True),
)


@dataclass(frozen=True, slots=True)
class Row:
    """Medians over the repetitions; stages in microseconds per event."""

    name: str
    events_per_s: float
    least: float
    most: float
    harness_to_system: float  # events/s of the window over events/s inside `write`; 1 means no harness overhead
    write_median_ms: float
    stages_us: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of single parts of the harness."""

    clock_pair_ns: float
    recording_ns: float
    resident_mb_of_10m_operations: float
    sampler_percent_of_a_core: float
    producer_events_per_s: float
    producer_seconds_of_a_month: float


def bench(workspace: Workspace, base: SeriesSpec, repetitions: int, seconds: float) -> None:
    """Run every arrangement `repetitions` times, interleaved, then print and save the results.

    `base` is any series of the configuration; it supplies the settings that an arrangement leaves open.
    """
    keep_loopback_direct()
    drop_leftovers(workspace)
    with ExitStack() as stack:
        stack.enter_context(hold_machine(lambda what: print(f"tidemark: {what}", file=sys.stderr)))
        work = private_directory(workspace.work) / "bench"
        private_directory(work)
        trips = work / "trips" / "trips.parquet"
        dataset = make_dataset(DatasetConfig("synthetic", synthetic_rows=TRIPS), base.seed, workspace, trips)
        weigh(trips).write(trips.with_name("events.json"))
        systems = registry()
        needs: list[type[Service]] = [Kafka, *(kind for each in ARRANGEMENTS for kind in systems[each.system].needs)]
        servers = stack.enter_context(prepared(needs, workspace, work, base.services))
        servers.start()
        workloads = {each.name: _streams(base, each, seconds, trips, work) for each in ARRANGEMENTS}
        first = next(iter(workloads.values()))
        session = stack.enter_context(first.start_processes(work))
        machine = inventory(workspace.root)
        test_bed = TestBed(first.spec, first.variant, servers, first, dataset, machine, {}, None, work, work, session)
        kafka = servers.by_class[Kafka]
        assert isinstance(kafka, Kafka)
        topics = session.topics.on(kafka)  # shared by all arrangements, as the producer is
        test_beds = {
            name: replace(
                test_bed, spec=each.spec, variant=each.variant, workload=each,
                session=each.taken_over(session),
            )
            for name, each in workloads.items()
        }  # fmt: skip
        windows: dict[str, list[StreamWindow]] = {name: [] for name in test_beds}
        sampler_s: list[float] = []
        fill_rate = _fill_rate(topics, session.producer)
        with Progress("bench", repetitions * len(ARRANGEMENTS), " windows") as progress:
            for _ in range(repetitions):
                for name, test_bed in test_beds.items():
                    window, sampling_s = _measure(test_bed, seconds)
                    windows[name].append(window)
                    sampler_s.append(sampling_s / (window.elapsed_ns / 1e9))
                    progress.update(sum(map(len, windows.values())), name)
        rows = [_row(name, taken) for name, taken in windows.items()]
        costs = Costs(
            clock_pair_ns=_per_turn_ns(lambda _turn: clock() - clock()),
            recording_ns=_recording_ns(),
            resident_mb_of_10m_operations=_resident_mb(),
            sampler_percent_of_a_core=100 * statistics.median(sampler_s),
            producer_events_per_s=fill_rate,
            producer_seconds_of_a_month=WHOLE_MONTH / fill_rate,
        )
        _print(rows, costs, repetitions, seconds)
        kept = {"rows": [asdict(row) for row in rows], "costs": asdict(costs), "seconds": seconds}
        kept |= {"repetitions": repetitions, "machine": asdict(machine)}
        write_atomically(workspace.results / "bench.json", json.dumps(kept, indent=1) + "\n")


def _measure(test_bed: TestBed, seconds: float) -> tuple[StreamWindow, float]:
    """Measure one window on a separate table and topic; return the window and the CPU seconds spent on sampling."""
    with open_window(test_bed, "bench", seconds, lambda _what: None) as runner:
        window = runner.new_window()
        watch = Watch(test_bed.work, test_bed.groups(runner), test_bed.workload.excluded_groups)
        for _ in runner.segments(window, seconds):
            with watch:
                runner.execute(window, seconds)
        runner.finish(window)
    return window, watch.sampler.cpu_s


def _streams(base: SeriesSpec, each: Arrangement, seconds: float, trips: Path, private: Path) -> Streams:
    settings = replace(
        StreamSettings.of(base),
        mode=each.mode,
        batch_size=each.batch_size,
        encoding=each.encoding,
        overlap=each.overlap,
        producer="ahead",
        read_ahead=each.read_ahead or (READ_AHEAD if each.mode == SINGLE else 1),
        maintenance=False,
    )
    spec = replace(
        base,
        sweep=each.name,
        name=each.system,
        title=each.system,
        system=each.system,
        options=(),
        mode=settings.label,
        settings=settings.pairs,
        window_seconds=seconds,
        keep_tables=False,
        cpus=None,
    )
    chosen = variant(SystemEntry(each.system, each.system, None, ()), Origin("bench", {}))
    streams = Streams(spec, chosen, trips, private)
    streams.rates = Rates(private / "rates.json", each.name, each.encoding)
    return streams


def _row(name: str, windows: list[StreamWindow]) -> Row:
    writes = [window.samples.column("write") for window in windows]
    rates = [window.events_per_s for window in windows]
    return Row(
        name=name,
        events_per_s=statistics.median(rates),
        least=min(rates),
        most=max(rates),
        harness_to_system=statistics.median(
            float(write.sum()) / window.elapsed_ns for write, window in zip(writes, windows, strict=True)
        ),
        write_median_ms=statistics.median(float(np.median(write)) / 1e6 for write in writes),
        stages_us={
            stage: statistics.median(window.budget()[stage] / 1e3 / window.samples.events for window in windows)
            for stage in STAGES
        },
    )


def _fill_rate(topics: Topics, producer: Producer) -> float:
    """Return the events per second that the producer writes to a topic before a window."""
    events = 300_000
    began = time.perf_counter()
    topic = topics.begin(Encoding.RECORD, events)
    topics.wait_until_filled()
    rate = events / (time.perf_counter() - began)
    producer.finish()
    topics.drop(topic)
    return rate


def _per_turn_ns(action: Callable[[int], object], turns: int = 200_000) -> float:
    """Return the nanoseconds per call without the loop around it; the minimum of five rounds."""

    def go(what: Callable[[int], object]) -> float:
        began = clock()
        for turn in range(turns):
            what(turn)
        return (clock() - began) / turns

    return min(go(action) for _ in range(5)) - min(go(lambda _turn: None) for _ in range(5))


def _recording_ns() -> float:
    """Return the nanoseconds needed to store the five numbers of one operation."""
    start, poll, decode, assemble, write = (array("q", bytes(8 * 200_000)) for _ in range(5))

    def keep(turn: int) -> None:
        start[turn] = turn
        poll[turn] = turn
        decode[turn] = turn
        assemble[turn] = turn
        write[turn] = turn

    return _per_turn_ns(keep)


def _resident_mb() -> float:
    """Return the resident memory, in MB, of a process that records 10 million operations and writes them to Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tidemark.studies.streams.bench", folder]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _record_ten_million(folder: Path) -> float:
    samples = Samples(1)
    while len(samples.start) < 10_000_000:
        samples.grow()
    samples.count = 10_000_000
    for place in range(0, samples.count, GROW // 64):
        samples.write[place] = place
    StreamWindow(samples).write_parquet(folder / "operations.parquet")
    # Not getrusage: its maximum survives exec, so it would be that of the parent process.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _print(rows: list[Row], costs: Costs, repetitions: int, seconds: float) -> None:
    console = Console(width=190)
    table = Table(title=f"The harness: medians of {repetitions} interleaved windows of {seconds:g} s", box=None)
    table.add_column("variant")
    for title in ("events/s", "least", "most", "harness/system", "write ms", *STAGES):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.events_per_s:,.0f}",
            f"{row.least:,.0f}",
            f"{row.most:,.0f}",
            f"{row.harness_to_system:.3f}" if not row.name.startswith("null") else "",
            f"{row.write_median_ms:.3f}",
            *(f"{row.stages_us[stage]:.2f}" for stage in STAGES),
        )
    console.print(table)
    console.print("Stages in microseconds an event.")
    for name, value in asdict(costs).items():
        console.print(f"{name.replace('_', ' ')}: {value:,.1f}")


if __name__ == "__main__":
    print(_record_ten_million(Path(sys.argv[1])))
