"""Known releases of delta-rs; so far they have no differences that matter here."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from tidemark.systems import releases
from tidemark.systems.releases import Release

CLIENT = "delta-rs"

# Oldest first.
RELEASES = (Release((1, 6, 6)),)


def installed_version() -> str:
    return version("deltalake")


def reader_name() -> str:
    """Return the name of the oracle's reader that uses delta-rs."""
    import pyarrow as pa

    return f"{CLIENT} {installed_version()} (the log) and PyArrow {pa.__version__} (the Parquet files)"


def address_for_duckdb(location: str) -> str:
    """Return a table's address for DuckDB's extension, which parses a % in a plain path as a printf conversion."""
    return Path(location).as_uri() if location.startswith("/") else location


def remark() -> str | None:
    """Return a note on the installed delta-rs if it is not a known release; otherwise None."""
    return releases.remark(CLIENT, RELEASES, installed_version())
