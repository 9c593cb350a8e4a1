"""What a window consists of: phases, each a row of steps; a step is what one system's statements do to one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tidemark.systems.lakehouses.kind import Lakehouse

LOAD, QUERY, MERGE, COMPACT = "load", "query", "merge", "compact"  # kinds of step
WARM = "warm"  # what is not counted: the first statement of a session compiles
BEFORE, AFTER, COMPACTED, QUERIED = "queries before", "queries after", "queries compacted", "queries"


class Known(Protocol):
    """What is known of an answer beforehand."""

    def difference(self, found: Sequence[Sequence[Any]]) -> str:
        """What an answer has otherwise, in words; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class Step:
    """`subject` is a table, or a query's name; `number` the how manieth time, from 1.

    A query has its `text` as DuckDB reads it, by which its answer is judged, or what it must be in `closed` form.
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
    """A table, and what it must hold: the rows of `base`, a query of DuckDB's, after merges of the files `merged`."""

    table: str
    key: tuple[str, ...]
    base: str
    merged: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """Steps that are timed one after the other; `held` are the tables as they must be once they are done.

    With `judged` each of these is read and compared then, or weighed alone where it is not to be `read`. With `second`
    another engine asks the phase's queries of the same tables afterwards. What does not count runs before, and is not
    timed.
    """

    name: str
    steps: tuple[Step, ...]
    held: tuple[Held, ...] = ()
    judged: bool = False
    counts: bool = True
    read: bool = True
    second: bool = False


Script = Callable[[Lakehouse], Sequence[Phase]]


def asking(name: str, texts: Sequence[tuple[str, str, str]], iterations: int, held: Sequence[Held]) -> Phase:
    """A phase of queries, all of them, and then all again; `texts`: name, text for the engine, text for DuckDB."""

    def steps() -> Iterator[Step]:
        for number in range(1, iterations + 1):
            for query, text, theirs in texts:
                yield Step(QUERY, query, number, (text,), theirs)

    return Phase(name, tuple(steps()), tuple(held))
