"""Delta tables written in one call by delta-rs, on the local disk and on HDFS, by two of its releases.

Some are read by DuckDB, in the client's own process and without a server. The reads of the legacy path go through a
Flight server with the same DuckDB and the same HDFS client. Compared with those, these reads show the cost of the
server; compared with delta-rs's own reads, they show that of the engine.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.services.hdfs import TOOL
from tidemark.systems import duckdb_client
from tidemark.systems.base import Context
from tidemark.systems.bulk.base import FETCHED, BulkTable, OnDisk, OnHdfs
from tidemark.systems.delta import table as delta_client
from tidemark.systems.tables import footprint_of

LOG = "_delta_log"
BEFORE = "deltalake-before"


class BulkDelta(BulkTable):
    """Writes by `write_deltalake` from a table in memory; reads by `DeltaTable(...).to_pyarrow_table()`."""

    format: ClassVar[str] = "Delta Lake"
    client: ClassVar[str] = "delta-rs"
    catalog: str = "Delta log"
    library: ClassVar[str] = "delta-rs"
    packages: ClassVar[Mapping[str, str]] = {"deltalake": "deltalake"}
    libraries: ClassVar[tuple[str, ...]] = ("deltalake",)
    extensions: ClassVar[tuple[str, ...]] = ("delta",)
    reads_by: ClassVar[str] = "DuckDB {duckdb}'s delta extension"

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if self.of_release_before is None:
            self.say(delta_client.DELTA_RS.remark())

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        del options
        return duckdb_client.missing_extensions(cls.extensions)

    def relation(self, place: Path) -> str:
        return f"delta_scan({duckdb_client.literal(place.as_uri())})"

    @abstractmethod
    def _log(self, name: str) -> str:
        """Return the entries of the table's log, which has one commit."""

    def counted(self, name: str) -> int:
        sizes = self.listed(name)
        added = [entry["add"] for entry in map(json.loads, self._log(name).splitlines()) if "add" in entry]
        for each in added:
            if sizes.get(each["path"]) != each["size"]:
                raise SystemFailure(
                    f"{self.name}: the log of {name} names {each['path']} with {each['size']:,} bytes; there it has "
                    f"{sizes.get(each['path'], 0):,}"
                )
        return sum(json.loads(each["stats"])["numRecords"] for each in added)

    def footprint(self, name: str) -> Footprint:
        return footprint_of((not path.startswith(LOG), size) for path, size in self.listed(name).items())


class DeltaRsLocal(OnDisk, BulkDelta):
    name: ClassVar[str] = "delta-rs-local"
    title: ClassVar[str] = "delta-rs, local disk"

    def _log(self, name: str) -> str:
        return "".join(path.read_text() for path in sorted((self.place(name) / LOG).glob("*.json")))


class DeltaRsHdfs(OnHdfs, BulkDelta):
    name: ClassVar[str] = "delta-rs-hdfs"
    title: ClassVar[str] = "delta-rs, HDFS"
    reads_by: ClassVar[str] = f"{BulkDelta.reads_by}, {FETCHED}"

    def _log(self, name: str) -> str:
        return self.names.web.text(f"{self.path(name)}/{LOG}", ".json")


class DeltaRsLocalBefore(DeltaRsLocal):
    name: ClassVar[str] = "delta-rs-local-before"
    title: ClassVar[str] = "delta-rs 0.18, local disk"
    tools: ClassVar[tuple[str, ...]] = (BEFORE,)
    of_release_before: ClassVar[str | None] = BEFORE
    packages: ClassVar[Mapping[str, str]] = {}


class DeltaRsHdfsBefore(DeltaRsHdfs):
    name: ClassVar[str] = "delta-rs-hdfs-before"
    title: ClassVar[str] = "delta-rs 0.18, HDFS"
    tools: ClassVar[tuple[str, ...]] = (BEFORE,)
    of_release_before: ClassVar[str | None] = BEFORE
    packages: ClassVar[Mapping[str, str]] = {}


def told(extensions: Sequence[str], processors: Collection[int], statements: Sequence[str] = ()) -> dict[str, Any]:
    """Return the part of an order for the client's DuckDB: its extensions and statements, one thread per processor."""
    files = [str(duckdb_client.extension_file(each)) for each in extensions]
    config = {"threads": len(processors), "autoinstall_known_extensions": False, "autoload_known_extensions": False}
    return {"config": config, "statements": [*(f"LOAD {duckdb_client.literal(each)}" for each in files), *statements]}


class ReadByDuckDB(BulkDelta):
    """Common base: delta-rs writes, as in the systems in which it also reads."""

    client: ClassVar[str] = "delta-rs writes, DuckDB reads"
    packages: ClassVar[Mapping[str, str]] = {"deltalake": "deltalake", "duckdb": "duckdb"}
    libraries: ClassVar[tuple[str, ...]] = ("deltalake", "duckdb", "_duckdb", "duckdb_extension_*")

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
