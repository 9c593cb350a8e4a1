"""A program of its own, in the environment of `envs/tools/lhbench.lock`: makes data, and holds tables to them.

    python -m tidemark.studies.lhbench.judge.program ORDER RESULT

ORDER is JSON, as `calls` writes it: what to `do`, and with what. RESULT is JSON too. It imports the standard library,
DuckDB and, for some formats, their readers; nothing of it runs while a window is open.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tidemark.studies.lhbench.data import micro, refresh, registered, tpcds
from tidemark.studies.lhbench.judge import answers, readers
from tidemark.studies.lhbench.judge.checksum import Checksum, checksum, difference
from tidemark.studies.lhbench.judge.expected import state

EXPECTED = "expected_"  # before a table's name


def connect(folder: Path, *extensions: str) -> duckdb.DuckDBPyConnection:
    """A DuckDB of its own, all that it writes below `folder`, with `extensions` loaded from their wheels."""
    private = str(folder)
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "extension_directory": private,
            "temp_directory": private,
        }
    )
    for name in extensions:
        found = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert found is not None and found.submodule_search_locations, name
        place = Path(found.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}")
        connection.execute(f"LOAD '{place / name}.duckdb_extension'")
    return connection


def make_base(order: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a scale factor, and the texts of the queries."""
    folder = Path(order["folder"])
    connection = connect(folder, "tpcds")
    counts = tpcds.generate(connection, order["scale"], folder)
    return {"tables": counts, "queries": tpcds.queries(connection)}


def make_refreshes(order: Mapping[str, Any]) -> dict[str, Any]:
    """Refresh sets of some tables: `folder`/<table>-<number>.parquet."""
    folder, base = Path(order["folder"]), Path(order["base"])
    connection = connect(folder)
    tpcds.views(connection, {name: base / f"{name}.parquet" for name in order["tables"]})
    mix = refresh.Mix(order["share"], order["updates"])
    made = {}
    for name in order["tables"]:
        for number in range(1, order["count"] + 1):
            path = folder / f"{name}-{number}.parquet"
            made[path.name] = refresh.make(connection, name, number, order["seed"], mix, path)
    return made


def make_micro(order: Mapping[str, Any]) -> dict[str, Any]:
    """The sets of which each is merged into a synthetic table of its own: `folder`/set-<updates>.parquet."""
    folder = Path(order["folder"])
    connection = connect(folder)
    rows, files, seed = order["rows"], order["files"], order["seed"]
    return {
        str(updates): micro.make_set(connection, rows, files, updates, seed, folder / f"set-{updates}.parquet")
        for updates in order["updates"]
    }


def make_files(order: Mapping[str, Any]) -> dict[str, Any]:
    """Many small files, and what formats must know of them to make them a table."""
    folder = Path(order["folder"])
    return dict(registered.make(connect(folder), order["files"], order["rows"], folder, Path(order["place"])))


@dataclass(frozen=True, slots=True)
class Held:
    """A table at a place, and what it must hold; `name` is what it is called once it is read."""

    name: str
    location: Path
    columns: Mapping[str, str]
    key: Sequence[str]
    wanted: Checksum

    def compared(self, connection: duckdb.DuckDBPyConnection, reader: str) -> dict[str, Any]:
        """What a reader finds, with the rows that it should, and in words what is otherwise."""
        try:
            relation = readers.relation(connection, self.name, reader, self.location)
            found = checksum(connection, relation, self.columns, self.key)
        except Exception as error:  # of a reader, of a format of somebody else's: what it says is the finding
            return {"expected": self.wanted.rows, "found": 0, "words": f"cannot be read: {error}"}
        return {"expected": self.wanted.rows, "found": found.rows, "words": difference(self.wanted, found)}


def judge(order: Mapping[str, Any]) -> dict[str, Any]:
    """What tables and answers have otherwise than base and merged sets say, in words; nothing where they are equal.

    `beside` is what other readers of the same tables find, which is no verdict on the tables.
    """
    began = time.perf_counter()
    folder, reader = Path(order["folder"]), order["reader"]
    others = readers.BESIDE.get(reader, ()) if order["read"] else ()
    connection = connect(folder, *(name for each in (reader, *others) for name in readers.EXTENSIONS.get(each, ())))
    tables, asked = {}, {}
    beside: dict[str, dict[str, Any]] = {each: {} for each in others}
    for name, each in order["tables"].items():
        expected = f"{EXPECTED}{name}"
        state(connection, expected, each["base"], [Path(path) for path in each["merged"]], each["key"])
        if not order["read"]:
            continue
        columns = refresh.columns_of(connection, expected)
        wanted = checksum(connection, expected, columns, each["key"])
        held = Held(f"found_{name}", Path(each["location"]), columns, each["key"], wanted)
        tables[name] = held.compared(connection, reader)
        for other in others:
            beside[other][name] = held.compared(connection, other)
    for name in order["tables"]:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {EXPECTED}{name}")
    for name, each in order["answers"].items():
        rows = connection.execute(each["text"]).fetchall()
        words = answers.difference(answers.canonical(rows), answers.canonical(each["rows"], answers.numeric(rows)))
        asked[name] = {"rows": len(rows), "words": words}
    said = {"tables": tables, "beside": beside, "answers": asked, "versions": readers.versions(reader)}
    return {**said, "seconds": time.perf_counter() - began}


CALLS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "base": make_base,
    "refreshes": make_refreshes,
    "micro": make_micro,
    "files": make_files,
    "judge": judge,
}


def main(order: Path, result: Path) -> None:
    given = json.loads(order.read_text())
    said = CALLS[given["do"]](given)
    with result.open("w") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    sys.stderr.flush()
    os._exit(0)  # some readers abort the interpreter's own end, after work that is right


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
