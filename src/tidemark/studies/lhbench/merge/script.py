"""Windows of the part `merge`: for each size, a fresh table, queries, one merge, and the same queries again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tidemark.studies.lhbench.data import micro
from tidemark.studies.lhbench.data.store import Store
from tidemark.studies.lhbench.merge.settings import MergeSettings
from tidemark.studies.lhbench.window.script import AFTER, BEFORE, LOAD, MERGE, WARM, Held, Phase, Step, asking
from tidemark.systems.spark_sql.base import SqlEngineTable

QUERIES = {
    "count": "SELECT count(*) FROM {table}",
    "not null": "SELECT count(*) FROM {table} WHERE key IS NOT NULL",
    "sums": "SELECT sum(key), sum(value), sum(CAST(value2 AS DOUBLE)) FROM {table}",
}


def table_of(size: int | str) -> str:
    return f"micro_{size}"


def script(system: SqlEngineTable, settings: MergeSettings, store: Store, repeat: int) -> Sequence[Phase]:
    """Return the phases, with the sizes in a random order per repeat, so that no size is always the first."""
    sizes = list(settings.sizes)
    random.Random(f"{settings.seed} {repeat}").shuffle(sizes)
    warm = _merged(system, settings, store, WARM, min(sizes))
    steps = tuple(step for phase in warm for step in phase.steps)
    uncounted = Phase(WARM, steps, counts=False)
    return (uncounted, *(phase for size in sizes for phase in _merged(system, settings, store, size, size)))


def _merged(
    system: SqlEngineTable, settings: MergeSettings, store: Store, name: int | str, updates: int
) -> Iterator[Phase]:
    table = table_of(name)
    path = store.sets(settings) / f"set-{updates}.parquet"
    query = micro.made_by_spark(settings.rows, settings.files)
    held = Held(table, micro.KEY, micro.base(settings.rows))
    merged = Held(table, micro.KEY, held.base, (path,))
    asked = {query: text.format(table=table) for query, text in QUERIES.items()}
    texts = [(query, text, text) for query, text in asked.items()]
    created = Step(LOAD, table, 1, tuple(system.create(table, query, micro.KEY)))
    yield Phase(f"{LOAD} {name}", (created,), (held,), judged=True)
    yield asking(f"{BEFORE} {name}", texts, settings.iterations, (held,))
    merge = tuple(system.merge(table, system.parquet(path), micro.KEY, tuple(micro.COLUMNS)))
    yield Phase(f"{MERGE} {name}", (Step(MERGE, table, 1, merge),), (merged,), judged=True)
    yield asking(f"{AFTER} {name}", texts, settings.iterations, (merged,))
