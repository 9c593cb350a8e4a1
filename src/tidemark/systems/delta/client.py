"""Releases of delta-rs that the systems here were written for; they differ in nothing that must be known yet."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from tidemark.systems import releases
from tidemark.systems.releases import Release

if TYPE_CHECKING:
    pass

CLIENT = "delta-rs"

# Oldest first.
RELEASES = (Release((1, 6, 6)),)


def installed_version() -> str:
    return version("deltalake")


def reader_name() -> str:
    """How the oracle's reader is named that reads through delta-rs."""
    import pyarrow as pa

    return f"{CLIENT} {installed_version()} (the log) and PyArrow {pa.__version__} (the Parquet files)"


def remark() -> str | None:
    """What must be said of the installed delta-rs, if nothing here was written for it."""
    return releases.remark(CLIENT, RELEASES, installed_version())
