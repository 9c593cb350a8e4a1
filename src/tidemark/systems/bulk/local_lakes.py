"""Alternatives that users would consider in addition to Delta: PyIceberg and DuckLake, with SQLite catalogs.

The catalogs are created before the first table. The list of a table's files comes from PyIceberg, or from DuckLake's
catalog by plain SQL, and not from the process that wrote it; DuckDB reads the files.
"""

from __future__ import annotations

import shutil
import sqlite3
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.base import files_below
from tidemark.systems import duckdb_client
from tidemark.systems.bulk.base import OnDisk
from tidemark.systems.delta.bulk import told
from tidemark.systems.tables import footprint_of

CATALOG = "lake.db"
EXTENSIONS = ("sqlite_scanner", "ducklake")
FILES = """
    SELECT file.path, file.record_count FROM ducklake_data_file AS file JOIN ducklake_table AS made USING (table_id)
    WHERE made.table_name = ? AND file.end_snapshot IS NULL AND made.end_snapshot IS NULL
"""
METADATA = "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?"


class Lake(OnDisk):
    """Tables in folders below the context's; the catalog lists the files that belong to them."""

    @abstractmethod
    def _files(self, name: str) -> Sequence[tuple[Path, int]]:
        """Return the data files of the table `name`, each with its row count in the catalog."""

    def address(self, name: str) -> str:
        return name

    def relation(self, place: Path) -> str:
        paths = ", ".join(duckdb_client.literal(path) for path, _ in self._files(place.name))
        return f"read_parquet([{paths}])"

    def listed(self, name: str) -> Mapping[str, int]:
        folder = self.context.directory
        paths = (path.relative_to(folder) for path in files_below(folder))
        return {path.as_posix(): (folder / path).stat().st_size for path in paths if name in path.parts}

    def counted(self, name: str) -> int:
        return sum(rows for _, rows in self._files(name))

    def footprint(self, name: str) -> Footprint:
        data = {path.relative_to(self.context.directory).as_posix() for path, _ in self._files(name)}
        sizes = ((path in data, size) for path, size in self.listed(name).items())
        return footprint_of(sizes, None, "all tables share the catalog")

    def remove(self, name: str) -> None:
        for folder in [path for path in self.context.directory.rglob(name) if path.is_dir()]:
            shutil.rmtree(folder, ignore_errors=True)


class PyIcebergLocal(Lake):
    name: ClassVar[str] = "pyiceberg-local"
    title: ClassVar[str] = "PyIceberg, local disk"
    format: ClassVar[str] = "Iceberg"
    client: ClassVar[str] = "PyIceberg"
    catalog: str = "SQLite"
    library: ClassVar[str] = "pyiceberg"
    libraries: ClassVar[tuple[str, ...]] = ("pyiceberg", "pyiceberg_core")
    tools: ClassVar[tuple[str, ...]] = ("sqlalchemy",)
    reads_by: ClassVar[str] = "SQLite and PyIceberg (which files) and DuckDB {duckdb} (the files)"

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), "folder": str(self.context.directory)}

    def _files(self, name: str) -> Sequence[tuple[Path, int]]:
        from pyiceberg.table import StaticTable

        with closing(sqlite3.connect(self.context.directory / "catalog.db")) as catalog:
            ((metadata,),) = catalog.execute(METADATA, (name,)).fetchall()
        tasks = StaticTable.from_metadata(metadata).scan().plan_files()
        return [(Path(each.file.file_path), int(each.file.record_count)) for each in tasks]


class DuckLakeLocal(Lake):
    name: ClassVar[str] = "ducklake-local"
    title: ClassVar[str] = "DuckLake, local disk"
    format: ClassVar[str] = "DuckLake"
    client: ClassVar[str] = "DuckDB"
    catalog: str = "SQLite"
    library: ClassVar[str] = "ducklake"
    libraries: ClassVar[tuple[str, ...]] = ("duckdb", "_duckdb", "duckdb_extension_*")
    reads_by: ClassVar[str] = "SQLite (which files) and DuckDB {duckdb} (the files)"

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        del options
        return duckdb_client.missing_extensions(EXTENSIONS)

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        folder = self.context.directory
        lake = duckdb_client.literal(f"ducklake:sqlite:{folder / CATALOG}")
        path = duckdb_client.literal(f"{folder}/data/")
        statements = [
            f"ATTACH {lake} AS lake (DATA_PATH {path}, DATA_INLINING_ROW_LIMIT 0)",
            f"CALL lake.set_option('parquet_compression', {duckdb_client.literal(self.context.codec)})",
        ]
        return {**super().order(processors), **told(EXTENSIONS, processors, statements)}

    def _files(self, name: str) -> Sequence[tuple[Path, int]]:
        folder = self.context.directory
        with closing(sqlite3.connect(folder / CATALOG)) as catalog:
            found = catalog.execute(FILES, (name,)).fetchall()
        return [(folder / "data" / "main" / name / path, int(rows)) for path, rows in found]
