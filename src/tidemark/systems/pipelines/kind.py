"""Pipelines: programs that read a topic themselves and write what they read to a table, when they see fit.

    table = pipeline.destination(options).open_as(TableSystem, context)     its table, and who reads it
    table.create(schema)
    pipeline.start(source, table, interval_ms)
    ...                                                       table.visible_rows() says how far it has come
    pipeline.kill(); pipeline.again()                         a crash, and a start from what it has kept
    pipeline.stop()

Nothing of it is measured inside: what it did is in the table's own history, as `TableSystem.history` tells it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.config import ServicesConfig
from tidemark.errors import SystemFailure
from tidemark.services.base import Service
from tidemark.systems.base import USERS_OWN, Context, System, Variant
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

# Arrow's types, as far as JSON has their values, in the SQL of engines: but for times, whose names differ.
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
    """A topic of one partition. Event k lies at offset k, has the id k, and is an object of JSON with all columns."""

    bootstrap: str  # the broker's address
    topic: str
    schema: pa.Schema  # of the events, and of the table


class PipelineSystem(System):
    """One program that reads one topic and writes one table."""

    kind: ClassVar[str] = "a pipeline"
    exactly_once: ClassVar[str]  # how it sees to it that each event is in the table once, in words

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        engine = context.services[self.engine(options)]
        if engine.is_elsewhere:
            self.say(f"it runs in {engine.title}, {USERS_OWN}, of which nothing is seen here but what it answers")

    @classmethod
    def engine(cls, options: Any) -> type[Service]:
        """The server that it runs in: the first that it needs."""
        return cls.needs_for(options)[0]

    @classmethod
    def why_no_kill(cls, options: Any, config: ServicesConfig) -> str | None:
        """Why it is not to be killed where the configuration's servers are `config`; None where it can be."""
        engine = cls.engine(options)
        if engine.address_in(config) is None:
            return None
        return f"it runs in {engine.title}, {USERS_OWN} (services.{engine.address_key}), which is not ours to kill"

    @classmethod
    @abstractmethod
    def destination(cls, options: Any) -> Variant:
        """The system that makes its table and reads it back."""

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        """What it needs itself, and what its table does."""
        return (*cls.needs, *cls.destination(options).needs)

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        chosen = cls.destination(options)
        return super().unavailable(options) or chosen.system.unavailable(chosen.options)

    @abstractmethod
    def start(self, source: Source, table: TableSystem, interval_ms: int) -> None:
        """Begin to read `source` from its first event, and commit to `table` about every `interval_ms`.

        Returns once it is at work. Raises ServiceError or SystemFailure where it does not start.
        """

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL to all its processes; what it reads from and writes to goes on."""

    @abstractmethod
    def again(self) -> None:
        """After `kill`: start anew, as an operator would, and go on from what it has kept."""

    @abstractmethod
    def check(self) -> None:
        """Raise ServiceError or SystemFailure, with the end of its log, where it should run and does not."""

    @abstractmethod
    def stop(self) -> None:
        """End it, and remove what it kept outside of its table; nothing happens when it does not run."""

    def pids(self) -> list[int]:
        """The first of its processes that belong to no service: their children are found."""
        return []

    def ended_seconds(self) -> float:
        """Processor time of those of `pids` that were killed."""
        return 0.0

    def close(self) -> None:
        self.stop()


def columns(schema: pa.Schema, types: Mapping[str, str], engine: str) -> str:
    """As SQL declares them, by `types` of `engine` for Arrow's; SystemFailure where JSON has no such values."""
    return ", ".join(f"{quoted(field.name)} {_type(field, types, engine)}" for field in schema)


def _type(column: pa.Field, types: Mapping[str, str], engine: str) -> str:
    try:
        return types[str(column.type)]
    except KeyError:
        raise SystemFailure(
            f"column '{column.name}' is {column.type}; a pipeline of {engine} takes {', '.join(types)}."
        ) from None


def quoted(name: str) -> str:
    """A name in SQL, whatever it is made of."""
    return "`" + name.replace("`", "``") + "`"
