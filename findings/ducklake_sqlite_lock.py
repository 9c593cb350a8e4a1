# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "duckdb==1.5.5",
#     "duckdb-extension-ducklake==1.5.5",
#     "duckdb-extension-sqlite-scanner==1.5.5",
# ]
# ///
"""DuckLake over SQLite: a commit that met a reader keeps the catalog locked until its process ends.

Three processes have one DuckLake open. One reads in a transaction while another commits, which fails. The reader ends
its transaction; nobody has one open any more. The third one then tries to write for as long as it is allowed to, before
and after the process of the failed commit is ended. Prints one line of JSON; `seen` says whether this release does so.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

TRY_S = 5.0


def client(folder: Path) -> None:
    """Carry out the SQL of each line of standard input; 'done', or what DuckDB says."""
    connection = duckdb.connect()
    for name in ("ducklake", "sqlite_scanner"):
        package = __import__(f"duckdb_extension_{name}")
        place = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{place}'")
    connection.execute(
        f"ATTACH 'ducklake:sqlite:{folder / 'catalog.sqlite'}' AS lake "
        f"(DATA_PATH '{folder / 'data'}', DATA_INLINING_ROW_LIMIT 0)"
    )
    for line in sys.stdin:
        try:
            connection.execute(line).fetchall()
            said = "done"
        except duckdb.Error as error:
            said = " ".join(str(error).split())
        print(said, flush=True)


class Client:
    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "client", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, sql: str) -> str:
        self.process.stdin.write(f"{sql}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def insert(self, seconds: float = 0.0) -> tuple[str, int]:
        """Try to write a row, again and again for so long; what was said last, and how often it was tried."""
        until, tries = time.monotonic() + seconds, 0
        while True:
            tries += 1
            said = self.ask("INSERT INTO lake.t VALUES (1)")
            if said == "done" or time.monotonic() > until:
                return said, tries

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def main(folder: Path) -> dict:
    first = Client(folder)
    steps = [("create", first.ask("CREATE TABLE lake.t (id BIGINT)"))]
    reader, third = Client(folder), Client(folder)
    steps += [("third writes", third.insert()[0])]
    steps += [("reader begins", reader.ask("BEGIN")), ("reader reads", reader.ask("SELECT count(*) FROM lake.t"))]
    refused, _ = first.insert()
    steps += [("first commits while it reads", refused), ("reader ends", reader.ask("COMMIT"))]
    steps += [("first rolls back", first.ask("ROLLBACK"))]
    while_there, tries = third.insert(TRY_S)
    steps += [(f"third writes for {TRY_S:g} s, {tries} tries", while_there)]
    first.end()
    after, _ = third.insert(TRY_S)
    steps += [("third writes once the first one's process has ended", after)]
    for each in (reader, third):
        each.end()
    return {
        "seen": refused != "done" and while_there != "done" and after == "done",
        "said": f"{tries} tries to write in {TRY_S:g} s after the reader had ended: {while_there}; then: {after}",
        "versions": {"duckdb": duckdb.__version__},
        "evidence": {"steps": steps},
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as place:
            Path(place, "data").mkdir()
            print(json.dumps(main(Path(place))))
