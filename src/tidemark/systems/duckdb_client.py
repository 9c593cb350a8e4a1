"""Common code of systems that write through DuckDB: connections, extensions, differences between releases.

Extensions are installed as wheels and loaded by path. DuckDB downloads nothing by itself, and everything that it
stores (secrets, spilled data, extensions) stays below the directory that the system was given.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import ProvisionError
from tidemark.systems import releases
from tidemark.systems.tables import ReadClient

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Release(releases.Release):
    """Behaviour of a DuckDB release, as far as the systems here depend on it; by default that of the newest."""

    ducklake_inlines_infinity: bool = True  # into PostgreSQL, where rows go as SQL text
    ducklake_inlines_nan: bool = True  # into SQLite
    ducklake_keeps_negative_zero: bool = True  # in inlined rows
    ducklake_refuses_taken_schema: bool = True  # otherwise CREATE SCHEMA of an existing one succeeds, changing nothing
    http_client_is_slow: bool = False  # the default one, against a catalog on this machine
    iceberg_keeps_case_of_endpoint: bool = True
    iceberg_adds_columns: bool = True
    iceberg_commits_to_one_table: bool = True  # if it is told to, by the endpoint of that table
    delta_log_is_valid: bool = True  # readers other than DuckDB can read what its Delta writer committed


# Oldest first.
RELEASES = (
    Release(
        (1, 4, 4),
        ducklake_inlines_infinity=False,
        ducklake_inlines_nan=False,
        ducklake_keeps_negative_zero=False,
        ducklake_refuses_taken_schema=False,
        http_client_is_slow=True,
        iceberg_keeps_case_of_endpoint=False,
        iceberg_adds_columns=False,
        iceberg_commits_to_one_table=False,
        delta_log_is_valid=False,
    ),
    Release((1, 5, 5)),
)


DUCKDB = releases.Client("DuckDB", "duckdb", RELEASES)


def literal(value: str | Path) -> str:
    """Return `value` as an SQL string literal."""
    return "'" + str(value).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return `name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def extension_file(extension: str) -> Path | None:
    """Return the extension's binary for the installed DuckDB, from its wheel; None if the wheel is not installed."""
    found = importlib.util.find_spec(f"duckdb_extension_{extension}")
    for folder in (found.submodule_search_locations or []) if found else []:
        path = Path(folder, "extensions", f"v{DUCKDB.installed()}", f"{extension}.duckdb_extension")
        if path.is_file():
            return path
    return None


def missing_extensions(extensions: Sequence[str]) -> str | None:
    """Return a sentence that names the missing wheels; None if all are installed."""
    wheels = [f"duckdb-extension-{e.replace('_', '-')}" for e in extensions if extension_file(e) is None]
    return f"not installed for DuckDB {DUCKDB.installed()}: {', '.join(wheels)}" if wheels else None


def has_extensions(extensions: Sequence[str]) -> bool:
    """Return whether all of `extensions` are installed; safe to call without DuckDB."""
    return all(extension_file(extension) is not None for extension in extensions)


def reader_name(extension: str) -> str:
    """Return the name of the oracle's reader that uses `extension`."""
    return f"DuckDB {DUCKDB.installed()}'s {extension} extension"


def connect(
    extensions: Sequence[str], directory: Path | None = None, threads: int | None = None, *, check: bool = True
) -> duckdb.DuckDBPyConnection:
    """Open a separate DuckDB with `extensions` loaded; `threads` None keeps DuckDB's default.

    Without `directory` it stores nothing on disk. `check` has DuckDB check each extension's signature, as it does by
    default: it reads the whole file, 0.3 s of CPU for 77 MB. A client that is measured does that, because the file is
    in the page cache afterwards; a reader that only checks a table need not: the file's wheel is pinned by its hash.
    Raise ProvisionError if an extension is missing.
    """
    import duckdb

    if missing := missing_extensions(extensions):
        raise ProvisionError(f"{missing}. Install the wheels that the environment's lock names.")
    private = "" if directory is None else str(directory / ".duckdb")
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "extension_directory": private,
        "temp_directory": private,
        "allow_unsigned_extensions": not check,
    }
    if threads is not None:
        config["threads"] = threads
    connection = duckdb.connect(":memory:", config=config)
    # These two settings can only be set in a running DuckDB.
    connection.execute(f"SET home_directory = {literal(private)}")
    connection.execute(f"SET secret_directory = {literal(private)}")
    for extension in extensions:
        connection.execute(f"LOAD {literal(str(extension_file(extension)))}")
    return connection


@contextmanager
def transaction(
    connection: duckdb.DuckDBPyConnection, before_commit: Callable[[], None] | None = None
) -> Iterator[None]:
    """Run the body as one transaction; `before_commit` is called right before its commit."""
    connection.execute("BEGIN")
    try:
        yield
        if before_commit is not None:
            before_commit()
        connection.execute("COMMIT")
    except Exception:
        with suppress(Exception):  # none exists any more if the commit itself was refused
            connection.execute("ROLLBACK")
        raise


def versions(extensions: Sequence[str]) -> dict[str, str]:
    """Return the versions that DuckDB and each loaded extension report."""
    with connect(extensions, check=False) as connection:
        found = {"duckdb": str(connection.execute("SELECT version()").fetchall()[0][0]).removeprefix("v")}
        rows = connection.execute("SELECT extension_name, extension_version FROM duckdb_extensions() WHERE loaded")
        loaded = dict(rows.fetchall())
    return found | {f"duckdb-{name}": str(loaded[name]) for name in extensions}


class DuckDBReadClient(ReadClient):
    """DuckDB with its extensions loaded; `attachments` are SQL that makes the table available as `table`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, attachments: Sequence[str], table: str) -> None:
        self._connection, self._left, self._table = connection, list(attachments), table

    def attached(self) -> duckdb.DuckDBPyConnection:
        """Return the connection after attaching the table."""
        while self._left:
            self._connection.execute(self._left.pop(0))
        return self._connection

    def ids(self) -> pa.ChunkedArray:
        """Return the ids, int64[rows], in any order."""
        return self.attached().sql(f"SELECT id FROM {self._table}").to_arrow_table().column(0)

    def plan(self) -> None:
        """Open the table, and plan a query of all ids without reading any."""
        self.attached().execute(f"EXPLAIN SELECT id FROM {self._table}").fetchall()

    def count(self) -> int:
        return self._first("count(*)")

    def sum_ids(self) -> int:
        return self._first("sum(id), sum(total_amount)")

    def _first(self, asked: str) -> int:
        found = self.attached().execute(f"SELECT {asked} FROM {self._table}").fetchall()
        return int(found[0][0] or 0)


@contextmanager
def open_reader(
    extensions: Sequence[str], directory: Path, attachments: Sequence[str], table: str
) -> Iterator[DuckDBReadClient]:
    """Yield a separate DuckDB with its default number of threads."""
    with connect(extensions, directory, check=False) as connection:
        yield DuckDBReadClient(connection, attachments, table)
