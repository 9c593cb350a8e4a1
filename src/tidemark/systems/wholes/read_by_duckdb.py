"""Delta tables that delta-rs writes and DuckDB reads, in the client's own process: no server stands between.

The reads of the legacy path go through a Flight server, which has the same DuckDB and the same client of HDFS: against
those, these tell what the server costs; against delta-rs's own reads they tell what the engine does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from tidemark.services.flight.server import TOOL
from tidemark.systems import duckdb_client
from tidemark.systems.wholes.delta import DeltaRsHdfs, DeltaRsLocal, WholeDelta
from tidemark.systems.wholes.on_hdfs import OnHdfs


def told(extensions: Sequence[str], processors: Collection[int], statements: Sequence[str] = ()) -> dict[str, Any]:
    """What an order says of the DuckDB that a client has: what it loads, then does, with a thread a processor."""
    files = [str(duckdb_client.extension_file(each)) for each in extensions]
    config = {
        "threads": len(processors),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return {"config": config, "statements": [*(f"LOAD {duckdb_client.literal(each)}" for each in files), *statements]}


class ReadByDuckDB(WholeDelta):
    """What both have in common: writes are delta-rs's, as those of the system that it reads as well."""

    client: ClassVar[str] = "delta-rs writes, DuckDB reads"
    libraries: ClassVar[tuple[str, ...]] = ("deltalake", "duckdb", "_duckdb", "duckdb_extension_*")

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {**super().versions(), "duckdb": duckdb_client.installed_version()}

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), **told(self.extensions, processors)}


class DuckDBDeltaLocal(ReadByDuckDB, DeltaRsLocal):
    """`delta_scan`."""

    name: ClassVar[str] = "duckdb-delta-local"
    title: ClassVar[str] = "delta-rs, read by DuckDB, local disk"
    library: ClassVar[str] = "duckdb-delta"


class DuckDBDeltaHdfs(ReadByDuckDB, DeltaRsHdfs):
    """`read_parquet` of the files that delta-rs says the table has: DuckDB's extension for Delta knows no HDFS."""

    name: ClassVar[str] = "duckdb-delta-hdfs"
    title: ClassVar[str] = "delta-rs, read by DuckDB, HDFS"
    library: ClassVar[str] = "duckdb-delta-hdfs"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    notes: tuple[str, ...] = (
        *OnHdfs.notes,
        "DuckDB reads the files that delta-rs names, over hdfs-native's file system of fsspec",
    )
