"""Table formats on an SQL engine: statements that create tables, merge rows into them and compact them.

    system.open()                                  a separate session on the engine
    for statement in system.create("store_sales", query, key):
        system.run(statement, "load store_sales")
    system.run("SELECT count(*) FROM store_sales", "count")
    system.location("store_sales")                 the folder, for readers that do not use the engine

The format defines the text of a statement; the study decides when and how often it runs. The engine is Spark.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service, files_below
from tidemark.services.engines.spark import Answer, Spark, literal
from tidemark.services.engines.spark_events import Job
from tidemark.services.programs.process import give
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.systems.base import USERS_OWN, Capability, Context, Durability, Options, System
from tidemark.systems.tables import footprint_of

NO_CATALOG = "there is no catalog but files"
METADATA = frozenset({"_delta_log", "metadata", ".hoodie"})  # metadata folders of all formats


@dataclass(frozen=True, slots=True)
class Written:
    """Existing Parquet files, each in the folder of its partition, and the metadata by which formats read them.

    `metadata` maps the name of a format's reader to the folder of its metadata, which need not be below `folder`.
    """

    folder: Path
    files: int
    data_bytes: int
    metadata: Mapping[str, Path] = field(default_factory=dict)

    def footprint(self, metadata: Path | None) -> Footprint:
        """Return the footprint of the files as a table with the metadata folder `metadata`, if any."""
        sizes = [path.stat().st_size for path in metadata.iterdir() if path.suffix != ".crc"] if metadata else []
        return Footprint(self.files, self.data_bytes, len(sizes), sum(sizes), None, NO_CATALOG)


STATEMENT_S = 3600.0  # limit of one statement
REGISTER_S = 1800.0  # limit to list existing files
COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"
# As in LHBench; the codec is set so that formats are compared and not codecs.
COMMON = {
    "spark.sql.broadcastTimeout": "7200",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.parquet.compression.codec": "snappy",
}
READ_BACK = ("spark.master", "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", *COMMON)


MODE: Mapping[str, Any] = {
    "help": "What a merge does with the files of rows that change: copy-on-write rewrites them, "
    "merge-on-read notes what is no longer in them, and readers put it together.",
    "choices": (COPY_ON_WRITE, MERGE_ON_READ),
}


@dataclass(frozen=True, slots=True)
class ModeOptions(Options):
    mode: str = field(default=MERGE_ON_READ, metadata=MODE)


class SqlEngineTable(System):
    """One table format in a Spark session, which is the engine's own: an engine is started for each series.

    Tables are identified by their unqualified names.
    """

    kind: ClassVar[str] = "a table format on an engine"
    client: ClassVar[str] = "Spark SQL"
    catalog: str = "none but files"
    reader: ClassVar[str]  # name of a reader without the engine: parquet, delta, iceberg, hudi
    merges: ClassVar[bool] = True  # whether rows can be merged into its tables
    registers: ClassVar[bool] = True  # whether existing files of another writer can be registered as a table
    is_placed: ClassVar[bool] = True  # whether a statement says where a new table lies; otherwise the catalog chooses
    capabilities: frozenset[Capability] = frozenset({Capability.READ_BACK, Capability.READ_BY_OTHERS})
    needs: ClassVar[tuple[type[Service], ...]]  # the first is the Spark that supports the format
    durability: Durability = Durability(
        "Files are left to the page cache.", counted=None, remark="nothing is counted of what writes tables whole"
    )
    told: ClassVar[Mapping[str, str]] = {}  # settings of the session for the format
    release: ClassVar[str] = ""  # suffix of its jars' names, if other systems have other versions of them

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._spark = cast(Spark, context.services[self.needs[0]])
        self._database = f"lake_{secrets.token_hex(4)}"
        self._sources: dict[Path, str] = {}
        self._registered: dict[str, Written] = {}

    @property
    def warehouse(self) -> Path:
        return self.context.directory / "tables"

    def open(self) -> None:
        """Begin a session that resolves unqualified table names; raise SystemFailure or ServiceError on failure."""
        if self._spark.is_elsewhere:
            self.say(f"its executors are a cluster's, {USERS_OWN}: nothing is seen here of their processors and disks")
        self.warehouse.mkdir(mode=0o700)
        give(self.warehouse)
        give(self.context.directory)
        for name, value in {**COMMON, **self.told}.items():
            self._set(name, value)
        self._use()

    def _use(self) -> None:
        """Create the database for tables, and resolve unqualified names in it."""
        self._spark.sql(f"CREATE DATABASE {self._database}")
        self._spark.sql(f"USE {self._database}")

    def _set(self, name: str, value: str) -> None:
        self._spark.sql(f"SET {name}={value}")

    def run(self, statement: str, label: str) -> Answer:
        """Run one statement and return all of its rows, with its times by the engine's own clock.

        Raise SystemFailure, with the reason, if it is refused. `label` identifies the statement in the engine's log.
        """
        return self._spark.sql(statement, label, STATEMENT_S)

    def log_events(self, folder: Path) -> None:
        """Start to log in the empty `folder` what the engine does for each statement."""
        self._spark.log_events(folder)

    def logged(self, folder: Path) -> Sequence[Job]:
        """Stop logging to `folder` and return the log's jobs."""
        return self._spark.logged(folder)

    def parquet(self, path: Path) -> str:
        """Return the name of a Parquet file in statements, after FROM.

        It is a view of the session, created at first use: a catalog may not accept files by their paths.
        """
        if path not in self._sources:
            name = f"source_{len(self._sources)}"
            self._spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING parquet OPTIONS (path {literal(path)})")
            self._sources[path] = name
        return self._sources[path]

    def location(self, table: str) -> Path:
        """Return the folder that holds `table`, including its metadata."""
        return self._registered[table].folder if table in self._registered else self.warehouse / table

    def register(self, table: str, written: Written) -> None:
        """Create `table` from existing files, by metadata alone; only if `registers` is true."""
        self._registered[table] = written
        made = f"CREATE TABLE {table} USING {self.reader} LOCATION {literal(written.folder)}"
        self._spark.sql(made, f"register {table}", REGISTER_S)

    def footprint(self, table: str) -> Footprint:
        """Return the files and bytes of `table` on the disk, including old versions."""
        if written := self._registered.get(table):
            return written.footprint(written.metadata.get(self.reader))
        # Without checksums, which the engine's file system adds for every file.
        files = [path for path in files_below(self.location(table)) if path.suffix != ".crc"]
        sizes = ((METADATA.isdisjoint(path.parent.parts), path.stat().st_size) for path in files)
        return footprint_of(sizes, None, NO_CATALOG)

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        """Return statements that create `table` from the rows of `query`, partitioned by the column `date` if given."""
        del key
        return (self._creating(table, query, date, {}),)

    def _creating(self, table: str, query: str, date: str | None, properties: Mapping[str, str]) -> str:
        """Return LHBench's CREATE TABLE ... AS SELECT; sorted by `date` if the table is partitioned by it."""
        words = [f"CREATE TABLE {table} USING {self.reader}"]
        if properties:
            pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
            words.append(f"TBLPROPERTIES ({pairs})")
        words += [f"PARTITIONED BY ({date})"] if date else []
        words += [f"LOCATION {literal(self.location(table))}"] if self.is_placed else []
        return " ".join([*words, f"AS {query}", *([f"ORDER BY {date}"] if date else [])])

    def merge(self, table: str, source: str, key: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
        """Return statements that merge the relation `source` into `table`: a row replaces the one with its `key`."""
        del columns
        same = " AND ".join(f"old.{name} = new.{name}" for name in key)
        return (
            f"MERGE INTO {table} AS old USING {source} AS new ON {same} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        )

    def compact(self, table: str) -> Sequence[str]:
        """Return statements that rewrite `table` in few files, as its users do; empty if there is no such command."""
        del table
        return ()

    def in_force(self) -> Mapping[str, str]:
        """Return the session's settings that affect a measurement, read back from the session."""
        return {name: str(self._spark.sql(f"SET {name}").rows[0][1]) for name in (*READ_BACK, *self.told)}

    def settings(self) -> Mapping[str, str]:
        return {**COMMON, **self.told}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        found = (jar for lock in cls.needs[0].locks for jar in read_jar_lock(jar_lock(lock)))
        named = (jar for jar in found if jar.artifact.partition("_")[0] in NAMED)
        return {f"{jar.artifact}{cls.release}": jar.version for jar in named}

    def close(self) -> None:
        self._sources.clear()


# Jars whose versions identify a session.
NAMED = (
    "spark-sql",
    "delta-spark",
    "delta-core",
    "iceberg-spark-runtime-3.5",
    "iceberg-spark-runtime-3.3",
    "hudi-spark3.5-bundle",
)


class ParquetOnSpark(SqlEngineTable):
    name: ClassVar[str] = "parquet-on-spark"
    title: ClassVar[str] = "Parquet (Spark)"
    format: ClassVar[str] = "Parquet"
    notes: tuple[str, ...] = ("no table format: rows cannot be changed, and nothing is atomic",)
    needs: ClassVar[tuple[type[Service], ...]] = (Spark,)
    reader: ClassVar[str] = "parquet"
    merges: ClassVar[bool] = False

    def register(self, table: str, written: Written) -> None:
        """Create a view that lists all folders once, now: plain files have no metadata to keep a listing in."""
        self._registered[table] = written
        source = f"USING parquet OPTIONS (path {literal(written.folder)})"
        self._spark.sql(f"CREATE TEMPORARY VIEW {table} {source}", f"list {table}", REGISTER_S)
