"""DuckLake over PostgreSQL, for the scripts beside this one that lose the answer to a commit.

`Lake` is one release of DuckDB with a catalog and a data folder of its own. It has three clients, each a process: one
creates tables and one reads, both straight at the server; the third one works through the proxy. Run as a program by a
Python that has DuckDB, this file is such a client: a line of JSON in, a line of JSON out.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FILES = """
    SELECT file.path FROM (SELECT table_id, path, end_snapshot FROM ducklake_data_file
        UNION ALL SELECT table_id, path, end_snapshot FROM ducklake_delete_file) AS file
    JOIN ducklake_table USING (table_id) WHERE table_name = %s AND file.end_snapshot IS NULL
"""


class Failed(Exception):
    """Carries DuckDB's words for what did not work."""


@dataclass
class Kind:
    """So many tables, filled by `fill`, each with an operation through the proxy, whose answer is lost or not."""

    tables: int
    fill: tuple[str, ...]
    operation: tuple[str, ...]
    loses: bool
    allowed: tuple[list, ...]  # the rows that a table may have afterwards
    is_harmed: bool | None = False  # whether that is what is looked for; None: it is counted, whichever it is


@dataclass
class Outcome:
    """The state of one table after its operation. `rows` is None where nobody can read it; `refused` says why."""

    hit: list[str]  # what the server answered and no client was given
    error: str  # what the client raised; nothing where it acknowledged
    rows: list | None
    refused: str
    missing: list[str]  # files that the catalog names and that are not there


class Client:
    """A process; `ask` carries out SQL there. `environment` is what libpq takes from it, such as PGPASSWORD."""

    def __init__(self, python: str, attach: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        self.version = self.carry_out({"open": attach})

    def ask(self, *statements: str) -> list:
        """Return the rows of the last statement; Failed where one of them failed, which leaves out the rest."""
        return self.carry_out({"sql": statements})

    def carry_out(self, what: dict):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["gave"]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Lake:
    """A DuckLake of the release that `python` has; up to `inlined` rows of a commit are kept in its catalog."""

    def __init__(self, server, proxy, python: str, name: str, inlined: int) -> None:
        self.server, self.proxy, self.name, self.data = server, proxy, name, server.folder / name
        self.data.mkdir()
        with server.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.words = (
            f"ATTACH 'ducklake:postgres:{{}}' AS lake (DATA_PATH '{self.data}', DATA_INLINING_ROW_LIMIT {inlined})"
        )
        self.python, self.clients = python, []
        self.maker, self.reader, self.client = (self.connected(port) for port in (None, None, proxy.port))
        self.version = self.client.version

    def connected(self, port: int | None) -> Client:
        """Return one client more, straight at the server or at the port of a proxy."""
        words = self.words.format(self.server.words(self.name, port))
        self.clients.append(Client(self.python, words, {"PGPASSWORD": self.server.password}))
        return self.clients[-1]

    def prepare(self, table: str, *setup: str) -> None:
        """Create a table and fill it, straight at the server; all of it is acknowledged."""
        self.maker.ask(f"CREATE TABLE lake.{table} (id BIGINT, s VARCHAR)", *self.sql(table, setup))

    def sql(self, table: str, statements: tuple[str, ...]) -> list[str]:
        return [each.format(table=f"lake.{table}", name=table, data=self.data) for each in statements]

    def operate(self, table: str, operation: tuple[str, ...], loses: bool) -> tuple[list[str], str]:
        """Carry out statements through the proxy; what the server answered in vain, and what the client raised.

        It is the answer to the COMMIT of the last statement that is lost.
        """
        *first, last = self.sql(table, operation)
        error = ""
        if first:
            self.client.ask(*first)
        if loses:
            self.proxy.lose_answer()
        try:
            self.client.ask(last)
        except Failed as failed:
            error = str(failed)
        return self.proxy.take_hits(), error

    def look(self, table: str, hit: list[str], error: str) -> Outcome:
        """Read a table straight at the server, and compare the files that its catalog names with those there."""
        rows, refused = None, ""
        try:
            rows = sorted(self.reader.ask(f"SELECT id, s FROM lake.{table}"))
        except Failed as failed:
            refused = str(failed)
        with self.server.connect(self.name) as connection:
            named = [path for (path,) in connection.execute(FILES, [table])]
        there = {path.name for path in self.data.rglob("*.parquet")}
        return Outcome(hit, error, rows, refused, [path for path in named if Path(path).name not in there])

    def end(self) -> None:
        for each in self.clients:
            each.end()


def judged(lake, kinds: dict[str, Kind], after=lambda _kind, _table, _outcome: {}) -> dict[str, dict]:
    """Return the counts of each kind, what `after` counts of a table among them, and its first table as evidence."""
    done, found = {}, {}
    for name, kind in kinds.items():
        for _ in range(kind.tables):
            table = f"t{len(done)}"
            lake.prepare(table, *kind.fill)
            done[table] = (name, kind, *lake.operate(table, kind.operation, kind.loses))
    for table, (name, kind, hit, error) in done.items():
        outcome = lake.look(table, hit, error)
        more = {
            "tables": 1,
            "COMMIT answered": hit == ["COMMIT"],
            "refused to the client": bool(error),
            "harmed": outcome.rows not in kind.allowed,
            **after(name, table, outcome),
        }
        counts = found.setdefault(name, {**dict.fromkeys(more, 0), "first": vars(outcome)})
        for key, count in more.items():
            counts[key] += count
    return found


def is_seen(found: dict[str, dict], kinds: dict[str, Kind]) -> bool:
    """Return whether nine in ten tables of each kind looked for are harmed, by landed commits, and no other table."""
    for name, kind in kinds.items():
        one = found[name]
        if kind.loses and one["COMMIT answered"] != one["tables"]:
            return False
        if kind.is_harmed and 10 * one["harmed"] < 9 * one["tables"]:
            return False
        if kind.is_harmed is False and one["harmed"]:
            return False
    return True


def pythons() -> list[str]:
    """Return this Python, and those that are named on the command line by `--python=`."""
    return [sys.executable, *(word.removeprefix("--python=") for word in sys.argv if word.startswith("--python="))]


def opened(attach: str):
    import duckdb

    connection = duckdb.connect()
    for name in ("postgres_scanner", "ducklake"):
        package = __import__(f"duckdb_extension_{name}")
        place = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{place}'")
    connection.execute("SET threads = 2")
    connection.execute(attach)
    return connection


def main() -> None:
    import duckdb

    connection = None
    for line in sys.stdin:
        what, gave = json.loads(line), None
        try:
            if "open" in what:
                connection, gave = opened(what["open"]), duckdb.__version__
            else:
                for statement in what["sql"]:
                    gave = connection.execute(statement).fetchall()
            said = {"gave": gave}
        except duckdb.Error as error:
            said = {"error": " ".join(str(error).split())}
        print(json.dumps(said, default=str), flush=True)


if __name__ == "__main__":
    main()
