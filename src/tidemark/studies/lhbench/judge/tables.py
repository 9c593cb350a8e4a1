"""Private DuckDB connections, and in them the expected tables with which those found by readers are compared."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import duckdb

from tidemark.studies.lhbench.data import refresh
from tidemark.studies.lhbench.judge import readers
from tidemark.studies.lhbench.judge.checksum import Checksum, checksum, difference
from tidemark.studies.lhbench.judge.expected import state

EXPECTED = "expected_"  # prefix of a table's name


def connect(folder: Path, *extensions: str) -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB connection that writes only below `folder`, with `extensions` loaded from wheels."""
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


def expect(connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, Any]) -> None:
    """Create the expected content of the table `name`, as an order describes it."""
    state(connection, f"{EXPECTED}{name}", given["base"], [Path(path) for path in given["merged"]], given["key"])


def know(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Create views of the expected tables under their plain names, for queries."""
    for name in names:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {EXPECTED}{name}")


@dataclass(frozen=True, slots=True)
class Held:
    """A table at a location with its expected content; `name` is its name in queries once it is read."""

    name: str
    location: Path
    columns: Mapping[str, str]
    key: Sequence[str]
    wanted: Checksum

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, Any]) -> Self:
        """Return the table `name` of an order, whose expected content `connection` already has."""
        expected = f"{EXPECTED}{name}"
        columns = refresh.columns_of(connection, expected)
        wanted = checksum(connection, expected, columns, given["key"])
        return cls(f"found_{name}", Path(given["location"]), columns, given["key"], wanted)

    def compared(self, connection: duckdb.DuckDBPyConnection, reader: str) -> dict[str, Any]:
        """Return the number of rows expected, the number that a reader finds, and the difference in words."""
        try:
            relation = readers.relation(connection, self.name, reader, self.location)
            found = checksum(connection, relation, self.columns, self.key)
        except Exception as error:  # raised by a third-party reader: its message is the finding
            return {"expected": self.wanted.rows, "found": 0, "words": f"cannot be read: {error}"}
        return {"expected": self.wanted.rows, "found": found.rows, "words": difference(self.wanted, found)}
