"""Separate program, in the environment of `envs/tools/lhbench.lock`: generates data, and checks tables against them.

    python -m tidemark.studies.lhbench.verifier.program ORDER RESULT

ORDER is JSON, as `Verifier` writes it: what to `do`, and its arguments. RESULT is JSON too. The program imports the
standard library, DuckDB and, for some formats, their readers; it never runs while a phase of a window is timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidemark.studies.lhbench.data import many_files, micro, tpcds
from tidemark.studies.lhbench.verifier import comparison, readers
from tidemark.studies.lhbench.verifier.comparison import connect
from tidemark.studies.lhbench.verifier.duckdb_queries import ask


def make_base(order: Mapping[str, Any]) -> dict[str, Any]:
    """Generate the tables of a scale factor; return their row counts and the texts of the queries."""
    folder = Path(order["folder"])
    connection = connect(folder, "tpcds")
    counts = tpcds.generate(connection, order["scale"], folder)
    return {"tables": counts, "queries": tpcds.queries(connection)}


def make_refreshes(order: Mapping[str, Any]) -> dict[str, Any]:
    """Generate refresh sets of some tables as `folder`/<table>-<number>.parquet; return their row counts."""
    folder, base = Path(order["folder"]), Path(order["base"])
    connection = connect(folder)
    mix = tpcds.Mix(order["share"], order["updates"])
    made = {}
    for name in order["tables"]:
        source = f"read_parquet('{base / name}.parquet')"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source} WHERE {tpcds.loaded(name)}")
        for number in range(1, order["count"] + 1):
            path = folder / f"{name}-{number}.parquet"
            made[path.name] = tpcds.make_set(connection, name, number, order["seed"], mix, path)
    return made


def make_micro(order: Mapping[str, Any]) -> dict[str, Any]:
    """Generate the sets, each for a separate synthetic table, as `folder`/set-<updates>.parquet."""
    folder = Path(order["folder"])
    connection = connect(folder)
    rows, files, seed = order["rows"], order["files"], order["seed"]
    return {
        str(updates): micro.make_set(connection, rows, files, updates, seed, folder / f"set-{updates}.parquet")
        for updates in order["updates"]
    }


def make_files(order: Mapping[str, Any]) -> dict[str, Any]:
    """Generate many small files, and the metadata that formats need to make them a table."""
    folder = Path(order["folder"])
    return dict(many_files.make(connect(folder), order["files"], order["rows"], folder, Path(order["place"])))


def judge(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return how tables and answers differ from those of base and merged sets, in words; empty if they are equal.

    `beside` holds what other readers of the same tables find; it is no verdict on the tables.
    """
    began = time.perf_counter()
    folder, reader = Path(order["folder"]), order["reader"]
    others = readers.BESIDE.get(reader, ()) if order["read"] else ()
    connection = connect(folder, *(name for each in (reader, *others) for name in readers.EXTENSIONS.get(each, ())))
    tables, asked = {}, {}
    beside: dict[str, dict[str, Any]] = {each: {} for each in others}
    comparison.expect(connection, order["tables"])
    for name, each in order["tables"].items() if order["read"] else ():
        held = comparison.Held.of(connection, name, each)
        tables[name] = held.compared(connection, reader)
        for other in others:
            beside[other][name] = held.compared(connection, other)
    for name, each in order["answers"].items():
        rows = connection.execute(each["text"]).fetchall()
        expected = comparison.canonical_answer(rows)
        found = comparison.canonical_answer(each["rows"], comparison.numeric(rows))
        asked[name] = {"rows": len(rows), "words": comparison.answer_difference(expected, found)}
    said = {"tables": tables, "beside": beside, "answers": asked, "versions": readers.versions(reader)}
    return {**said, "seconds": time.perf_counter() - began}


CALLS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "base": make_base,
    "refreshes": make_refreshes,
    "micro": make_micro,
    "files": make_files,
    "judge": judge,
    "second": ask,
}


def main(order: Path, result: Path) -> None:
    given = json.loads(order.read_text())
    said = CALLS[given["do"]](given)
    with result.open("w") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    sys.stderr.flush()
    os._exit(0)  # some readers abort the interpreter's shutdown, after correct work


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
