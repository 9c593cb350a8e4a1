"""DuckLake as a catalog: each client is a DuckDB that directly accesses the catalog's tables in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.systems.base import Context
from tidemark.systems.catalogs import library
from tidemark.systems.catalogs.base import CatalogReader, Entity, Kept, Names
from tidemark.systems.catalogs.databases import Ask, Database, DuckDBDatabase, PostgresDatabase, SqliteDatabase
from tidemark.systems.catalogs.library import CONFLICT, DONE, FAILED, LOCKED, NOT_THERE, PROCESSES
from tidemark.systems.catalogs.rest import InPostgres
from tidemark.systems.duckdb_client import DUCKDB, connect, identifier, literal, missing_extensions, versions

if TYPE_CHECKING:
    import duckdb

LAKE = "lake"
BETWEEN = "__"  # joins the names of a namespace, as schemas do not nest
FLAT = "schemas do not nest and have no properties: a namespace's path is one name, and none of its properties is kept"
TAKEN = "the creation of a schema that is there succeeds, and changes nothing"
COMMENTS = "an update sets the comment of a table or a view, of which the last is kept"


class DuckLakeSession(library.Session):
    """Session of one DuckDB, attached to the lake."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Iterable[str]) -> None:
        self._connection = connection
        self._columns = ", ".join(f"{identifier(column)} INTEGER NOT NULL" for column in columns)
        self._statements: dict[str, Callable[[str, str, str], str]] = {
            "create namespace": lambda schema, _name, _key: f"CREATE SCHEMA {LAKE}.{identifier(schema)}",
            "create table": lambda schema, name, _key: f"CREATE TABLE {_place(schema, name)} ({self._columns})",
            "create view": lambda schema, name, _key: (
                f"CREATE VIEW {_place(schema, name)} AS SELECT * FROM {_place(schema, f'T{name[1:]}')}"
            ),
            "list namespaces": lambda schema, _name, _key: (
                f"SELECT schema_name FROM information_schema.schemata WHERE catalog_name = '{LAKE}' "
                f"AND starts_with(schema_name, {literal(schema + BETWEEN)})"
            ),
            "namespace exists": _schema,
            "get namespace": _schema,
            "list tables": lambda schema, _name, _key: _listing(schema, "BASE TABLE"),
            "table exists": lambda schema, name, _key: f"{_listing(schema, 'BASE TABLE')} AND table_name = '{name}'",
            "get table": lambda schema, name, _key: f"DESCRIBE {_place(schema, name)}",
            "list views": lambda schema, _name, _key: _listing(schema, "VIEW"),
            "view exists": lambda schema, name, _key: f"{_listing(schema, 'VIEW')} AND table_name = '{name}'",
            "get view": lambda schema, name, _key: f"DESCRIBE {_place(schema, name)}",
            "update table": lambda schema, name, key: f"COMMENT ON TABLE {_place(schema, name)} IS '{key}'",
            "rename table": lambda schema, name, key: f"ALTER TABLE {_place(schema, name)} RENAME TO {identifier(key)}",
            "drop table": lambda schema, name, _key: f"DROP TABLE {_place(schema, name)}",
            "update view": lambda schema, name, key: f"COMMENT ON VIEW {_place(schema, name)} IS '{key}'",
        }

    def perform(self, kind: str, path: Names, name: str, key: str) -> int:
        import duckdb

        self.listed = ()
        try:
            found = self._connection.execute(self._statements[kind](BETWEEN.join(path), name, key)).fetchall()
        except duckdb.Error as error:
            self.said = str(error)
            return _status(self.said)
        if kind.startswith("list"):
            self.listed = [str(row[0]) for row in found]
        asks_for_one = kind.endswith("exists") or kind == "get namespace"
        return NOT_THERE if asks_for_one and not found else DONE

    def close(self) -> None:
        self._connection.close()


def _place(schema: str, name: str) -> str:
    return f"{LAKE}.{identifier(schema)}.{identifier(name)}"


def _schema(schema: str, _name: str, _key: str) -> str:
    return (
        f"SELECT schema_name FROM information_schema.schemata WHERE catalog_name = '{LAKE}' "
        f"AND schema_name = {literal(schema)}"
    )


def _listing(schema: str, kind: str) -> str:
    return (
        f"SELECT table_name FROM information_schema.tables WHERE table_catalog = '{LAKE}' "
        f"AND table_schema = {literal(schema)} AND table_type = '{kind}'"
    )


def _status(said: str) -> int:
    """Return the status for a DuckDB error message: a commit conflict, a name that is taken, ..."""
    text = said.lower()
    if "database is locked" in text:
        return LOCKED
    if "already exists" in text or "conflict" in text or "duplicate key" in text or "could not serialize" in text:
        return CONFLICT
    return NOT_THERE if "does not exist" in text or "not found" in text else FAILED


_NOW = "SELECT {} FROM ducklake_{} WHERE end_snapshot IS NULL"


class TablesReader(CatalogReader):
    """Reader of the catalog's own tables by DuckLake's specification, without DuckDB; reads all rows when created."""

    def __init__(self, ask: Ask) -> None:
        paths = {
            key: tuple(str(name).split(BETWEEN)) for key, name in ask(_NOW.format("schema_id, schema_name", "schema"))
        }
        self._children: dict[tuple[str, ...], list[str]] = {}
        for path in paths.values():
            self._children.setdefault(path[:-1], []).append(path[-1])
        self._paths, self._there = list(paths.values()), set(paths.values())
        comments = {
            key: str(value) for key, value in ask(_NOW.format("object_id, value", "tag") + " AND key = 'comment'")
        }
        columns: dict[object, list[str]] = {}
        for key, name in ask(_NOW.format("table_id, column_name", "column") + " ORDER BY column_order"):
            columns.setdefault(key, []).append(str(name))
        self._kept: dict[Entity, dict[tuple[str, ...], list[tuple[str, Kept]]]] = {Entity.TABLE: {}, Entity.VIEW: {}}
        for entity, what in ((Entity.TABLE, "table"), (Entity.VIEW, "view")):
            for key, schema, name in ask(_NOW.format(f"{what}_id, schema_id, {what}_name", what)):
                set_ = {comments[key]: "1"} if key in comments else {}
                kept = Kept(set_, tuple(columns.get(key, ())))
                self._kept[entity].setdefault(paths[schema], []).append((str(name), kept))

    def namespaces(self, path: Names) -> list[str]:
        return self._children.get(tuple(path), [])

    def names(self, entity: Entity, path: Names) -> list[str]:
        return [name for name, _ in self._kept[entity].get(tuple(path), [])]

    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        if entity is Entity.NAMESPACE:
            return Kept({}) if tuple(path) in self._there else None
        return dict(self._kept[entity].get(tuple(path), [])).get(name)

    def walk(self, path: Names) -> Iterator[tuple[str, ...]]:
        yield from (found for found in self._paths if found[: len(path)] == tuple(path))


class DuckLakeCatalog(library.LibraryCatalog):
    """DuckLake over a database; `attached` is the ATTACH string, with a placeholder for the database's address."""

    format = "DuckLake"
    client = "DuckDB"
    requests: ClassVar[frozenset[str] | None] = frozenset(
        {"create namespace", "create table", "create view", "list namespaces", "namespace exists", "get namespace",
         "list tables", "table exists", "get table", "list views", "view exists", "get view", "update table",
         "update view", "rename table", "drop table"}
    )  # fmt: skip
    keeps_properties = False
    refuses_taken = frozenset({Entity.TABLE, Entity.VIEW})  # and schemas, in later releases
    libraries = ("duckdb", "_duckdb", "duckdb_extension_*")
    modules = ("duckdb",)
    extensions: ClassVar[tuple[str, ...]]
    attached: ClassVar[str]
    notes: tuple[str, ...] = (PROCESSES, FLAT, COMMENTS, TAKEN, "the creation of a table writes no metadata file")

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if DUCKDB.release().ducklake_refuses_taken_schema:
            self.withdraw(TAKEN)
            self.refuses_taken |= {Entity.NAMESPACE}

    @classmethod
    def unavailable(cls, options: object) -> str | None:
        del options
        return missing_extensions(cls.extensions)

    @classmethod
    def open_session(cls, given: Mapping[str, str], contents: library.Contents) -> library.Session:
        folder = Path(given["directory"])
        connection = connect(cls.extensions, folder, 1)
        catalog = literal(cls.attached.format(given["address"]))
        connection.execute(f"ATTACH {catalog} AS {LAKE} (DATA_PATH {literal(f'{folder}/data/')})")
        return DuckLakeSession(connection, contents.columns)

    def open_reader(self) -> CatalogReader:
        with self.database.open_query() as ask:
            return TablesReader(ask)

    @property
    def reader(self) -> str:
        return "the catalog's own tables by SQL, without DuckLake"

    def stored(self) -> tuple[int, int, int | None]:
        return 0, 0, self.database.size()

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return versions(cls.extensions)


class DuckLakePostgres(InPostgres, DuckLakeCatalog):
    # Its client sets the isolation level of each transaction itself.
    name = "ducklake-catalog-postgres"
    title = "DuckLake, PostgreSQL"
    catalog = "DuckLake's tables in PostgreSQL"
    backend = PostgresDatabase.title
    extensions = ("ducklake", "postgres_scanner")
    attached = "ducklake:postgres:{}"
    durability = PostgresDatabase.durability()


class DuckLakeSqlite(DuckLakeCatalog):
    name = "ducklake-catalog-sqlite"
    title = "DuckLake, SQLite"
    catalog = "DuckLake's tables in SQLite"
    backend = SqliteDatabase.title
    keeps_in: ClassVar[type[Database]] = SqliteDatabase
    extensions = ("ducklake", "sqlite_scanner")
    attached = "ducklake:sqlite:{}"
    notes = (*DuckLakeCatalog.notes, "a request that finds the file locked is refused ('database is locked')")
    durability = SqliteDatabase.durability()


class DuckLakeFile(DuckLakeCatalog):
    name = "ducklake-catalog-file"
    title = "DuckLake, DuckDB file"
    catalog = "DuckLake's tables in a DuckDB file"
    backend = DuckDBDatabase.title
    keeps_in: ClassVar[type[Database]] = DuckDBDatabase
    alone = "one process alone can hold a DuckDB file, and each user is a process"
    extensions = ("ducklake",)
    attached = "ducklake:{}"
    notes = (*DuckLakeCatalog.notes, "the one user of an open loop sends what is due after what it waits for")
    durability = DuckDBDatabase.durability()
