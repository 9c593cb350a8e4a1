"""Client that writes and reads complete tables, as a separate program: `python -I client.py`.

It is run by the Python that has the measured release, and therefore imports nothing of this package. The first line of
its input is an order, each further line a question, all of them JSON; it answers each with a line of JSON. Times cover
only the client library's own calls; sources are read before them, and results stored after them.
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


# Loaded from this folder, only for orders that name one of its clients.
BESIDE = "tidemark.systems.bulk.kafka_spark_clients"
PEAK = "5"  # resets the peak memory of a process in the kernel


class Client(ABC):
    """Client of one library; its constructor loads the modules, after the process was bound to its processors."""

    packages: tuple[str, ...]

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.codec: str = order["codec"]
        self.steps: Mapping[str, int] = {}  # parts of the last write, in nanoseconds, if the library reports any

    def hold(self, table: pa.Table, keys: Sequence[str]) -> Any:
        """Return the rows in the library's form, each identified by its `keys`; not timed."""
        del keys
        return table

    def prepare(self, source: str) -> None:
        """Make the rows of the file `source` available to other processes; not timed."""
        del source

    @abstractmethod
    def write(self, address: str, table: Any) -> None:
        """Create a table at `address` from what `hold` returned. This is the timed call."""

    @abstractmethod
    def read(self, address: str) -> pa.Table:
        """Return the complete table at `address`, in memory. This is the timed call."""


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
    """The same file through hdfs-native's client only, which passes its input to the NameNode and DataNode."""

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
    """Return a DuckDB of the client, as configured in the order."""
    import duckdb

    connection = duckdb.connect(":memory:", config=order["config"])
    for statement in order["statements"]:
        connection.execute(statement)
    return connection


def quoted(text: str) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


class DuckDBDelta(DeltaRs):
    """Tables that delta-rs writes and DuckDB reads with its Delta extension, in this process."""

    packages: tuple[str, ...] = ("deltalake", "duckdb", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self._connection = connected(order)

    def read(self, address: str) -> pa.Table:
        # As a URI: the extension takes a % in a plain path for the start of a printf conversion.
        place = quoted(Path(address).as_uri())
        return self._connection.sql(f"SELECT * FROM delta_scan({place})").to_arrow_table()


class DuckDBDeltaOnHdfs(DuckDBDelta):
    """Tables whose files delta-rs lists and DuckDB reads through hdfs-native's fsspec file system."""

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
    """Tables in an SQLite catalog, which is created before any of them; `address` is a table's name."""

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
    """Tables in an SQLite catalog, which is created before any of them; `address` is a table's name."""

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
# Classes of the file BESIDE.
CLIENTS_BESIDE = {"legacy": "Legacy", "arrow-kafka-delta": "ArrowKafkaDelta", "warm-spark": "WarmSpark"}


def chosen(name: str) -> Any:
    """Return the class of the client `name`, which has the members of `Client`."""
    if name in CLIENTS:
        return CLIENTS[name]
    module = BESIDE.rpartition(".")[2]
    found = importlib.util.spec_from_file_location(module, Path(__file__).with_name(f"{module}.py"))
    assert found is not None and found.loader is not None
    beside = importlib.util.module_from_spec(found)
    found.loader.exec_module(beside)
    return getattr(beside, CLIENTS_BESIDE[name])


def peak_bytes() -> int:
    """Return the peak resident memory in bytes since it was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def timed(work: Callable[[], Any]) -> tuple[dict[str, int], Any]:
    """Return the cost and the result of `work`: `start_ns` is of time.perf_counter_ns, `cpu_ns` of all threads."""
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
    # Before anything is imported: libraries create as many threads as they have processors.
    os.sched_setaffinity(0, order["processors"])
    # Packages that the stack does not have, after all of the stack's.
    sys.path += order["packages"]
    client: Client = chosen(order["client"])(order)
    say({"versions": {name: version(name) for name in client.packages}})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            say(write(client, asked) if asked["do"] == "write" else read(client, asked))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
    # Threads of the client library may abort a process that ends normally.
    os._exit(0)


if __name__ == "__main__":
    main()
