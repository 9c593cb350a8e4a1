# /// script
# requires-python = "==3.12.*"
# dependencies = ["duckdb==1.4.4", "duckdb-extension-ducklake==1.4.4"]
# ///
"""DuckLake 0.3 doubles inlined rows that are flushed while another connection writes to the same table.

One connection inserts rows, each in a commit of its own and few enough to be kept in the catalog; another one of the
same process flushes what is there into Parquet files, again and again. The table is read every so many commits, until
a row is there twice or no more are to be written. Prints one line of JSON; `seen` says whether this release does so.
"""

import json
import tempfile
import threading
from pathlib import Path

import duckdb
import duckdb_extension_ducklake

AT_ONCE, MOST = 200, 5_000  # commits before each look, and in all
LOOK = "SELECT id, count(*) FROM lake.t GROUP BY id ORDER BY id"


class Flushing(threading.Thread):
    """Flushes the table, over a connection of its own, until it is told to end."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__()
        self.connection, self.over = connection, threading.Event()
        self.flushes, self.said = 0, set()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.connection.execute("CALL ducklake_flush_inlined_data('lake')").fetchall()
                self.flushes += 1
            except duckdb.Error as error:
                self.said.add(" ".join(str(error).split()))


def opened(folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    place = Path(duckdb_extension_ducklake.__path__[0], "extensions", f"v{duckdb.__version__}")
    connection.execute(f"LOAD '{place / 'ducklake.duckdb_extension'}'")
    connection.execute(
        f"ATTACH 'ducklake:{folder / 'catalog.ducklake'}' AS lake "
        f"(DATA_PATH '{folder / 'data'}', DATA_INLINING_ROW_LIMIT 10)"
    )
    connection.execute("CREATE TABLE lake.t (id BIGINT)")
    return connection


def main(folder: Path) -> dict:
    connection = opened(folder)
    flushing = Flushing(connection.cursor())
    flushing.start()
    acknowledged, there = [], {}
    while len(acknowledged) < MOST and not any(count > 1 for count in there.values()):
        for row in range(len(acknowledged), len(acknowledged) + AT_ONCE):
            connection.execute("INSERT INTO lake.t VALUES (?)", [row])
            acknowledged.append(row)
        there = dict(connection.execute(LOOK).fetchall())
    flushing.over.set()
    flushing.join()
    there = dict(connection.execute(LOOK).fetchall())
    doubled = {row: count for row, count in there.items() if count > 1}
    lost = sorted(set(acknowledged) - set(there))
    return {
        "seen": bool(doubled),
        "said": f"of {len(acknowledged):,} acknowledged rows {len(doubled)} are there more than once, {len(lost)} not",
        "versions": {"duckdb": duckdb.__version__},
        "evidence": {
            "rows, and how often they are there": doubled,
            "not there": lost,
            "flushes": flushing.flushes,
            "refused flushes": sorted(flushing.said),
        },
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        Path(place, "data").mkdir()
        print(json.dumps(main(Path(place))))
