"""Windows of the part `load`: all tables, one after the other, then the queries in the order of their numbers.

Afterwards, a second engine runs the queries on the same tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemark.studies.lhbench.data import tpcds
from tidemark.studies.lhbench.data.store import Store
from tidemark.studies.lhbench.data.tables import TABLES, key_of, loaded, named_in
from tidemark.studies.lhbench.load.settings import LoadSettings
from tidemark.studies.lhbench.window.script import BEFORE, LOAD, Held, Phase, Step, asking
from tidemark.systems.spark_sql.base import SqlEngineTable


def needed(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the tables that any of the queries names, sorted."""
    return tuple(sorted({table for text in texts for table in named_in(text)}))


def tables_of(settings: LoadSettings, store: Store) -> tuple[str, ...]:
    texts = store.texts(settings.scale)
    return TABLES if settings.whole else needed([texts[number] for number in settings.numbers])


def loading(system: SqlEngineTable, store: Store, scale: float, tables: Sequence[str]) -> Phase:
    """Return a phase that loads `tables`, which are judged afterwards."""

    def step(table: str) -> Step:
        source = f"SELECT * FROM {system.parquet(store.file(scale, table))} WHERE {loaded(table)}"
        return Step(LOAD, table, 1, tuple(system.create(table, source, key_of(table))))

    held = tuple(Held(table, key_of(table), store.rows(scale, table)) for table in tables)
    return Phase(LOAD, tuple(map(step, tables)), held, judged=True)


def texts_of(store: Store, scale: float, numbers: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (name, text for Spark, text for DuckDB) of each query, as `asking` takes them."""
    texts = store.texts(scale)
    return [(f"q{number}", tpcds.for_spark(texts[number]), texts[number]) for number in numbers]


def script(system: SqlEngineTable, settings: LoadSettings, store: Store) -> Sequence[Phase]:
    first = loading(system, store, settings.scale, tables_of(settings, store))
    texts = texts_of(store, settings.scale, settings.numbers)
    return (first, replace(asking(BEFORE, texts, settings.iterations, first.held), second=True))
