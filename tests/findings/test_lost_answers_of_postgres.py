"""Tests of the judge of scripts that lose an answer: blamed clients, with the scripts' own PostgreSQL and proxy."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tidemark.paths import Workspace
from tidemark.results.reference.findings import SCRIPTS
from tidemark.services.programs.provision import provision


@pytest.fixture(scope="module")
def modules() -> Iterator[tuple[Any, Any, Any]]:
    """Yield the modules of the server, the proxy and the judge, imported as by a script."""
    sys.path.insert(0, str(SCRIPTS))
    names = ("postgres_server", "postgres_proxy", "ducklake_client")
    try:
        server, proxy, client = (importlib.import_module(name) for name in names)
        yield server, proxy, client
    finally:
        sys.path.remove(str(SCRIPTS))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def server(modules: tuple[Any, Any, Any], tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Any]:
    assert cache
    (jar,) = provision("postgres", Workspace(tmp_path_factory.mktemp("workspace")))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr(sys, "argv", ["a script", str(jar)])
        with modules[0].Server(Path(place)) as running:
            yield running


class Planted:
    """Client with a table in files that PostgreSQL names; with `deletes` it deletes its file after any error."""

    def __init__(self, server: Any, proxy: Any, outcome: Any, deletes: bool) -> None:
        self.server, self.proxy, self.outcome, self.deletes = server, proxy, outcome, deletes
        self.data = Path(tempfile.mkdtemp(dir=server.folder))
        with server.connect() as connection:
            connection.execute("DROP TABLE IF EXISTS files")
            connection.execute("CREATE TABLE files (of_table text, path text)")

    def prepare(self, table: str, *_: str) -> None:
        self.write(table, self.server.port, [[0, "x"]])

    def write(self, table: str, port: int, rows: list[list[Any]]) -> None:
        file = self.data / f"{table}-{rows[0][0]}.json"
        words = f"{self.server.words('postgres', port)} password={self.server.password}"
        with psycopg.connect(words, autocommit=True) as connection:
            connection.execute("BEGIN")
            file.write_text(json.dumps(rows))
            connection.execute("INSERT INTO files VALUES (%s, %s)", [table, str(file)])
            try:
                connection.execute("COMMIT")
            except psycopg.Error:
                if self.deletes:
                    file.unlink()
                raise

    def operate(self, table: str, _: object, loses: bool) -> tuple[list[str], str]:
        if loses:
            self.proxy.lose_answer()
        error = ""
        try:
            self.write(table, self.proxy.port, [[9, "y"]])
        except psycopg.Error as failed:
            error = str(failed)
        return self.proxy.take_hits(), error

    def look(self, table: str, hit: list[str], error: str) -> Any:
        with self.server.connect() as connection:
            named = [
                Path(path) for (path,) in connection.execute("SELECT path FROM files WHERE of_table = %s", [table])
            ]
        missing = [path.name for path in named if not path.exists()]
        rows = None if missing else sorted(row for path in named for row in json.loads(path.read_text()))
        return self.outcome(hit, error, rows, "a file is not there" if missing else "", missing)


@pytest.mark.parametrize("deletes", [False, True])
def test_client_is_blamed_if_it_deletes_a_committed_file(
    modules: tuple[Any, Any, Any], server: Any, deletes: bool
) -> None:
    _, proxies, judge = modules
    proxy = proxies.Proxy(server.port)
    before, after = [[0, "x"]], [[0, "x"], [9, "y"]]
    kinds = {
        "lost": judge.Kind(3, (), (), True, (before, after), is_harmed=True),
        "untouched": judge.Kind(2, (), (), False, (after,)),
    }
    found = judge.judged(Planted(server, proxy, judge.Outcome, deletes), kinds)
    proxy.close()
    assert judge.is_seen(found, kinds) is deletes
    lost, untouched = found["lost"], found["untouched"]
    assert lost["COMMIT answered"] == lost["refused to the client"] == lost["tables"] == 3
    assert lost["harmed"] == (3 if deletes else 0) and lost["first"]["rows"] == (None if deletes else after)
    assert untouched["harmed"] == untouched["COMMIT answered"] == untouched["refused to the client"] == 0


@pytest.mark.parametrize(
    ("change", "is_seen"), [({}, True), ({"harmed": 8}, False), ({"harmed": 9}, True), ({"COMMIT answered": 9}, False)]
)
def test_finding_needs_nine_of_ten_tables_and_the_servers_answer(
    modules: tuple[Any, Any, Any], change: dict[str, int], is_seen: bool
) -> None:
    judge = modules[2]
    kinds = {
        "lost": judge.Kind(10, (), (), True, ([],), is_harmed=True),
        "untouched": judge.Kind(2, (), (), False, ([],)),
    }
    lost = {"tables": 10, "COMMIT answered": 10, "harmed": 10, **change}
    untouched = {"tables": 2, "COMMIT answered": 0, "harmed": 0}
    assert judge.is_seen({"lost": lost, "untouched": untouched}, kinds) is is_seen
    assert not judge.is_seen({"lost": lost, "untouched": {**untouched, "harmed": 1}}, kinds)


def test_empty_or_rolled_back_commit_is_no_hit(modules: tuple[Any, Any, Any], server: Any) -> None:
    proxy = modules[1].Proxy(server.port)
    words = f"{server.words('postgres', proxy.port)} password={server.password}"
    with psycopg.connect(words, autocommit=True) as connection:
        proxy.lose_answer()
        for statement in ("BEGIN", "SELECT 1", "COMMIT", "BEGIN", "CREATE TABLE made (id int)", "ROLLBACK"):
            connection.execute(statement)
        assert proxy.take_hits() == []
        connection.execute("CREATE TABLE made (id int)")
        proxy.lose_answer()
        connection.execute("BEGIN")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("INSERT INTO elsewhere VALUES (1)")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("COMMIT")
    assert proxy.take_hits() == ["ROLLBACK"], "the server's word, which is_seen does not take for a hit"
    with server.connect() as connection:
        connection.execute("DROP TABLE made")
    proxy.close()
