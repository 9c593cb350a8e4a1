"""Tests of the page of run files, and of the database's page, against runs of every study."""

from __future__ import annotations

import fnmatch
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tidemark.machine.sampler import MachineSamples
from tidemark.pipeline.build import build_database
from tidemark.results.reference.run_files import RunFiles, meanings, run_files_page, unit
from tidemark.studies.ingest.window.ambiguity import Attempted
from tidemark.studies.ingest.window.one_client import Added, AtAge
from tidemark.studies.study import registry

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).parent / "smoke"
ARCHIVES = sorted(SMOKE.glob("*.zip"))
FILES = {name: study.results.run_files for name, study in registry().items()}
# Answers of the program that judges tables: results read the part of them that is described.
OPEN = ("found.data.*", "found.second.*")
# Columns of windows that are newer than the archives: tests/end_to_end/test_ingest.py finds these in its own runs.
NEWER = {"ingest": {*meanings(Attempted), *meanings(Added), *meanings(AtAge)}}


@dataclass
class Lacking:
    first_ns: int  # the first
    second: str


def members(archive: Path, name: str) -> Iterator[bytes]:
    with zipfile.ZipFile(archive) as packed:
        yield from (packed.read(each) for each in packed.namelist() if Path(each).name == name)


def tables(page: str) -> dict[str, list[str]]:
    """Return the first cells of the tables below each heading."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^##+ ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        found.setdefault(heading, []).extend(re.findall(r"^\| `([^`]+)` \|", body, re.MULTILINE))
    return found


PAGE = tables((ROOT / "docs/run-files.md").read_text())


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each key of JSON; those in lists have `[]`."""
    if isinstance(value, dict):
        for key, each in value.items():
            place = f"{path}.{key}".lstrip(".")
            yield place
            yield from keys(each, place)
    elif isinstance(value, list):
        for each in value:
            yield from keys(each, f"{path}[]")


def described(study: str) -> set[str]:
    """Return the patterns of keys of run.json that the page describes, for runs of a study."""
    found = {*PAGE["run.json"], *(f"found.{key}" for key in PAGE[f"found in runs of {study}"])}
    for heading, names in PAGE.items():
        for place in re.findall(r"`([^`]+)`", heading):
            parts = place.split(".")
            above = {".".join(parts[:size]) for size in range(2, len(parts) + 1)}  # names of objects, such as a query's
            found |= {*above, *(f"{place}.{name}" for name in names)}
    # Objects without a table of their own have any keys.
    return found | {
        f"{each}.*" for each in found if not any(other.startswith((f"{each}.", f"{each}[")) for other in found)
    }


def matches(key: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(key.replace("[]", "<>"), pattern.replace("[]", "<>"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.stem)
def test_columns_of_real_runs_are_described(archive: Path) -> None:
    study = archive.stem
    files = FILES[study]
    assert files is not None
    for operations in members(archive, "operations.parquet"):
        assert set(pq.read_schema(BytesIO(operations)).names) <= set(PAGE[f"Operations of {study}"])
    for name in files.more:
        for stages in members(archive, f"{name}.parquet"):
            assert pq.read_schema(BytesIO(stages)).names == PAGE[f"{name}.parquet"]
    machine = [each.replace("<group>", "*") for each in PAGE["machine.parquet"]]
    for seconds in members(archive, "machine.parquet"):
        for name in pq.read_schema(BytesIO(seconds)).names:
            assert any(fnmatch.fnmatchcase(name, each) for each in machine), name
    with zipfile.ZipFile(archive) as packed:
        known = {"operations.parquet", "machine.parquet", *(f"{name}.parquet" for name in files.more)}
        assert {Path(each).name for each in packed.namelist() if each.endswith(".parquet")} <= known


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.stem)
def test_keys_of_real_runs_are_described(archive: Path) -> None:
    patterns = described(archive.stem)
    written = {key for text in members(archive, "run.json") for key in keys(json.loads(text))}
    assert written
    assert [key for key in written if not any(matches(key, each) for each in (*patterns, *OPEN))] == []


def test_an_undescribed_key_is_found() -> None:
    patterns = described("freshness")
    for key, known in (("oracle.found", True), ("found.kills[].again_s", True), ("found.kills[].again", False),
                       ("versions.DuckDB", True), ("disk.written_by.kafka", True), ("disk.kafka", False)):  # fmt: skip
        assert any(matches(key, each) for each in patterns) == known, key


def test_every_described_column_is_in_a_real_run() -> None:
    for archive in ARCHIVES:
        written = {
            name
            for operations in members(archive, "operations.parquet")
            for name in pq.read_schema(BytesIO(operations)).names
        }
        page = set(PAGE[f"Operations of {archive.stem}"])
        assert page - NEWER.get(archive.stem, set()) <= written <= page


def test_a_field_without_a_comment_is_an_error() -> None:
    with pytest.raises(KeyError, match="second"):
        run_files_page({"x": RunFiles((Lacking,))})
    assert meanings(MachineSamples)["cpu_percent"] == "of all processors: used by any process"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("write_ns", "ns"), ("bytes_before", "bytes"), ("requests_per_s", "1/s"), ("second", "s"), ("rows", ""),
        ("cores", ""), ("steal_cores", "processors"), ("cpu_<group>_percent", "%"),
    ],
)  # fmt: skip
def test_unit_is_that_of_the_name(name: str, expected: str) -> None:
    assert unit(name) == expected


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the database of the runs of `streams`."""
    folder = tmp_path_factory.mktemp("streams")
    with zipfile.ZipFile(SMOKE / "streams.zip") as packed:
        packed.extractall(folder)
    with duckdb.connect(str(build_database(folder / "results")), read_only=True) as connection:
        yield connection


DATABASE = (ROOT / "docs/database.md").read_text()


def test_every_table_and_column_of_the_database_is_described(database: duckdb.DuckDBPyConnection) -> None:
    sections = dict(each.partition("\n")[::2] for each in re.split(r"^## ", DATABASE, flags=re.MULTILINE)[1:])
    shown = {name.strip("`"): text for name, text in sections.items() if name.startswith("`")}
    views = {row[0] for row in database.execute("FROM duckdb_views() SELECT view_name WHERE NOT internal").fetchall()}
    found = database.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
    of_tables: dict[str, set[str]] = {}
    for table, column in found:
        of_tables.setdefault(table, set()).add(column)
    assert set(shown) == of_tables.keys() - views
    for table in shown:
        first = re.findall(r"^\| (`[^|]+) \|", shown[table], re.MULTILINE)
        assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} == of_tables[table], table
    for view in views:
        named = set(re.findall(r"`(\w+)`", sections["Views"]))
        assert of_tables[view] <= named, view


QUERIES = re.findall(r"^```sql\n(.+?)^```\n\n((?:\|[^\n]*\n)+)", DATABASE, re.DOTALL | re.MULTILINE)


def test_three_queries_are_shown() -> None:
    assert len(QUERIES) == DATABASE.count("```sql") == 3


@pytest.mark.parametrize("number", range(3))
def test_query_gives_the_shown_answer(number: int, database: duckdb.DuckDBPyConnection) -> None:
    query, answer = QUERIES[number]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in answer.strip().splitlines()]
    found = database.execute(query)
    assert [each[0] for each in found.description or ()] == head
    assert [[str(cell) for cell in row] for row in found.fetchall()] == rows
