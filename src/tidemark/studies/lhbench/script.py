"""Script of a window: phases of steps. A step is one system's statements that change one table, or one query.

Part `load`: all tables, one after the other, then the queries in the order of their numbers. Part `refresh`: load,
queries, merges, queries, compaction, queries. Part `merge`: for each size, a fresh table, queries, one merge, and the
same queries again. Part `files`: four queries of one table whose files exist beforehand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidemark.studies.lhbench.data import many_files, micro
from tidemark.studies.lhbench.data.store import Store
from tidemark.studies.lhbench.data.tpcds import FACTS, for_spark, key_of, loaded
from tidemark.studies.lhbench.settings import (
    FilesSettings,
    LhbenchSettings,
    LoadSettings,
    MergeSettings,
    RefreshSettings,
    TpcdsSettings,
)
from tidemark.systems.spark_sql import SqlEngineTable

LOAD, QUERY, MERGE, COMPACT = "load", "query", "merge", "compact"  # kinds of step
WARM = "warm"  # kind of uncounted steps: the first statement of a session compiles
BEFORE, AFTER, COMPACTED, QUERIED = "queries before", "queries after", "queries compacted", "queries"
MERGE_QUERIES = {
    "count": "SELECT count(*) FROM {table}",
    "not null": "SELECT count(*) FROM {table} WHERE key IS NOT NULL",
    "sums": "SELECT sum(key), sum(value), sum(CAST(value2 AS DOUBLE)) FROM {table}",
}
LIMIT, COUNT, PARTITION, VALUE = "limit", "count", "partition", "value"
FILES_QUERIES = {
    LIMIT: "SELECT * FROM {table} LIMIT 1",
    COUNT: "SELECT count(*) FROM {table}",
    PARTITION: f"SELECT sum({many_files.QUANTITY}) FROM {{table}} WHERE {many_files.DATE} = {many_files.SOUGHT}",
    VALUE: f"SELECT sum({many_files.QUANTITY}) FROM {{table}} WHERE {many_files.ITEM} = {many_files.SOUGHT}",
}
SELECTIVE = (LIMIT, PARTITION, VALUE)  # queries that the paper shows in figures
MANY_FILES = "many_files"  # table of the part `files`
# Warm-up of a session as in LHBench's program: five times, with a hundredth of its rows and a tenth of its tasks.
WARMING = "SELECT sum(id % 97) FROM range(0, 1000000, 1, 100)"
WARMINGS = 5
# Up to this many files, a reader without the engine checks all rows. Opening more would take it longer than a part.
READ_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Closed:
    """Expected answer to one of the queries of the part `files`, by arithmetic alone."""

    query: str
    files: int
    rows: int  # per file

    def difference(self, found: Sequence[Sequence[Any]]) -> str:
        """Return how an answer differs, in words; empty if it does not."""
        if len(found) != 1:
            return f"{len(found)} rows of 1"
        if self.query == LIMIT:
            return self._of_a_row(found[0])
        wanted = self.number
        return "" if [int(str(value)) for value in found[0]] == [wanted] else f"{found[0][0]} in place of {wanted}"

    @property
    def number(self) -> int:
        """The single number that the query returns."""
        sought = many_files.SOUGHT
        if self.query == COUNT:
            return self.files * self.rows
        if self.query == VALUE:
            return many_files.quantities(range(sought, sought + 1))
        return many_files.quantities(range(sought * self.rows, (sought + 1) * self.rows))

    def _of_a_row(self, found: Sequence[Any]) -> str:
        """Return how `found` differs from the table's row with its item; any row of the table is correct."""
        number = int(str(found[list(many_files.COLUMNS).index(many_files.ITEM)]))
        if not 0 <= number < self.files * self.rows:
            return f"item {number}, of which the table has no row"
        wanted = many_files.row(number, self.rows)
        pairs = zip(many_files.COLUMNS, wanted, found, strict=True)
        wrong = [name for name, value, other in pairs if Decimal(str(other)) != value]
        return f"other values in {', '.join(wrong)}" if wrong else ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `subject` is a table or a query's name, `number` the ordinal of its execution, from 1.

    A query has its `text` for DuckDB, which the verifier runs to check the answer, or its answer in `closed` form.
    """

    kind: str
    subject: str
    number: int
    statements: tuple[str, ...]
    text: str = ""
    closed: Closed | None = None

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


def script(system: SqlEngineTable, settings: LhbenchSettings, store: Store, repeat: int = 1) -> tuple[Phase, ...]:
    """Return the phases of a window; `repeat` is the number of its session in the series."""
    if isinstance(settings, FilesSettings):
        return _files(system, settings, store)
    if isinstance(settings, MergeSettings):
        return _merges(system, settings, store, repeat)
    assert isinstance(settings, TpcdsSettings)
    return tuple(_tpcds(system, settings, store))


def _asking(name: str, queries: Sequence[Step], iterations: int, held: Sequence[Held]) -> Phase:
    """Return a phase of `iterations` passes over all queries."""
    steps = (replace(query, number=number) for number in range(1, iterations + 1) for query in queries)
    return Phase(name, tuple(steps), tuple(held))


def _tpcds(system: SqlEngineTable, settings: TpcdsSettings, store: Store) -> Iterator[Phase]:
    """Yield the phases of the parts `load` and `refresh`."""
    texts = store.texts(settings.scale)
    queries = [Step(QUERY, f"q{number}", 1, (for_spark(texts[number]),), texts[number]) for number in settings.numbers]
    first = _loading(system, store, settings)
    before = _asking(BEFORE, queries, settings.iterations, first.held)
    yield first
    if isinstance(settings, LoadSettings):
        yield replace(before, second=True)
        return
    assert isinstance(settings, RefreshSettings)
    yield before
    folder = store.refreshes(settings)
    for number in range(1, settings.refreshes + 1):
        steps = tuple(_merging(system, table, number, _set(folder, table, number)) for table in settings.tables)
        yield Phase(f"{MERGE} {number}", steps, _merged(first.held, settings, folder, number), judged=True)
    merged = _merged(first.held, settings, folder, settings.refreshes)
    everything = (*(each for each in first.held if each.table not in settings.tables), *merged)
    yield replace(_asking(AFTER, queries, settings.iterations, everything), second=True)
    compacting = tuple(Step(COMPACT, table, 1, tuple(system.compact(table))) for table in settings.tables)
    if all(step.statements for step in compacting):
        yield Phase(COMPACT, compacting, merged, judged=True)
        yield _asking(COMPACTED, queries, settings.iterations, everything)


def _loading(system: SqlEngineTable, store: Store, settings: TpcdsSettings) -> Phase:
    """Return the phase that loads all tables, which are verified afterwards."""
    steps, held = [], []
    for table in store.tables(settings):
        file, key, condition = store.file(settings.scale, table), key_of(table), loaded(table)
        source = f"SELECT * FROM {system.parquet(file)} WHERE {condition}"
        steps.append(Step(LOAD, table, 1, tuple(system.create(table, source, key))))
        held.append(Held(table, key, f"SELECT * FROM read_parquet('{file}') WHERE {condition}"))
    return Phase(LOAD, tuple(steps), tuple(held), judged=True)


def _set(folder: Path, table: str, number: int) -> Path:
    return folder / f"{table}-{number}.parquet"


def _merging(system: SqlEngineTable, table: str, number: int, path: Path) -> Step:
    columns = pq.read_schema(path).names
    return Step(MERGE, table, number, tuple(system.merge(table, system.parquet(path), FACTS[table].key, columns)))


def _merged(loaded: Sequence[Held], settings: RefreshSettings, folder: Path, number: int) -> tuple[Held, ...]:
    """Return the tables that are merged into, with their expected content after `number` refreshes."""
    return tuple(
        replace(each, merged=tuple(_set(folder, each.table, past) for past in range(1, number + 1)))
        for each in loaded
        if each.table in settings.tables
    )


def _merges(system: SqlEngineTable, settings: MergeSettings, store: Store, repeat: int) -> tuple[Phase, ...]:
    """Return the phases of the part `merge`, sizes in a random order per repeat, so that none is always the first."""
    sizes = list(settings.sizes)
    random.Random(f"{settings.seed} {repeat}").shuffle(sizes)
    warm = _one_merge(system, settings, store, WARM, min(sizes))
    steps = tuple(step for phase in warm for step in phase.steps)
    uncounted = Phase(WARM, steps, counts=False)
    return (uncounted, *(phase for size in sizes for phase in _one_merge(system, settings, store, size, size)))


def _one_merge(
    system: SqlEngineTable, settings: MergeSettings, store: Store, name: int | str, updates: int
) -> Iterator[Phase]:
    table = f"micro_{name}"
    path = store.sets(settings) / f"set-{updates}.parquet"
    query = micro.made_by_spark(settings.rows, settings.files)
    held = Held(table, micro.KEY, micro.base(settings.rows))
    merged = replace(held, merged=(path,))
    asked = [(query, text.format(table=table)) for query, text in MERGE_QUERIES.items()]
    queries = [Step(QUERY, query, 1, (text,), text) for query, text in asked]
    created = Step(LOAD, table, 1, tuple(system.create(table, query, micro.KEY)))
    yield Phase(f"{LOAD} {name}", (created,), (held,), judged=True)
    yield _asking(f"{BEFORE} {name}", queries, settings.iterations, (held,))
    merge = tuple(system.merge(table, system.parquet(path), micro.KEY, tuple(micro.COLUMNS)))
    yield Phase(f"{MERGE} {name}", (Step(MERGE, table, 1, merge),), (merged,), judged=True)
    yield _asking(f"{AFTER} {name}", queries, settings.iterations, (merged,))


def _files(system: SqlEngineTable, settings: FilesSettings, store: Store) -> tuple[Phase, ...]:
    system.register(MANY_FILES, store.written(settings))
    warm = tuple(Step(WARM, "tasks", number, (WARMING,)) for number in range(1, WARMINGS + 1))
    asked = [
        Step(QUERY, query, 1, (text.format(table=MANY_FILES),), closed=Closed(query, settings.files, settings.rows))
        for query, text in FILES_QUERIES.items()
    ]
    held = Held(MANY_FILES, (many_files.ITEM,), many_files.base(settings.files, settings.rows))
    queried = _asking(QUERIED, asked, settings.iterations, (held,))
    return Phase(WARM, warm, counts=False), replace(queried, judged=True, read=settings.files <= READ_FILES)
