"""A client that writes and reads whole tables, a program of its own: `python -I client.py`.

It is run by whichever Python has the release that is measured, so that it imports nothing of this package. Its first
line of input is an order, each further one a question, all of them JSON; it answers each with a line of JSON. A time is
taken around the client library's own calls and nothing else; sources are read, and results kept, before and after.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BESIDE = "tidemark.systems.wholes.through"  # whose clients are loaded from this folder, for those alone who name one
PEAK = "5"  # what makes the kernel forget the most memory that a process had


class Client(ABC):
    """One library. Its modules are loaded by its constructor, when the process is bound to its processors."""

    packages: tuple[str, ...]

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.codec: str = order["codec"]
        self.steps: Mapping[str, int] = {}  # parts of the last write, in nanoseconds, where the library tells any

    def hold(self, table: pa.Table, keys: Sequence[str]) -> Any:
        """The rows as the library takes them, each known by its `keys`; before the time."""
        del keys
        return table

    def prepare(self, source: str) -> None:
        """Let others than this process have the rows of the file `source`; before the time."""
        del source

    @abstractmethod
    def write(self, address: str, table: Any) -> None:
        """Make a new table at `address` of what `hold` returned; THE timed call."""

    @abstractmethod
    def read(self, address: str) -> pa.Table:
        """The whole table at `address`, in memory; THE timed call."""


class DeltaRs(Client):
    packages: tuple[str, ...] = ("deltalake", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        import deltalake

        self._table = deltalake.DeltaTable
        self._write: Callable[..., Any] = deltalake.write_deltalake
        codec: Any = self.codec.upper()
        self._properties = deltalake.WriterProperties(compression=codec)

    def write(self, address: str, table: pa.Table) -> None:
        self._write(address, table, writer_properties=self._properties)

    def read(self, address: str) -> pa.Table:
        return self._table(address).to_pyarrow_table()


class ParquetFile(Client):
    packages: tuple[str, ...] = ("pyarrow",)

    def write(self, address: str, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        pq.write_table(table, address, compression=self.codec)

    def read(self, address: str) -> pa.Table:
        import pyarrow.parquet as pq

        return pq.read_table(address)


class ParquetOnHdfs(ParquetFile):
    """The same file through hdfs-native's client alone, which hands the NameNode and DataNode what it is given."""

    packages = ("pyarrow", "hdfs-native")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        import hdfs_native

        self._hdfs = hdfs_native.Client(order["names"])

    def write(self, address: str, table: pa.Table) -> None:
        with self._hdfs.create(urlsplit(address).path) as file:
            super().write(file, table)

    def read(self, address: str) -> pa.Table:
        with self._hdfs.read(urlsplit(address).path) as file:
            return super().read(file)


def connected(order: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A DuckDB of the client's own, as the order has it."""
    import duckdb

    connection = duckdb.connect(":memory:", config=order["config"])
    for statement in order["statements"]:
        connection.execute(statement)
    return connection


def quoted(text: str) -> str:
    """As SQL has it."""
    return "'" + text.replace("'", "''") + "'"


class DuckDBDelta(DeltaRs):
    """delta-rs writes; DuckDB reads by its extension for Delta, in this process."""

    packages: tuple[str, ...] = ("deltalake", "duckdb", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self._connection = connected(order)

    def read(self, address: str) -> pa.Table:
        # As a URI: the extension takes a % in a plain path for the start of a printf conversion.
        place = quoted(Path(address).as_uri())
        return self._connection.sql(f"SELECT * FROM delta_scan({place})").to_arrow_table()


class DuckDBDeltaOnHdfs(DuckDBDelta):
    """delta-rs tells which files the table has; DuckDB reads them over hdfs-native's file system of fsspec."""

    packages = (*DuckDBDelta.packages, "hdfs-native", "fsspec")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        from hdfs_native.fsspec import HdfsFileSystem

        names = urlsplit(order["names"])
        self._connection.register_filesystem(HdfsFileSystem(host=names.hostname, port=names.port))

    def read(self, address: str) -> pa.Table:
        files = ", ".join(quoted(each) for each in self._table(address).file_uris())
        return self._connection.sql(f"SELECT * FROM read_parquet([{files}])").to_arrow_table()


class PyIceberg(Client):
    """Tables of a catalog in SQLite, which is made before any of them; `address` is a table's name."""

    packages = ("pyiceberg", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        from pyiceberg.catalog.sql import SqlCatalog

        folder = order["folder"]
        self._catalog = SqlCatalog("whole", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
        self._catalog.create_namespace("whole")

    def write(self, address: str, table: pa.Table) -> None:
        made = self._catalog.create_table(
            ("whole", address),
            table.schema,
            location=f"{self.order['folder']}/{address}",
            properties={"write.parquet.compression-codec": self.codec},
        )
        made.append(table)

    def read(self, address: str) -> pa.Table:
        return self._catalog.load_table(("whole", address)).scan().to_arrow()


class DuckLake(Client):
    """Tables of a catalog in SQLite, which is made before any of them; `address` is a table's name."""

    packages = ("duckdb", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self._connection = connected(order)

    def write(self, address: str, table: pa.Table) -> None:
        self._connection.register("rows", table)
        self._connection.execute(f'CREATE TABLE lake."{address}" AS SELECT * FROM rows')

    def read(self, address: str) -> pa.Table:
        return self._connection.sql(f'SELECT * FROM lake."{address}"').to_arrow_table()


class Nothing(Client):
    packages = ("pyarrow",)

    def write(self, address: str, table: pa.Table) -> None:
        pass

    def read(self, address: str) -> pa.Table:
        del address
        import pyarrow as pa

        return pa.table({})


CLIENTS: dict[str, type[Client]] = {
    "delta-rs": DeltaRs,
    "pyiceberg": PyIceberg,
    "ducklake": DuckLake,
    "duckdb-delta": DuckDBDelta,
    "duckdb-delta-hdfs": DuckDBDeltaOnHdfs,
    "parquet": ParquetFile,
    "parquet-hdfs": ParquetOnHdfs,
    "none": Nothing,
}
# Classes of the file beside.
CLIENTS_BESIDE = {"legacy": "Legacy", "arrow-kafka-delta": "ArrowKafkaDelta", "warm-spark": "WarmSpark"}


def chosen(name: str) -> Any:
    """The class of the client `name`, which has what `Client` has."""
    if name in CLIENTS:
        return CLIENTS[name]
    module = BESIDE.rpartition(".")[2]
    found = importlib.util.spec_from_file_location(module, Path(__file__).with_name(f"{module}.py"))
    assert found is not None and found.loader is not None
    beside = importlib.util.module_from_spec(found)
    found.loader.exec_module(beside)
    return getattr(beside, CLIENTS_BESIDE[name])


def peak_bytes() -> int:
    """The most resident memory since it was last forgotten."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def timed(work: Callable[[], Any]) -> tuple[dict[str, int], Any]:
    """What `work` took and returns: `start_ns` is of time.perf_counter_ns, `cpu_ns` of all threads of the process."""
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(PEAK)
    used, began = time.process_time_ns(), time.perf_counter_ns()
    found = work()
    ended = time.perf_counter_ns()
    took = {"start_ns": began, "elapsed_ns": ended - began, "cpu_ns": time.process_time_ns() - used}
    return took | {"peak_bytes": peak_bytes()}, found


def write(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    import pyarrow.parquet as pq

    began = time.perf_counter_ns()
    table = pq.read_table(asked["source"])
    source_ns = time.perf_counter_ns() - began
    sizes = {"rows": table.num_rows, "arrow_bytes": table.nbytes}
    rows = client.hold(table, asked["keys"])
    del table
    client.prepare(asked["source"])
    took, _ = timed(lambda: client.write(asked["at"], rows))
    return took | {"source_ns": source_ns, **sizes, "steps": dict(client.steps)}


def read(client: Client, asked: dict[str, Any]) -> dict[str, int]:
    import pyarrow.parquet as pq

    took, table = timed(lambda: client.read(asked["at"]))
    if asked["keep"]:
        pq.write_table(table, asked["keep"])
    return took | {"source_ns": 0, "rows": table.num_rows, "arrow_bytes": table.nbytes}


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    order = json.loads(sys.stdin.readline())
    # Before anything is imported: libraries make as many threads as there are processors for them.
    os.sched_setaffinity(0, order["processors"])
    # Packages that the stack does not have, after all of its own.
    sys.path += order["packages"]
    client: Client = chosen(order["client"])(order)
    say({"versions": {name: version(name) for name in client.packages}})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            say(write(client, asked) if asked["do"] == "write" else read(client, asked))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
    # Threads of the client may abort a process that ends as others do.
    os._exit(0)


if __name__ == "__main__":
    main()
