"""Tests of a window's statements from the settings: loads, merges and queries in order, and expected tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from tidemark.config import Config
from tidemark.runs.spec import HasSettings
from tidemark.schema import Origin
from tidemark.services.base import Service
from tidemark.studies.lhbench.data.store import DONE, Store
from tidemark.studies.lhbench.script import Phase, script
from tidemark.studies.lhbench.settings import (
    PARTS,
    FilesSettings,
    LhbenchSection,
    LhbenchSettings,
    LoadSettings,
    MergeSettings,
    RefreshSettings,
    scale_word,
    settings_of,
)
from tidemark.systems.base import Context
from tidemark.systems.registry import of_kind
from tidemark.systems.spark_sql import SqlEngineTable, Written

TEXTS = {"3": "SELECT * FROM item, store_sales", "9": 'SELECT r_reason_sk AS "a reason" FROM reason, store_sales'}
SIZES: dict[str, Any] = {
    "load": {"scales": [0.01, 1], "tables": "asked", "queries": [9, 3], "iterations": 2},
    "refresh": {"scale": 0.01, "queries": [3], "merged": ["inventory"], "refreshes": 2, "share": 0.03, "updates": 0.5,
                "iterations": 1},
    "merge": {"rows": 1_000, "files": 10, "updates": [35, 4], "iterations": 1,
              "instead": {"slow": {"updates": [4], "repeats": 1}}},
    "files": {"counts": [1_000, 200], "rows": 20, "iterations": 2, "without": ["files-alone"]},
    "repeats": 2,
}  # fmt: skip
CONFIG = cast(Config, SimpleNamespace(protocol="smoke", origin=Origin("config.yaml", {}), seed=7))
SECTION = LhbenchSection(CONFIG, "lhbench", {"protocols": {"smoke": SIZES}, "systems": {}}, SIZES)


def cells[S: LhbenchSettings](kind: type[S], system: str = "any") -> Iterator[S]:
    """Yield the settings of the series of a system in a part."""
    part = next(name for name, each in PARTS.items() if each is kind)
    sizes = SECTION.part(part, system)
    return kind.cells(SECTION, sizes) if sizes is not None else iter(())


class Sources(dict[Path, str]):
    """View names by file, for tests without a session to make views in."""

    def __missing__(self, path: Path) -> str:
        return path.name.partition(".")[0].replace("-", "_")

    def __contains__(self, path: object) -> bool:
        return True


def system(name: str, tmp_path: Path, **options: Any) -> SqlEngineTable:
    """Return a system whose statements are read, and never run."""
    kind = of_kind(SqlEngineTable)[name]
    made = kind(Context(tmp_path, dict.fromkeys(kind.needs, cast(Service, None)), 1), kind.Options(**options))
    vars(made)["_sources"] = Sources()
    return made


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    base, sets = made.base(0.01), made.refreshes(next(cells(RefreshSettings)))
    for folder in (base, sets):
        folder.mkdir(parents=True)
    (base / DONE).write_text(json.dumps({"tables": {}, "queries": TEXTS}))
    with duckdb.connect() as connection:
        for number in (1, 2):
            connection.execute(f"COPY (SELECT 1 AS inv_date_sk, 2 AS q) TO '{sets}/inventory-{number}.parquet'")
    return made


def texts(phase: Phase) -> list[str]:
    return [statement for step in phase.steps for statement in step.statements]


def test_tables_named_by_queries_are_loaded_and_then_all_queries_run_twice(tmp_path: Path, store: Store) -> None:
    settings = next(cells(LoadSettings))
    assert settings.label == "load-sf0p01" and settings.numbers == ("3", "9")
    first, second = script(system("parquet-on-spark", tmp_path), settings, store)
    assert [step.subject for step in first.steps] == ["item", "reason", "store_sales"] and first.judged
    assert texts(first)[2] == (
        f"CREATE TABLE store_sales USING parquet LOCATION '{tmp_path}/tables/store_sales' "
        "AS SELECT * FROM store_sales WHERE ss_sold_date_sk IS NOT NULL"
    )
    assert [(step.subject, step.number) for step in second.steps] == [("q3", 1), ("q9", 1), ("q3", 2), ("q9", 2)]
    assert texts(second)[1] == "SELECT r_reason_sk AS `a reason` FROM reason, store_sales"
    assert second.steps[1].text == TEXTS["9"] and not second.judged and second.held == first.held
    assert second.second and not first.second  # the second engine runs after the first has loaded and queried


def test_refresh_is_merged_by_all_key_columns_and_checked_with_all_earlier_sets(tmp_path: Path, store: Store) -> None:
    settings = next(cells(RefreshSettings))
    phases = script(system("delta-on-spark", tmp_path, mode="copy-on-write"), settings, store)
    assert [phase.name for phase in phases] == [
        "load", "queries before", "merge 1", "merge 2", "queries after", "compact", "queries compacted",
    ]  # fmt: skip
    assert "'delta.enableDeletionVectors' = 'false'" in texts(phases[0])[0]
    assert texts(phases[3]) == [
        "MERGE INTO inventory AS old USING inventory_2 AS new ON old.inv_date_sk = new.inv_date_sk AND "
        "old.inv_item_sk = new.inv_item_sk AND old.inv_warehouse_sk = new.inv_warehouse_sk "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ]
    assert [[path.name for path in phase.held[0].merged] for phase in phases[2:4]] == [
        ["inventory-1.parquet"], ["inventory-1.parquet", "inventory-2.parquet"],
    ]  # fmt: skip
    assert {held.table: len(held.merged) for held in phases[4].held} == {"item": 0, "store_sales": 0, "inventory": 2}
    assert texts(phases[5]) == ["OPTIMIZE inventory"]
    assert [phase.name for phase in phases if phase.second] == ["queries after"]


def test_compaction_is_skipped_if_there_is_nothing_to_compact(tmp_path: Path, store: Store) -> None:
    settings = next(cells(RefreshSettings))
    copying, reading = (
        [phase.name for phase in script(system("hudi-on-spark", tmp_path, mode=mode), settings, store)]
        for mode in ("copy-on-write", "merge-on-read")
    )
    assert "compact" not in copying and "compact" in reading


def test_each_size_has_a_table_in_the_order_of_its_repeat_after_a_warm_up(tmp_path: Path, store: Store) -> None:
    settings = next(cells(MergeSettings))
    orders = set()
    for repeat in range(1, 9):
        warm, *phases = script(system("iceberg-on-spark", tmp_path), settings, store, repeat)
        assert not warm.counts and all(phase.counts for phase in phases)
        orders.add(tuple(phase.name for phase in phases if phase.name.startswith("load")))
    assert orders == {("load 4", "load 35"), ("load 35", "load 4")}
    assert [phase.name for phase in phases[:4]] == [
        f"{what} {phases[0].name.split()[1]}" for what in ("load", "queries before", "merge", "queries after")
    ]
    assert "FROM range(0, 1000, 1, 10)" in texts(phases[0])[0] and "'format-version' = '2'" in texts(phases[0])[0]


def test_table_of_many_files_is_registered_and_queried_after_a_warm_up(tmp_path: Path, store: Store) -> None:
    fewer, more = cells(FilesSettings)
    assert (fewer.label, more.label) == ("files-200", "files-1000")
    asked = system("delta-on-spark", tmp_path)
    known: dict[str, Written] = {}
    vars(asked)["register"] = known.__setitem__
    store.many(fewer).mkdir(parents=True)
    (store.many(fewer) / DONE).write_text(json.dumps({"data_bytes": 7}))
    warm, queries = script(asked, fewer, store)
    assert known == {"many_files": store.written(fewer)}
    assert not warm.counts and queries.judged and queries.read
    assert [(step.subject, step.number) for step in queries.steps] == [
        (query, number) for number in (1, 2) for query in ("limit", "count", "partition", "value")
    ]
    assert texts(queries)[2] == "SELECT sum(ss_quantity) FROM many_files WHERE ss_sold_date_sk = 100"
    assert all(step.closed is not None and not step.text for step in queries.steps)


def test_a_protocol_may_leave_a_system_out_of_a_part_or_measure_less_of_it() -> None:
    assert list(cells(FilesSettings, "files-alone")) == []
    (slow,), (other,) = cells(MergeSettings, "slow"), cells(MergeSettings)
    assert (slow.sizes, other.sizes, slow.rows) == ((4,), (4, 35), other.rows)
    assert [each["repeats"] for name in ("slow", "any") if (each := SECTION.part("merge", name))] == [1, 2]


@pytest.mark.parametrize("kind", PARTS.values())
def test_labels_of_plans_without_settings_tell_part_and_size(kind: type[LhbenchSettings]) -> None:
    for settings in cells(kind):
        known = settings_of(cast(HasSettings, SimpleNamespace(mode=settings.label, settings=())))
        assert type(known) is kind and (known.part, known.size) == (settings.part, settings.size)
        assert known.label == settings.label
        assert settings_of(cast(HasSettings, SimpleNamespace(mode=settings.label, settings=settings.pairs))) == settings
    assert [each.label for each in cells(LoadSettings)] == ["load-sf0p01", "load-sf1"]


@pytest.mark.parametrize("scale", [0.01, 0.1, 1, 10, 2.5])
def test_scale_factors_are_read_from_labels(scale: float) -> None:
    series = cast(HasSettings, SimpleNamespace(mode=f"load-{scale_word(scale)}", settings=()))
    assert settings_of(series).size == scale
