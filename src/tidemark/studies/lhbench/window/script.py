"""Structure of a window: phases of steps. A step is one system's statements that change one table, or one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tidemark.systems.spark_sql.base import SqlEngineTable

LOAD, QUERY, MERGE, COMPACT = "load", "query", "merge", "compact"  # kinds of step
WARM = "warm"  # kind of uncounted steps: the first statement of a session compiles
BEFORE, AFTER, COMPACTED, QUERIED = "queries before", "queries after", "queries compacted", "queries"


class Known(Protocol):
    """An answer that is known in advance."""

    def difference(self, found: Sequence[Sequence[Any]]) -> str:
        """Return how an answer differs, in words; empty if it does not."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `subject` is a table or a query's name, `number` the ordinal of its execution, from 1.

    A query has its `text` for DuckDB, which the judge runs to check the answer, or its answer in `closed` form.
    """

    kind: str
    subject: str
    number: int
    statements: tuple[str, ...]
    text: str = ""
    closed: Known | None = None

    @property
    def label(self) -> str:
        return f"{self.kind} {self.subject} {self.number}"


@dataclass(frozen=True, slots=True)
class Held:
    """A table and its expected content: the rows of the DuckDB query `base`, after merges of the files `merged`."""

    table: str
    key: tuple[str, ...]
    base: str
    merged: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps that are timed one after the other; `held`: the tables with their expected content after the steps.

    With `judged`, these tables are then read and compared, or only their sizes are taken if `read` is False. With
    `second`, another engine runs the phase's queries on the same tables afterwards. With `counts` False, the phase runs
    before the timed ones and is not timed.
    """

    name: str
    steps: tuple[Step, ...]
    held: tuple[Held, ...] = ()
    judged: bool = False
    counts: bool = True
    read: bool = True
    second: bool = False


Script = Callable[[SqlEngineTable], Sequence[Phase]]


def asking(name: str, texts: Sequence[tuple[str, str, str]], iterations: int, held: Sequence[Held]) -> Phase:
    """Return a phase of `iterations` passes over all queries; `texts`: name, text for the engine, text for DuckDB."""

    def steps() -> Iterator[Step]:
        for number in range(1, iterations + 1):
            for query, text, theirs in texts:
                yield Step(QUERY, query, number, (text,), theirs)

    return Phase(name, tuple(steps()), tuple(held))
