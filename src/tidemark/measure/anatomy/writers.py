"""Writers of tables whose commits are counted: a system's client in another process, or a pipeline.

A pipeline commits by its own clock. It gets the events of a commit when the commit before has been counted: each commit
then has the same number of rows, and counters are read while it does nothing.
"""

from __future__ import annotations

import json
import pickle
import re
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import pyarrow.parquet as pq

from tidemark import without_pandas
from tidemark.code import PACKAGE
from tidemark.errors import OracleError, SystemFailure
from tidemark.measure.anatomy.client import Order, batches, files, wrong
from tidemark.runs.anatomy import IN_SERIES, Source
from tidemark.services.base import Service
from tidemark.services.kafka import Kafka
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.services.programs.worker import Worker
from tidemark.services.proxies import Exchange
from tidemark.stream.paced import JSON, PacedProducer
from tidemark.systems import sinks
from tidemark.systems.base import Context, Variant
from tidemark.systems.sinks import StreamingSink
from tidemark.systems.tables import TableSystem

PROGRAM = "tidemark.measure.anatomy.client"
IMPORTED_FROM = [PACKAGE.parent]  # folders in which the client's process finds its modules
COMMITS_S = 3600.0  # that the commits before a counted one may take
INTERVAL_MS = 2000  # between two commits of a pipeline: some ask the catalog by their clock
COMMIT_S = 120.0  # that one may take
BEGUN_S = 4 * INTERVAL_MS / 1000  # after its start
LOOK_S = 0.1
MESSAGES = 1000  # different events, or as many as a commit has; they are sent over and over
SINKS = re.compile(r"(iceberg|delta|hudi)-(flink|spark|kafka-connect$)")  # names of jars
NOT_COUNTED: Mapping[str, str] = MappingProxyType(
    {
        Source.MEMORY: "the peak of a JVM follows its garbage collector, and no single commit",
        IN_SERIES: "what a pipeline asks the broker lies between its requests to the catalog, and is not seen",
        "requests to Kafka": "a broker tells its clients its own address, before which no proxy stands",
        "state outside of the table": "the offsets and checkpoints that a pipeline keeps are no files of the table",
    }
)

type Files = Mapping[str, Sequence[int]]  # size, time of change and inode by path


@dataclass(slots=True)
class Client:
    """The system's own client, in a process of its own."""

    worker: Worker
    versions: Mapping[str, str]
    spare: int = 10  # commits after the counted ones, of which the quickest is kept in steps
    not_counted: Mapping[str, str] = field(default_factory=dict)  # the reason, by source or name
    settings: Mapping[str, str] = field(default_factory=dict)  # of a pipeline
    apart: Collection[type[Service]] = ()  # servers of which no system calls are counted, or as the writer's

    def pids(self) -> list[int]:
        return [self.worker.pid]

    def write(self, count: int) -> int:
        """Make commits; return the peak of the client's memory in bytes, in the last one."""
        return int(self._ask(f"write {count}", "wrote"))

    def files(self) -> Files:
        found: Files = json.loads(self._ask("files", "files"))
        return found

    def wrong(self) -> str:
        """Return how the table differs from what was written; empty if it does not."""
        return self._ask("check", "holds")

    def _ask(self, words: str, expected: str) -> str:
        self.worker.tell(words)
        return self.worker.heard(expected, time.monotonic() + COMMITS_S, f"'{words}' took more than an hour")


@contextmanager
def client(variant: Variant, context: Context, columns: int, folder: Path) -> Iterator[Client]:
    """Start the client of `variant` with a new table, and end it."""
    command = launched([sys.executable, "-m", without_pandas.NAME, PROGRAM])
    environment = server_environment(HOME=str(folder), PYTHONPATH=":".join(map(str, IMPORTED_FROM)))
    worker = Worker(f"the client of {variant.name}", command, folder / "client.log", env=environment, cwd=folder)
    try:
        worker.send(pickle.dumps(Order(variant, context, columns)))
        worker.heard("ready")
        yield Client(worker, variant.system.versions())
    finally:
        worker.end()


class Pipeline:
    """A pipeline that runs in its engine, and the producer of its events.

    `exchanges` returns its exchanges with the catalog since the last count, unanswered ones among them; None if
    no catalog's server takes part.
    """

    spare = 3
    not_counted: Mapping[str, str] = NOT_COUNTED

    def __init__(
        self,
        system: StreamingSink,
        table: TableSystem,
        producer: PacedProducer,
        engine: Service,
        rows: int,
        exchanges: Callable[[], list[Exchange]] | None,
    ) -> None:
        self._system, self._table, self._producer, self._engine = system, table, producer, engine
        self._rows, self._exchanges = rows, exchanges
        self._done = 0
        self.settings: Mapping[str, str] = dict(system.settings())
        jars = [jar for name in engine.locks for jar in read_jar_lock(jar_lock(name)) if SINKS.match(jar.artifact)]
        versions = {jar.artifact: jar.version for jar in jars}  # of the engine's sink
        self.versions: Mapping[str, str] = {**versions, engine.title: engine.version()}
        self.apart: Collection[type[Service]] = (type(engine), Kafka)

    def pids(self) -> list[int]:
        return self._engine.pids()

    def write(self, count: int) -> None:
        for _ in range(count):
            wanted = self._commits() + 1
            self._producer.send(self._rows)
            self._done += 1
            self.await_commit(wanted)

    def await_start(self) -> None:
        """Return when it has prepared for its first events, by a commit of no rows if it begins with one."""
        time.sleep(BEGUN_S)
        self.await_commit(1 if self._system.begins_empty and self._exchanges is not None else 0)

    def await_commit(self, wanted: int) -> None:
        """Return once there are `wanted` commits since the last count, and then no request for a while."""
        deadline, since = time.monotonic() + COMMIT_S, time.monotonic()
        while (now := time.monotonic()) - since <= self._system.quiet_s:
            if self._commits() < wanted or self._is_asking(since):
                since = now
            self._system.check()
            if now > deadline:
                raise SystemFailure(f"{self._system.name} made no commit within {COMMIT_S:.0f} s of its events")
            time.sleep(LOOK_S)

    def files(self) -> Files:
        return files(self._table)

    def wrong(self) -> str:
        brought = [commit.rows for commit in self._table.history()]
        if brought != [self._rows] * self._done:
            raise OracleError(
                f"{self._system.name}: found {len(brought)} commits of {', '.join(map(str, sorted({*brought})))} rows; "
                f"expected {self._done} of {self._rows}. Run it again, or with fewer --rows."
            )
        return wrong(self._table, self._rows * self._done, self._done)

    def _commits(self) -> int:
        """Return the number of commits: by requests since the last count, or by the rows that are visible."""
        if self._exchanges is None:
            return self._table.visible_rows() // self._rows
        return sum(map(is_commit, self._exchanges()))

    def _is_asking(self, since: float) -> bool:
        found = [] if self._exchanges is None else self._exchanges()
        return any(not each.received_bytes or each.ended_s > since for each in found)


@contextmanager
def pipeline(
    variant: Variant,
    context: Context,
    servers: Mapping[type[Service], Service],
    columns: int,
    folder: Path,
    exchanges: Callable[[], list[Exchange]] | None,
) -> Iterator[Pipeline]:
    """Start the pipeline of `variant` from a new topic to a new table, and stop it.

    It reaches servers as `context` says, and its table is created and read by way of `servers`, which is not counted.
    """
    kind, kafka, rows = variant.system, servers[Kafka], context.rows_per_write
    assert issubclass(kind, StreamingSink) and isinstance(kafka, Kafka)
    with ExitStack() as stack:
        own = replace(context, services=servers)
        table = kind.destination(variant.options).open_as(TableSystem, own)
        stack.callback(table.close)
        system = variant.open_as(StreamingSink, context)
        stack.callback(system.close)
        events = batches(max(rows, MESSAGES), columns)(0)
        trips = folder / "trips.parquet"
        pq.write_table(events, trips)
        table.create(events.schema)
        topic = f"tidemark-{secrets.token_hex(6)}"
        kafka.create_topic(topic)
        producer = stack.enter_context(PacedProducer(trips, folder, kafka.bootstrap, topic, JSON))
        system.start(sinks.Source(kafka.bootstrap, topic, events.schema), table, INTERVAL_MS)
        engine = servers[kind.engine(variant.options)]
        found = Pipeline(system, table, producer, engine, rows, exchanges)
        found.await_start()
        yield found


def is_commit(exchange: Exchange) -> bool:
    """Return True for an answered request by which a client commits to a table of an Iceberg REST catalog."""
    is_answered = exchange.method == "POST" and exchange.received_bytes > 0
    return is_answered and exchange.asked.split("/")[-2:-1] == ["tables"]
