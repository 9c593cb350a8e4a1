"""Hudi on Spark: the sink of Structured Streaming, and SQL.

A table that an engine writes is read without a Hudi client: through the names of its files, and by PyArrow.

A base file's name contains its file group and the instant that wrote it; a file of the timeline (layout 2, of Hudi 1.0
and later) contains an instant and its completion time. The newest file of each group with a completed instant holds
the table's rows (copy-on-write), each with the instant that wrote it. Instants that were moved out of the timeline are
in Parquet files of its history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.paths import private_directory
from tidemark.runs.manifest import Footprint, TypeMapping
from tidemark.services.base import Service, files_below
from tidemark.services.engines.spark import SparkHudi as Engine
from tidemark.services.engines.spark import SparkHudiSql, Stream
from tidemark.services.programs.hudi_files import COMMIT, METADATA, TIMELINE, newest
from tidemark.services.programs.process import give
from tidemark.systems.base import TABLE, Capability, Context, Options, option
from tidemark.systems.sinks import ALIGNED, TIME, SparkSink
from tidemark.systems.spark_sql import MERGE_ON_READ, ModeOptions, SqlEngineTable
from tidemark.systems.tables import Committed, TableSystem, footprint_of, read_ids

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN_BY = "_hoodie_commit_time"  # a metadata column of Hudi's
NAME = "trips"
STORED = "timestamp[us, tz=UTC]"
UPSERT, INSERT = "upsert", "insert"


class HudiTable(TableSystem):
    """Hudi table in a folder that `create` prepares; its first writer creates the table itself."""

    format: ClassVar[str] = "Hudi"
    catalog: str = "Hudi timeline"
    capabilities: frozenset[Capability] = TABLE | {Capability.HISTORY}

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.place = context.directory / NAME
        self._rows: dict[str, int] = {}  # by file name; a file is never written to again

    def create(self, schema: pa.Schema) -> None:
        del schema  # the table takes the first writer's schema
        give(private_directory(self.place))

    def write(self, rows: pa.Table) -> None:
        raise SystemFailure(f"found {rows.num_rows} rows for a table of Hudi; allowed: what an engine writes")

    @property
    def reader(self) -> str:
        import pyarrow as pa

        return f"PyArrow {pa.__version__}, in the files that names and timeline tell: no client of Hudi's"

    def ids(self) -> pa.ChunkedArray:
        return read_ids(self.data_files())

    def read(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole = pa.concat_tables(pq.read_table(path, partitioning=None) for path in self.data_files())
        return whole.select([name for name in whole.column_names if not name.startswith("_hoodie_")])

    def data_files(self) -> Sequence[PurePath]:
        completed = self._completed()  # before the files are listed: all files of a completed instant then exist
        return newest(self.place.glob("*.parquet"), completed)

    def visible_rows(self) -> int:
        import pyarrow.parquet as pq

        files = self.data_files()
        for path in files:
            if path.name not in self._rows:
                self._rows[path.name] = pq.read_metadata(path).num_rows
        return sum(self._rows[path.name] for path in files)

    def history(self) -> Sequence[Committed]:
        """Return the commits; a row counts for the last commit that wrote it, even if its key existed before."""
        import pyarrow.parquet as pq

        rows: Counter[str] = Counter()
        for path in self.data_files():
            rows.update(pq.read_table(path, columns=[WRITTEN_BY], partitioning=None).column(0).to_pylist())
        return [Committed(at, rows[instant]) for instant, at in sorted(self._completed().items()) if rows[instant]]

    def footprint(self) -> Footprint:
        # Hadoop's local file system adds checksum files, with a leading dot: they are not part of the format.
        found = [path for path in files_below(self.place) if not path.name.startswith(".")]
        return footprint_of((METADATA not in path.relative_to(self.place).parts, path.stat().st_size) for path in found)

    def _completed(self) -> dict[str, float]:
        """Return the completion time of each commit (Unix time in ms), by the instant at which it began."""
        import pyarrow.parquet as pq

        found: dict[str, float] = {}
        for path in self.place.glob(f"{TIMELINE}/history/*.parquet"):
            moved = pq.read_table(path, columns=["instantTime", "completionTime", "action"], partitioning=None)
            for begun, ended, action in zip(*moved.to_pydict().values(), strict=True):
                if action == COMMIT:
                    found[begun] = _milliseconds(ended)
        for path in self.place.glob(f"{TIMELINE}/*_*.{COMMIT}"):
            begun, ended = path.stem.split("_")
            found[begun] = _milliseconds(ended)
        return found


def _milliseconds(instant: str) -> float:
    """Return the Unix time in ms of an instant in Hudi's notation, in the writer's time zone, which is UTC here."""
    seconds = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    return seconds * 1000 + int(instant[14:17])


def writer_options(table: str, operation: str, key: str, codec: str) -> dict[str, str]:
    """Return the options of a writer to a copy-on-write table without partitions; `key` names its columns."""
    return {
        "hoodie.table.name": table,
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.parquet.compression.codec": codec,
        "hoodie.embed.timeline.server": "false",
    }


@dataclass(frozen=True, slots=True)
class HudiSinkOptions(Options):
    operation: str = option(
        UPSERT,
        "What a batch does (hoodie.datasource.write.operation). upsert, as shipped, looks each key up and "
        "writes a row of a known one again; insert does not look.",
        choices=(UPSERT, INSERT),
    )


class SparkHudi(SparkSink):
    name: ClassVar[str] = "spark-hudi"
    title: ClassVar[str] = "Spark (Hudi)"
    format: ClassVar[str] = "Hudi"
    client: ClassVar[str] = "Hudi sink of Spark"
    catalog: str = HudiTable.catalog
    notes: tuple[str, ...] = (
        ALIGNED,
        "copy-on-write: a batch rewrites the files that its rows go into, the smallest among them",
        "its server of file listings, which would listen on all interfaces, is off",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (Engine,)
    Options: ClassVar[type[Options]] = HudiSinkOptions
    into: ClassVar[type[TableSystem]] = HudiTable
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is in the commit; keys"
    time: ClassVar[str] = "TIMESTAMP"

    def type_mappings(self, schema: pa.Schema) -> list[TypeMapping]:
        reason = "a time without a zone is given as one of UTC"
        return [TypeMapping(each.name, TIME, STORED, reason) for each in schema if str(each.type) == TIME]

    def _sink(self, table: TableSystem) -> Stream:
        assert isinstance(table, HudiTable)
        return Stream("hudi", options={**self._told(), "path": str(table.place)})

    def settings(self) -> Mapping[str, str]:
        return {**super().settings(), **self._told()}

    def _told(self) -> Mapping[str, str]:
        return writer_options(NAME, self.options.operation, "id", self.context.codec)


class HudiOnSpark(SqlEngineTable):
    name: ClassVar[str] = "hudi-on-spark"
    title: ClassVar[str] = "Hudi (Spark)"
    format: ClassVar[str] = "Hudi"
    catalog: str = "Hudi timeline"
    notes: tuple[str, ...] = (
        "its server of file listings, which would listen on all interfaces, is off",
        "no field decides which of two rows of a key is newer: with one, merges drop updates without a word",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (SparkHudiSql,)
    reader: ClassVar[str] = "hudi"
    registers: ClassVar[bool] = False
    Options: ClassVar[type[Options]] = ModeOptions
    told: ClassVar[Mapping[str, str]] = {
        "hoodie.embed.timeline.server": "false",
        "hoodie.parquet.compression.codec": "snappy",
    }

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        kind = "mor" if self.options.mode == MERGE_ON_READ else "cow"
        return (self._creating(table, query, date, {"type": kind, "primaryKey": ",".join(key)}),)

    def compact(self, table: str) -> Sequence[str]:
        if self.options.mode != MERGE_ON_READ:
            return ()
        return (f"CALL run_compaction(op => 'scheduleandexecute', table => '{table}')",)
