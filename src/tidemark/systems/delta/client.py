"""Releases of delta-rs that the systems here were written for; they differ in nothing that must be known yet."""

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
    """How the oracle's reader is named that reads through delta-rs."""
    import pyarrow as pa

    return f"{CLIENT} {installed_version()} (the log) and PyArrow {pa.__version__} (the Parquet files)"


def address_for_duckdb(location: str) -> str:
    """How DuckDB's extension is given a table: it takes a % in a plain path for the start of a printf conversion."""
    return Path(location).as_uri() if location.startswith("/") else location


def remark() -> str | None:
    """What must be said of the installed delta-rs, if nothing here was written for it."""
    return releases.remark(CLIENT, RELEASES, installed_version())
