"""PyIceberg's SQL catalog: each client directly updates the pointers to tables' metadata files in a database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

from tidemark.services.base import files_below
from tidemark.systems.base import Options
from tidemark.systems.catalogs import library
from tidemark.systems.catalogs.base import CatalogReader, Entity, Kept, Names
from tidemark.systems.catalogs.databases import Ask, Database, PostgresDatabase, SqliteDatabase
from tidemark.systems.catalogs.library import CONFLICT, DONE, FAILED, LOCKED, NOT_THERE, PROCESSES
from tidemark.systems.catalogs.reading import history
from tidemark.systems.catalogs.rest import IN_CACHE, InPostgres, IsolationOptions
from tidemark.systems.iceberg.client import PYICEBERG
from tidemark.systems.object_store import path_of

CATALOG = "measured"
DOTTED = "nested namespaces are dotted names in one column; that a parent is there is not looked at"
LOADS = (
    "each request for a table reads its metadata file, also the one whether it exists; an update reads it twice, and "
    "replaces the pointer where that still is what was read: nothing is tried again, an overtaken commit is a conflict"
)
BY_LOADING = "whether a namespace exists is asked by loading its properties, as this release offers nothing else"
NO_VIEWS = "PyIceberg's SQL catalog keeps no views: it raises NotImplementedError"


class PyIcebergSession(library.Session):
    """Session with one catalog object, which keeps one connection."""

    def __init__(self, uri: str, warehouse: Path, contents: library.Contents) -> None:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.schema import Schema
        from pyiceberg.types import IntegerType, NestedField

        # A plain path: PyIceberg does not decode a URI, and would create folders with the encoded names.
        catalog: Any = SqlCatalog(CATALOG, uri=uri, warehouse=str(warehouse))
        self._catalog = catalog
        columns = enumerate(contents.columns, 1)
        fields = [NestedField(number, name, IntegerType(), required=True) for number, name in columns]
        schema, properties = Schema(*fields, identifier_field_ids=[1]), dict(contents.properties)
        asks = PYICEBERG.release().asks_for_namespaces
        exists = catalog.namespace_exists if asks else catalog.load_namespace_properties
        self._does: dict[str, Callable[[tuple[str, ...], str, str], Any]] = {
            "create namespace": lambda path, _name, _key: catalog.create_namespace(path, properties),
            "create table": lambda path, name, _key: catalog.create_table((*path, name), schema, properties=properties),
            "list namespaces": lambda path, _name, _key: catalog.list_namespaces(path),
            "namespace exists": lambda path, _name, _key: exists(path),
            "get namespace": lambda path, _name, _key: catalog.load_namespace_properties(path),
            "list tables": lambda path, _name, _key: catalog.list_tables(path),
            "table exists": lambda path, name, _key: catalog.table_exists((*path, name)),
            "get table": lambda path, name, _key: catalog.load_table((*path, name)),
            "update namespace": lambda path, _name, key: catalog.update_namespace_properties(path, updates={key: "1"}),
            "update table": self._update,
            "append": self._append,
            "rename table": lambda path, name, key: catalog.rename_table((*path, name), (*path, key)),
            "drop table": lambda path, name, _key: catalog.drop_table((*path, name)),
        }

    def perform(self, kind: str, path: Names, name: str, key: str) -> int:
        try:
            found = self._does[kind](tuple(path), name, key)
        except Exception as error:  # from the library, SQLAlchemy or the file system: the error that a user sees
            self.said = f"{type(error).__name__}: {error}"
            return _status(error)
        self.listed = [each[-1] for each in found] if kind.startswith("list") else ()
        return NOT_THERE if found is False else DONE

    def _update(self, path: tuple[str, ...], name: str, key: str) -> None:
        self._catalog.load_table((*path, name)).transaction().set_properties({key: "1"}).commit_transaction()

    def _append(self, path: tuple[str, ...], name: str, key: str) -> None:
        """Add a snapshot whose files are never read, on the condition that the branch is still where it was loaded."""
        from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate

        table = self._catalog.load_table((*path, name))
        seen, number = table.metadata.current_snapshot_id, int(key)
        snapshot = {
            "snapshot-id": number,
            "parent-snapshot-id": seen,
            "sequence-number": table.metadata.last_sequence_number + 1,
            "timestamp-ms": int(time.time() * 1000),
            "manifest-list": "file:///nobody-reads-this.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        required = AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": seen})
        added = AddSnapshotUpdate.model_validate({"snapshot": snapshot})
        branch = {"ref-name": "main", "type": "branch", "snapshot-id": number}
        moved = SetSnapshotRefUpdate.model_validate(branch)
        self._catalog.commit_table(table, (required,), (added, moved))

    def close(self) -> None:
        self._catalog.close()


def _status(error: Exception) -> int:
    from pyiceberg import exceptions
    from sqlalchemy.exc import IntegrityError

    taken = (exceptions.NamespaceAlreadyExistsError, exceptions.TableAlreadyExistsError)
    if isinstance(error, (*taken, exceptions.CommitFailedException, IntegrityError)):
        return CONFLICT
    if isinstance(error, (exceptions.NoSuchNamespaceError, exceptions.NoSuchTableError)):
        return NOT_THERE
    return LOCKED if "database is locked" in str(error) else FAILED


class RowsReader(CatalogReader):
    """Reader of the catalog's own rows, all read when created, and of the metadata files in them; without PyIceberg."""

    def __init__(self, ask: Ask) -> None:
        self._properties: dict[tuple[str, ...], dict[str, str]] = {}
        for path, key, value in ask("SELECT namespace, property_key, property_value FROM iceberg_namespace_properties"):
            self._properties.setdefault(tuple(path.split(".")), {})[key] = value
        self._tables: dict[tuple[str, ...], dict[str, str]] = {}
        for path, name, place in ask("SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"):
            self._tables.setdefault(tuple(path.split(".")), {})[name] = place

    def namespaces(self, path: Names) -> list[str]:
        return [found[-1] for found in self._properties if found[:-1] == tuple(path)]

    def names(self, entity: Entity, path: Names) -> list[str]:
        return list(self._tables.get(tuple(path), {})) if entity is Entity.TABLE else []

    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        if entity is Entity.NAMESPACE:
            found = self._properties.get(tuple(path))
            return None if found is None else Kept(found)
        place = self._tables.get(tuple(path), {}).get(name)
        if place is None:
            return None
        try:
            table = json.loads(Path(path_of(place)).read_text())
        except FileNotFoundError:
            return None
        schema = next(each for each in table["schemas"] if each["schema-id"] == table["current-schema-id"])
        parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in table.get("snapshots", ())}
        columns = tuple(field["name"] for field in schema["fields"])
        return Kept(table["properties"], columns, history(parents, table.get("current-snapshot-id")))

    def walk(self, path: Names) -> Iterator[tuple[str, ...]]:
        yield from (found for found in self._properties if found[: len(path)] == tuple(path))


class PyIcebergSqlCatalog(library.LibraryCatalog):
    """PyIceberg's catalog over a database that SQLAlchemy supports; metadata files are in the run's own folder."""

    format = "Iceberg"
    client = "PyIceberg"
    entities = frozenset({Entity.NAMESPACE, Entity.TABLE})
    reasons: ClassVar[Mapping[Entity, str]] = {**library.LibraryCatalog.reasons, Entity.VIEW: NO_VIEWS}
    requests: ClassVar[frozenset[str] | None] = frozenset(
        {"create namespace", "create table", "list namespaces", "namespace exists", "get namespace", "list tables",
         "table exists", "get table", "update namespace", "update table", "append", "rename table",
         "drop table"}
    )  # fmt: skip
    packages: ClassVar[Mapping[str, str]] = {"PyIceberg": "pyiceberg", "SQLAlchemy": "sqlalchemy"}
    libraries = ("pyiceberg", "pyiceberg_core", "pydantic", "pydantic_core")
    tools = ("sqlalchemy",)
    modules: ClassVar[tuple[str, ...]] = ("pyiceberg.catalog.sql", "pyiceberg.io.pyarrow")
    notes: tuple[str, ...] = (PROCESSES, DOTTED, LOADS, NO_VIEWS, BY_LOADING)

    def __init__(self, context: Any, options: Any) -> None:
        super().__init__(context, options)
        self.say(PYICEBERG.remark())
        if PYICEBERG.release().asks_for_namespaces:
            self.withdraw(BY_LOADING)

    @classmethod
    def open_session(cls, given: Mapping[str, str], contents: library.Contents) -> library.Session:
        return PyIcebergSession(cls.uri(given["address"]), cls.warehouse(Path(given["directory"])), contents)

    @classmethod
    def uri(cls, address: str) -> str:
        """Return the database's address as an SQLAlchemy URL."""
        raise NotImplementedError

    @staticmethod
    def warehouse(directory: Path) -> Path:
        """Return the folder of the metadata files."""
        return directory / "warehouse"

    def open_reader(self) -> CatalogReader:
        with self.database.open_query() as ask:
            return RowsReader(ask)

    @property
    def reader(self) -> str:
        return "the catalog's own tables by SQL and the metadata files that they name, without PyIceberg"

    def stored(self) -> tuple[int, int, int | None]:
        files = files_below(self.warehouse(self.context.directory))
        return len(files), sum(path.stat().st_size for path in files), self.database.size()


class PyIcebergSqlPostgres(InPostgres, PyIcebergSqlCatalog):
    Options: ClassVar[type[Options]] = IsolationOptions
    name = "pyiceberg-sql-postgres"
    title = "PyIceberg, PostgreSQL"
    catalog = "PyIceberg's tables in PostgreSQL"
    backend = PostgresDatabase.title
    packages: ClassVar[Mapping[str, str]] = {**PyIcebergSqlCatalog.packages, "psycopg": "psycopg"}
    modules = (*PyIcebergSqlCatalog.modules, "sqlalchemy.dialects.postgresql.psycopg", "psycopg")
    durability = PostgresDatabase.durability(IN_CACHE)

    @classmethod
    def uri(cls, address: str) -> str:
        return f"postgresql+psycopg:///?{urlencode(conninfo_to_dict(address))}"


class PyIcebergSqlSqlite(PyIcebergSqlCatalog):
    name = "pyiceberg-sql-sqlite"
    title = "PyIceberg, SQLite"
    catalog = "PyIceberg's tables in SQLite"
    backend = SqliteDatabase.title
    keeps_in: ClassVar[type[Database]] = SqliteDatabase
    notes = (*PyIcebergSqlCatalog.notes, "a request waits five seconds for a file that is locked, then it is refused")
    durability = SqliteDatabase.durability(IN_CACHE)

    @classmethod
    def uri(cls, address: str) -> str:
        return f"sqlite:///{address}"

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        import sqlite3

        return {**super().versions(), "SQLite": sqlite3.sqlite_version}
