"""Counters of a catalog's database, exact at any moment; PostgreSQL's own statistics are delayed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tidemark.services.postgres import Postgres

COUNTED = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_wal_lsn() - '0/0'::pg_lsn"
CHANGES_AT = 24  # in the header of an SQLite file: four bytes, which each write transaction increments


def postgres_counters(postgres: Postgres, database: str) -> Mapping[str, int]:
    """Return the number of write transactions and the bytes of WAL since the server was created."""
    with postgres.connect(database, autocommit=True) as connection:
        row = connection.execute(COUNTED).fetchone()
    assert row is not None
    return {"write_transactions": int(row[0]), "wal_bytes": int(row[1])}


def sqlite_counters(path: Path) -> Mapping[str, int]:
    """Return the number of write transactions of a file with a rollback journal; 0 if the file does not exist yet."""
    try:
        with path.open("rb") as file:
            header = file.read(CHANGES_AT + 4)
    except FileNotFoundError:
        header = b""
    return {"write_transactions": int.from_bytes(header[CHANGES_AT:], "big")}
