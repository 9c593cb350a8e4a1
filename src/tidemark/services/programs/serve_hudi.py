"""A Flight server that returns complete Hudi tables on HDFS, read by DuckDB. `python -I serve_hudi.py FILE`.

FILE holds, as JSON, folders of additional Python packages, the path of the module that selects the current data
files, and the address of the NameNode, hdfs://host:port. A ticket is a table's path.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import duckdb
import pyarrow.flight as flight

# Hudi's metadata columns.
HUDIS = "_hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key, _hoodie_partition_path, _hoodie_file_name"
ROWS = 100_000  # per batch


class Tables(flight.FlightServerBase):  # type: ignore[misc]
    """Flight service with one DuckDB connection; each request uses a separate cursor."""

    def __init__(self, newest: Any, names: str) -> None:
        super().__init__("grpc://127.0.0.1:0")
        import hdfs_native
        from hdfs_native.fsspec import HdfsFileSystem

        self._newest, self._names = newest, hdfs_native.Client(names)
        host, _, port = names.removeprefix("hdfs://").partition(":")
        self._connection = duckdb.connect(":memory:")
        self._connection.register_filesystem(HdfsFileSystem(host=host, port=int(port)))

    def do_get(self, context: Any, ticket: Any) -> Any:
        del context
        path = ticket.ticket.decode()
        found = [PurePosixPath(each.path) for each in self._names.list_status(path, True) if not each.isdir]
        inside = [each.relative_to(path) for each in found]
        timeline = [each.name for each in inside if each.parent.as_posix() == self._newest.TIMELINE]
        completed = {instant for name in timeline if (instant := self._newest.begun(name))}
        data = [each for each in inside if len(each.parts) == 1 and each.suffix == ".parquet"]
        files = self._newest.newest(data, completed)
        if not files:
            raise flight.FlightServerError(f"{path} holds no rows of a completed commit")
        places = [f"hdfs://{path}/{each}" for each in files]
        rows = self._connection.cursor().execute(f"SELECT * EXCLUDE ({HUDIS}) FROM read_parquet(?)", [places])
        return flight.RecordBatchStream(rows.fetch_record_batch(ROWS))


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    sys.path += order["packages"]
    found = importlib.util.spec_from_file_location("newest", order["newest"])
    assert found is not None and found.loader is not None
    newest = importlib.util.module_from_spec(found)
    found.loader.exec_module(newest)
    server = Tables(newest, order["names"])
    print(f"Listens on port: {server.port}", flush=True)
    server.serve()


if __name__ == "__main__":
    main()
