"""Delta tables that delta-rs writes and DuckDB reads, in the client's own process and without a server.

The reads of the legacy path go through a Flight server with the same DuckDB and the same HDFS client. Compared with
those, these reads show the cost of the server; compared with delta-rs's own reads, they show that of the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from tidemark.services.flight.server import TOOL
from tidemark.systems import duckdb_client
from tidemark.systems.wholes.delta import DeltaRsHdfs, DeltaRsLocal, WholeDelta
from tidemark.systems.wholes.on_hdfs import OnHdfs


def told(extensions: Sequence[str], processors: Collection[int], statements: Sequence[str] = ()) -> dict[str, Any]:
    """Return the part of an order for the client's DuckDB: its extensions and statements, one thread per processor."""
    files = [str(duckdb_client.extension_file(each)) for each in extensions]
    config = {
        "threads": len(processors),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return {"config": config, "statements": [*(f"LOAD {duckdb_client.literal(each)}" for each in files), *statements]}


class ReadByDuckDB(WholeDelta):
    """Common base: delta-rs writes, as in the systems in which it also reads."""

    client: ClassVar[str] = "delta-rs writes, DuckDB reads"
    libraries: ClassVar[tuple[str, ...]] = ("deltalake", "duckdb", "_duckdb", "duckdb_extension_*")

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {**super().versions(), "duckdb": duckdb_client.installed_version()}

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), **told(self.extensions, processors)}


class DuckDBDeltaLocal(ReadByDuckDB, DeltaRsLocal):
    """Local tables, read by `delta_scan`."""

    name: ClassVar[str] = "duckdb-delta-local"
    title: ClassVar[str] = "delta-rs, read by DuckDB, local disk"
    library: ClassVar[str] = "duckdb-delta"


class DuckDBDeltaHdfs(ReadByDuckDB, DeltaRsHdfs):
    """Tables on HDFS, read by `read_parquet` of the files that delta-rs lists: DuckDB's Delta extension has no HDFS."""

    name: ClassVar[str] = "duckdb-delta-hdfs"
    title: ClassVar[str] = "delta-rs, read by DuckDB, HDFS"
    library: ClassVar[str] = "duckdb-delta-hdfs"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    notes: tuple[str, ...] = (
        *OnHdfs.notes,
        "DuckDB reads the files that delta-rs names, over hdfs-native's file system of fsspec",
    )
