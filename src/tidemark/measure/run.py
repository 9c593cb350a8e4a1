"""One run: a fresh table and a fresh topic, one window, then flush, oracle, footprint, and the run's files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tidemark.dataset import Provenance
from tidemark.errors import OracleError, StreamError
from tidemark.events import Encoding
from tidemark.machine.cold import ColdProof
from tidemark.machine.inventory import Inventory
from tidemark.machine.sampler import Sampler
from tidemark.measure import maintenance
from tidemark.measure.describe import client_versions, libraries, logical_bytes, marks, series_part, system_part
from tidemark.measure.loop import Window, run_window
from tidemark.measure.oracle import consult, difference
from tidemark.measure.runfiles import (
    SCHEMA_VERSION,
    DiskPart,
    Manifest,
    ProducerPart,
    write_run,
)
from tidemark.measure.servers import Servers
from tidemark.measure.spec import SeriesSpec
from tidemark.paths import private_directory
from tidemark.services.kafka import Kafka
from tidemark.stream.consumer import EventConsumer
from tidemark.stream.producer import Produced, Producer
from tidemark.stream.sizes import EventSizes
from tidemark.stream.source import Source
from tidemark.stream.topics import Topics
from tidemark.systems.base import Context, Variant

BESIDE_MARGIN = 50_000  # events that a producer beside the window keeps ahead


def margin(batch_size: int) -> int:
    """Events that must be left in the topic, or more are produced while the window is open."""
    return max(10_000, 4 * batch_size)


@dataclass(frozen=True, slots=True)
class Bench:
    """What the runs of a series share."""

    spec: SeriesSpec
    variant: Variant
    servers: Servers
    producer: Producer
    topics: Topics
    dataset: Provenance
    sizes: EventSizes
    machine: Inventory
    lock_digests: dict[str, str]
    work: Path  # emptied after each run unless tables are kept

    @property
    def kafka(self) -> Kafka:
        service = self.servers.by_class[Kafka]
        assert isinstance(service, Kafka)
        return service


@dataclass(frozen=True, slots=True)
class Measured:
    """A window with everything that was asked right after it."""

    window: Window
    produced: Produced
    events_per_s: float
    sampler_cpu_s: float


def measure_run(
    bench: Bench,
    number: int,
    target: Path | None,
    proof: ColdProof,
    history: str,
    merge: bool,
    show: Callable[[str], None],
    following: Callable[[float], None] | None = None,
) -> Measured:
    """Measure run `number` and put its files into `target`; None for a warm-up that is not counted.

    `bench.topics` must have begun the run's topic; `following` is given the events a second of this run once
    nothing of it is timed any more, to begin the next. Raises OracleError when the table does not hold what was
    acknowledged; then nothing is written, and the error says what differs.
    """
    spec = bench.spec
    directory = private_directory(bench.work / f"run-{number}")
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    with ExitStack() as stack:
        stack.callback(_remove, directory, spec.keep_tables)
        context = Context(
            directory, bench.servers.by_class, spec.batch_size, threads=spec.threads, compression=spec.compression
        )
        system = bench.variant.open(context)
        stack.callback(system.close)
        show("filling the topic")
        stack.callback(bench.topics.drop, bench.topics.begun)
        system.create(bench.producer.schema)  # while the topic is being filled
        commits_before = system.commits()
        topic = bench.topics.ready()
        consumer = stack.enter_context(EventConsumer(bench.kafka.bootstrap, topic, Encoding(spec.encoding)))
        codec = consumer.open()
        if codec.schema != bench.producer.schema:
            raise StreamError(f"topic {topic}: its schema message is not that of the trips: {codec.schema}")

        groups: dict[str, Callable[[], list[int]]] = {
            service.name: service.leader for service in bench.servers.by_class.values()
        }
        groups |= {"harness": lambda: [os.getpid()], "producer": lambda: [bench.producer.pid]}
        counters = bench.producer.counters
        source = Source(consumer.client, counters, bench.producer.is_alive)
        reserve = margin(spec.batch_size) if spec.producer == "ahead" else BESIDE_MARGIN

        def count(events: int) -> None:
            counters.consumed = events

        bench.producer.follow(reserve, spec.window_seconds)

        def each_second(seconds: float) -> None:
            show(f"{seconds:.0f} of {spec.window_seconds:g} s")
            if bench.servers.ended() or not bench.producer.is_alive():
                source.abandon()  # what is in memory already could last for minutes

        sampler = Sampler(bench.work, groups, on_second=each_second)
        with sampler:
            window = run_window(
                source, codec, system.write, spec.batch_size, spec.window_seconds, spec.overlap, count, spec.read_ahead
            )
        bench.servers.check()
        produced = bench.producer.finish()
        before_sync = sampler.disk.read()
        os.sync()
        after_sync = sampler.disk.read()
        bench.servers.check()
        events = window.samples.events
        if events == 0:
            raise StreamError(
                f"not one operation ended within the window of {spec.window_seconds:g} s; "
                "a longer window (protocol) may be what it needs"
            )
        measured = Measured(window, produced, events / (window.elapsed_ns / 1e9), sampler.cpu_s)
        show("flush and oracle")
        # Before all else: what a system commits only when it is asked something is not yet in its table.
        verdict = consult(system, events, window.samples.count, commits_before)
        if not verdict.verdict:
            raise OracleError(f"{difference(verdict, window.samples.count)}. The run is not counted.")
        footprint = system.footprint()
        flush = maintenance.flush(system)
        if following is not None:  # from here on nothing is timed
            following(measured.events_per_s)
        if flush is not None and not consult(system, events).verdict:
            raise OracleError("the flush of inlined rows changed the table's rows")
        merged = maintenance.merge(system) if merge else None
        if merged is not None and not consult(system, events).verdict:
            raise OracleError("the merge of small files changed the table's rows")
        if target is not None:
            manifest = Manifest(
                schema_version=SCHEMA_VERSION,
                series=series_part(spec),
                run=number,
                cold=number == 0,
                started_at=started_at,
                window_s=spec.window_seconds,
                elapsed_ns=window.elapsed_ns,
                operations=window.samples.count,
                events=events,
                system=system_part(bench.variant, system, codec.schema),
                versions={**bench.servers.versions(), **libraries(), **client_versions(type(system))},
                lock_digests=bench.lock_digests,
                dataset=asdict(bench.dataset),
                machine=bench.machine,
                cold_proof=proof,
                time_budget_ns=window.budget(),
                marks=marks(window, produced, spec),
                producer=ProducerPart.of(spec.producer, produced, bench.dataset.rows),
                sampler_cpu_s=sampler.cpu_s,
                disk=DiskPart(
                    sampler.disk.device,
                    sampler.disk.reason,
                    None if before_sync is None or after_sync is None else after_sync - before_sync,
                ),
                oracle=verdict,
                flush=flush,
                merge=merged,
                footprint=footprint,
                footprint_after_flush=None if flush is None else system.footprint(),
                logical_bytes=logical_bytes(bench.sizes, events),
                history=history,
                config=json.loads(spec.to_json()),
            )
            show("writing the run's files")
            write_run(target, window.samples, sampler.series, manifest)
    return measured


def _remove(directory: Path, keep: bool) -> None:
    if not keep:
        shutil.rmtree(directory, ignore_errors=True)
