"""Pipelines: programs that read a topic themselves and write its events to a table, on their own schedule.

    table = pipeline.destination(options).open_as(TableSystem, context)     its table, and the reader of it
    table.create(schema)
    pipeline.start(source, table, interval_ms)
    ...                                                       table.visible_rows() returns its progress
    pipeline.kill(); pipeline.again()                         a crash, and a restart from its saved state
    pipeline.stop()

Nothing is measured inside a pipeline: its work is in the table's own history, as `TableSystem.history` returns it.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tidemark.config import ServicesConfig
from tidemark.errors import SystemFailure
from tidemark.services.base import Service
from tidemark.services.engines.spark import Spark, Stream, literal
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.systems.base import USERS_OWN, Capability, Context, Durability, System, Variant
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

# SQL types by Arrow type, for values that JSON supports; without times, whose types have other names in each engine.
TYPES = {
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "STRING",
    "large_string": "STRING",
}
TIME = "timestamp[us]"


@dataclass(frozen=True, slots=True)
class Source:
    """Topic with one partition; event k is at offset k, has the id k, and is a JSON object with all columns."""

    bootstrap: str  # the broker's address
    topic: str
    schema: pa.Schema  # of the events, and of the table


class StreamingSink(System):
    """Program that reads one topic and writes one table."""

    kind: ClassVar[str] = "a pipeline"
    capabilities: frozenset[Capability] = frozenset({Capability.READ_BACK, Capability.HISTORY})
    into: ClassVar[type[TableSystem]]  # creates its table, with default options, and reads it back
    exactly_once: ClassVar[str]  # how it ensures that each event is in the table once, in words
    begins_empty: ClassVar[bool] = False  # its first commit is of the empty topic
    quiet_s: ClassVar[float] = 0.5  # without a request to the catalog after which a commit is over

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._engine = context.services[self.engine(options)]
        if self._engine.is_elsewhere:
            self.say(f"it runs in {self._engine.title}, {USERS_OWN}, of which nothing is seen here but what it answers")

    @classmethod
    def engine(cls, options: Any) -> type[Service]:
        """Return the server that it runs in, which is the first that it needs."""
        return cls.needs_for(options)[0]

    @classmethod
    def why_no_kill(cls, options: Any, config: ServicesConfig) -> str | None:
        """Return why it must not be killed if the configuration's servers are `config`; None if it can be."""
        engine = cls.engine(options)
        if engine.address_in(config) is None:
            return None
        return f"it runs in {engine.title}, {USERS_OWN} (services.{engine.address_key}), which is not ours to kill"

    @classmethod
    def destination(cls, options: Any) -> Variant:
        """Return the system that creates its table and reads it back."""
        del options
        return Variant(cls.name, cls.into, cls.into.Options(), cls.title)

    @classmethod
    def for_single_events(cls, options: Any) -> Any:
        """Return `options` with which it commits an event that no other follows within an interval or two."""
        return options

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        """Return the services that it needs itself, and those of its table."""
        return (*cls.needs, *cls.destination(options).needs)

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        chosen = cls.destination(options)
        return super().unavailable(options) or chosen.system.unavailable(chosen.options)

    @abstractmethod
    def start(self, source: Source, table: TableSystem, interval_ms: int) -> None:
        """Start to read `source` from its first event, and to commit to `table` about every `interval_ms`.

        Return once it is running. Raise ServiceError or SystemFailure if it does not start.
        """

    @abstractmethod
    def _run(self) -> None:
        """Have the engine run what `start` made, from its saved state if there is one."""

    def kill(self) -> None:
        """Send SIGKILL to all its processes; the servers that it reads from and writes to keep running."""
        self._engine.kill()

    def again(self) -> None:
        """Restart it after `kill`, as an operator would, to continue from its saved state."""
        self._engine.start()
        self._run()

    @abstractmethod
    def check(self) -> None:
        """Raise ServiceError or SystemFailure, with the end of its log, if it should run and does not."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it, and remove its state outside of its table; no effect if it is not running."""

    def pids(self) -> list[int]:
        """Return the pipeline's root processes that belong to no service; their children are found from them."""
        return []

    def ended_seconds(self) -> float:
        """Return the CPU time in seconds of those of `pids` that were killed."""
        return 0.0

    def close(self) -> None:
        self.stop()


def columns(schema: pa.Schema, types: Mapping[str, str], engine: str) -> str:
    """Return SQL column declarations, by `types` of `engine`; raise SystemFailure for types that are not in it."""
    for column in schema:
        if str(column.type) not in types:
            raise SystemFailure(
                f"column '{column.name}' is {column.type}; a pipeline of {engine} takes {', '.join(types)}."
            )
    return ", ".join(f"{quoted(column.name)} {types[str(column.type)]}" for column in schema)


def quoted(name: str) -> str:
    """Return `name` as an SQL identifier, whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"


ALIGNED = "its batches begin at multiples of the interval, and not an interval after the first event that waits"


class SparkSink(StreamingSink):
    """One query of Spark Structured Streaming: one batch per interval, and one commit per batch with events."""

    needs: ClassVar[tuple[type[Service], ...]]  # the first is the Spark that supports the format
    durability: Durability = Durability(
        "Files, those of checkpoints among them, are left to the page cache.",
        counted=None,
        remark="a pipeline acknowledges nothing",
    )
    begins_empty: ClassVar[bool] = True
    quiet_s: ClassVar[float] = 2.0  # it writes to its checkpoint after the commit
    time: ClassVar[str] = "TIMESTAMP_NTZ"  # the type of a time, which has no zone; the session's zone is UTC

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._spark = cast(Spark, context.services[self.needs[0]])
        self._job = f"job-{secrets.token_hex(6)}"
        self._stream: Stream | None = None
        self._trigger: Mapping[str, str] = {}

        if self._spark.is_elsewhere:
            self.say("a kill ends its driver, which runs here; executors end by themselves when they find it gone")

    @classmethod
    def why_no_kill(cls, options: Any, config: ServicesConfig) -> str | None:
        """Return None: the driver is Tidemark's even if the executors are not."""
        del options, config
        return None

    @abstractmethod
    def _sink(self, table: TableSystem) -> Stream:
        """Return a stream that says how to write to `table`, which is newly created and empty."""

    def start(self, source: Source, table: TableSystem, interval_ms: int) -> None:
        shape = columns(source.schema, {**TYPES, TIME: self.time}, "Spark")
        self._stream = replace(
            self._sink(table),
            source={
                "kafka.bootstrap.servers": source.bootstrap,
                "subscribe": source.topic,
                "startingOffsets": "earliest",
            },
            query=f"SELECT event.* FROM (SELECT from_json(CAST(value AS STRING), {literal(shape)}, "
            "map('mode', 'FAILFAST')) AS event FROM events)",
            every_ms=interval_ms,
        )
        self._trigger = {"trigger": f"{interval_ms} ms"}
        self._run()

    def _run(self) -> None:
        assert self._stream is not None
        self._spark.run(self._job, self._stream)

    def check(self) -> None:
        self._spark.check_job()

    def stop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._spark.cancel(self._job)

    def settings(self) -> Mapping[str, str]:
        """Return the settings of the stream, without names and addresses that differ between runs."""
        return self._trigger

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {jar.artifact: jar.version for jar in read_jar_lock(jar_lock(cls.needs[0].locks[-1]))}
