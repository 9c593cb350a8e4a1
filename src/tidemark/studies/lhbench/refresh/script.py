"""Windows of the part `refresh`: load, queries, merges, queries, compaction, queries.

After the merges, a second engine runs the queries on the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from tidemark.studies.lhbench.data.store import Store
from tidemark.studies.lhbench.data.tables import FACTS
from tidemark.studies.lhbench.load.script import loading, needed, texts_of
from tidemark.studies.lhbench.refresh.settings import RefreshSettings
from tidemark.studies.lhbench.window.script import AFTER, BEFORE, COMPACT, COMPACTED, MERGE, Held, Phase, Step, asking
from tidemark.systems.spark_sql.base import SqlEngineTable


def tables_of(settings: RefreshSettings, store: Store) -> tuple[str, ...]:
    """Return the tables that queries name and those that are merged into, sorted."""
    texts = store.texts(settings.scale)
    return tuple(sorted({*needed([texts[number] for number in settings.numbers]), *settings.tables}))


def script(system: SqlEngineTable, settings: RefreshSettings, store: Store) -> Sequence[Phase]:
    return tuple(_phases(system, settings, store))


def _phases(system: SqlEngineTable, settings: RefreshSettings, store: Store) -> Iterator[Phase]:
    folder = store.refreshes(settings)
    texts = texts_of(store, settings.scale, settings.numbers)
    loaded = loading(system, store, settings.scale, tables_of(settings, store))
    yield loaded
    yield asking(BEFORE, texts, settings.iterations, loaded.held)
    for number in range(1, settings.refreshes + 1):
        steps = tuple(
            _merging(system, table, number, _set(folder, table, number), FACTS[table].key) for table in settings.tables
        )
        yield Phase(f"{MERGE} {number}", steps, _held(loaded.held, settings, folder, number), judged=True)
    merged = _held(loaded.held, settings, folder, settings.refreshes)
    everything = (*(each for each in loaded.held if each.table not in settings.tables), *merged)
    yield replace(asking(AFTER, texts, settings.iterations, everything), second=True)
    compacting = tuple(Step(COMPACT, table, 1, tuple(system.compact(table))) for table in settings.tables)
    if all(step.statements for step in compacting):
        yield Phase(COMPACT, compacting, merged, judged=True)
        yield asking(COMPACTED, texts, settings.iterations, everything)


def _set(folder: Path, table: str, number: int) -> Path:
    return folder / f"{table}-{number}.parquet"


def _merging(system: SqlEngineTable, table: str, number: int, path: Path, key: Sequence[str]) -> Step:
    columns = pq.read_schema(path).names
    return Step(MERGE, table, number, tuple(system.merge(table, system.parquet(path), key, columns)))


def _held(loaded: Sequence[Held], settings: RefreshSettings, folder: Path, number: int) -> tuple[Held, ...]:
    """Return the tables that are merged into, with their expected content after `number` refreshes."""
    return tuple(
        replace(each, merged=tuple(_set(folder, each.table, past) for past in range(1, number + 1)))
        for each in loaded
        if each.table in settings.tables
    )
