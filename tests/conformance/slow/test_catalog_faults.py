"""Kills and listings, with the real load generator on real servers: a loss is found, and nothing else is."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.conformance.conftest import Servers
from tests.conformance.faulty_proxy import proxy

from tidemark.config import ServicesConfig
from tidemark.measure.workload import TestBed
from tidemark.services.base import Service, ServiceContext
from tidemark.services.iceberg.backends import IcebergRestSqlite
from tidemark.services.servers import Servers as Started
from tidemark.software.tools import provide_tool, tool_python
from tidemark.studies.catalogs.record import CatalogSettings
from tidemark.studies.catalogs.requests import Tree, phases
from tidemark.studies.catalogs.window import crash
from tidemark.studies.catalogs.window.crash import Crash, why_not
from tidemark.studies.catalogs.window.generator import TOOL, Generator
from tidemark.studies.catalogs.window.oracle import Ledger
from tidemark.studies.catalogs.window.samples import CatalogWindow
from tidemark.systems.base import Context
from tidemark.systems.catalogs.base import CatalogSystem
from tidemark.systems.registry import of_kind

SETTINGS = CatalogSettings(4, 1, "create,churn,crash", 10, 1.0, 10.0, 5, 5, 2, 8, 1, 30.0)
SQLITE = "rest-jdbc-sqlite"


@pytest.fixture
def server(servers: Servers) -> Iterator[IcebergRestSqlite]:
    """Yield a dedicated server, which may be killed."""
    if sys.prefix.startswith("/nix/store"):
        pytest.skip("the check of the flake has what the study on streams runs from alone")
    provide_tool(TOOL, servers.workspace)
    directory = servers.workspace.work / "killed"
    with IcebergRestSqlite.from_config(ServiceContext(servers.workspace, directory, ServicesConfig())) as service:
        yield service


def made_bed(name: str, services: dict[type[Service], Any]) -> TestBed:
    variant = SimpleNamespace(needs=tuple(services))
    return cast(
        TestBed, SimpleNamespace(servers=Started(services), variant=variant, spec=SimpleNamespace(seed=1), name=name)
    )


def killed(server: IcebergRestSqlite, folder: Path, mark: str) -> dict[str, Any]:
    """Return the findings of one kill, checked together with a window that acknowledged nothing."""
    system = of_kind(CatalogSystem)[SQLITE](Context(folder, {IcebergRestSqlite: server}, 1), None)
    kills = Crash(
        made_bed(SQLITE, {IcebergRestSqlite: server}), SETTINGS, system, folder, mark, server.workspace.private
    )
    return kills.all(Ledger(), ("nothing",), lambda _said: None)


def test_loss_after_a_kill_is_found(server: IcebergRestSqlite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill an intact server (nothing is lost), one whose database is reset (all later writes are), and a broken one."""
    for mark in ("whole", "restored", "broken"):
        (tmp_path / mark).mkdir()
    for name in ("FIRST_S", "LAST_S"):
        monkeypatch.setattr(crash, name, 10.0)  # a server that has just started on a busy machine acknowledges slowly
    (whole,) = killed(server, tmp_path / "whole", "whole")["kills"]
    assert whole["holds"] and whole["lost"] == 0 and whole["named"] == ()
    assert whole["in_flight"] >= 1 and whole["acknowledged"] >= 2 and 0 < whole["answered_s"] < 60
    assert whole["unknown"] == whole["done"] + whole["not_done"] >= 1
    server.restart()  # concurrent users may have left its file locked; it then serves reads and refuses writes
    earlier = tmp_path / "earlier"
    shutil.copyfile(server.database_path, earlier)
    monkeypatch.setattr(server, "prepare", lambda: shutil.copyfile(earlier, server.database_path))
    (restored,) = killed(server, tmp_path / "restored", "restored")["kills"]
    assert not restored["holds"] and restored["lost"] >= 1 and restored["answered_s"] is not None
    monkeypatch.undo()
    server.restart()
    monkeypatch.setattr(server, "prepare", lambda: server.database_path.write_bytes(b"no database" * 1000))
    found = killed(server, tmp_path / "broken", "broken")
    (broken,) = found["kills"]
    assert not broken["holds"] and broken["answered_s"] is None and found["window"] is None
    assert "ended while it was starting" in broken["said"]


def test_systems_that_cannot_be_killed_are_excused_with_a_reason() -> None:
    known = of_kind(CatalogSystem)
    ours, theirs = (SimpleNamespace(is_external=external, is_instrument=False) for external in (False, True))
    for name, service, said in (
        ("null-catalog", ours, "keeps nothing"),
        ("rest-memory", ours, "nothing of it outlives its server"),
        (SQLITE, theirs, "was not started here"),
    ):
        assert said in (why_not(made_bed(name, {IcebergRestSqlite: service}), cast(Any, known[name])) or "")
    assert why_not(made_bed(SQLITE, {IcebergRestSqlite: ours}), cast(Any, known[SQLITE])) is None


def test_name_listed_twice_is_counted(server: IcebergRestSqlite, tmp_path: Path) -> None:
    """Let the load generator itself count in every listing; the users work on separate tables."""
    system = of_kind(CatalogSystem)[SQLITE](Context(tmp_path, {IcebergRestSqlite: server}, 1), None)
    asked = phases(SETTINGS, Tree(1, "listed"), 1)
    with proxy(system.endpoint.base, "repeat", "Own_0_0") as address:
        endpoint = replace(system.endpoint, base=address)
        python = tool_python(TOOL, server.workspace)
        with Generator.of_rest(python, tmp_path, asked, endpoint, 10) as generator:
            for number in range(len(asked)):
                assert generator.play(number, time.monotonic() + 30) is not None
            window = CatalogWindow(asked)
            window.take(generator.played())
    churned = window.columns["part"] == "churn"
    doubled = window.columns["doubled"]
    assert doubled[churned].sum() > 0 and set(window.columns["kind"][doubled > 0]) == {"list tables"}
    assert set(window.columns["outcome"][churned]) == {"acked"}
    own = window.columns["user"][churned][1:]
    assert list(own) == [place % SETTINGS.users for place in range(len(own))]
