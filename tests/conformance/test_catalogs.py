"""Conformance suite for every catalog server in the registry, whatever its backend, on real servers."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from psycopg.conninfo import conninfo_to_dict

from tidemark.machine import strace
from tidemark.services.http import open_url
from tidemark.services.postgres import Postgres
from tidemark.services.seaweedfs import InBucket
from tidemark.services.servers import in_order
from tidemark.studies.catalogs.record import ACKED, CONFLICT, CatalogSettings
from tidemark.studies.catalogs.requests import (
    APPENDING,
    COLUMNS,
    CREATIONS,
    FILL,
    PROPERTIES,
    READS,
    UPDATES,
    Phase,
    Request,
    Tree,
    Walk,
    phases,
)
from tidemark.studies.catalogs.window.generator import Generator
from tidemark.studies.catalogs.window.oracle import Finding, Ledger, look
from tidemark.systems.base import NONE_PER_WRITE, Context
from tidemark.systems.catalogs.base import CatalogSystem, Entity
from tidemark.systems.catalogs.library import Contents, LibraryCatalog, Session
from tidemark.systems.catalogs.reading import PyIcebergReader
from tidemark.systems.registry import of_kind

from .conftest import ODD, OF_A_STACK, Servers
from .faulty_proxy import proxy
from .strace import CALLS, Counts, counts, parse

Opened = Callable[[type[CatalogSystem]], CatalogSystem]
NAMESPACE, TABLE, VIEW = CREATIONS
UPDATED = 20  # updates of one table under strace
marks = iter(range(1000))  # a separate tree for each test, on servers that all tests share


@pytest.fixture
def opened(servers: Servers, tmp_path: Path) -> Iterator[Opened]:
    folder = tmp_path / ODD / "tables"  # the last part names folders on servers as well
    folder.mkdir(parents=True)
    with ExitStack() as stack:

        def opened(kind: type[CatalogSystem]) -> CatalogSystem:
            services = {needed: servers.get(needed) for needed in kind.needs_for(kind.Options())}
            system = kind(Context(folder, services, 1, tools=servers.tools(kind)), kind.Options())
            stack.callback(system.close)
            return system

        yield opened


# One backend of the server that takes longest to start is tested by default, the others only with --long.
SECOND = pytest.mark.long(reason="another backend of the server that takes longest to start")
LONG = ("nessie-memory", "nessie-mongo", "nessie-rocksdb")
# Stacks differ in libraries, not in servers: one server is tested with a stack, whose PyIceberg reads it back.
WITH_A_STACK = "rest-jdbc-sqlite"
KINDS = [
    pytest.param(
        kind,
        id=name,
        marks=[SECOND] if name in LONG else [],
    )
    for name, kind in of_kind(CatalogSystem).items()
    if OF_A_STACK not in os.environ or name == WITH_A_STACK or issubclass(kind, LibraryCatalog)
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[CatalogSystem]:
    return request.param


@pytest.fixture
def tree() -> Tree:
    return Tree(2, f"test_{next(marks)}")


def send(system: CatalogSystem, request: Request) -> int:
    """Return the status of the answer to a request."""
    if isinstance(system, LibraryCatalog):
        return session_of(system).perform(request.kind.name, request.path, request.name, request.key)
    body = request.kind.body.replace(FILL, request.fill)
    return post(system, request.address(system.endpoint), body, request.kind.method)


def session_of(system: LibraryCatalog) -> Session:
    """Return the system's only session; open it if there is none."""
    if "test_session" not in system.__dict__:
        system.__dict__["test_session"] = system.open_session(system.given(), Contents(COLUMNS, PROPERTIES))
    session: Session = system.__dict__["test_session"]
    return session


def post(system: CatalogSystem, address: str, body: str, method: str = "POST") -> int:
    url = system.endpoint.base + address
    asked = urllib.request.Request(url, body.encode() or None, {"Content-Type": "application/json"}, method=method)
    try:
        with open_url(asked, 30) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def succeed(system: CatalogSystem, requests: Iterable[Request]) -> list[Request]:
    sent = list(requests)
    assert {request.kind.name: send(system, request) // 100 for request in sent} == {
        request.kind.name: 2 for request in sent
    }
    return sent


def able(kind: type[CatalogSystem], requests: Iterable[Request]) -> list[Request]:
    """Return those of `requests` that the system supports."""
    return [each for each in requests if kind.requests is None or each.kind.name in kind.requests]


def creations(tree: Tree) -> list[Request]:
    walk = Walk.of(tree)
    return [request for kind in CREATIONS for request in walk.all(kind)]


def churn(tree: Tree) -> list[Request]:
    """Return requests that create and drop two users' tables, in the order in which one user would send them."""
    settings = CatalogSettings(2, 1, "churn", 10, 1.0, 10.0, 5, 5, 2, 4, 0, 30.0)
    return [request for phase in phases(settings, tree, 1) for request in phase.requests]


def look_for(system: CatalogSystem, requests: Iterable[Request], outcome: str = ACKED) -> Finding:
    sent = list(requests)
    ledger = Ledger.of(sent, [outcome] * len(sent))
    if isinstance(system, LibraryCatalog):  # only one process may hold the database file open
        session_of(system).close()
        del system.__dict__["test_session"]
    return look(system.open_reader(), ledger, sent[0].path[:1], system.keeps_properties)


def test_describes_itself(kind: type[CatalogSystem]) -> None:
    assert kind.unavailable(kind.Options()) is None
    for text in (kind.name, kind.title, kind.format, kind.client, kind.catalog, kind.server, kind.backend):
        assert text.strip() == text != ""
    assert kind.durability.summary and kind.durability.source
    assert all(entity in kind.entities or kind.reasons[entity] for entity in Entity)


def test_acknowledged_objects_are_found_by_others(kind: type[CatalogSystem], opened: Opened, tree: Tree) -> None:
    """Create a tree, read each entity in every way and update it; another client finds all of it and nothing else."""
    system, walk = opened(kind), Walk.of(tree)
    before = system.counters()
    created = succeed(system, able(kind, creations(tree)))
    sizes = {Entity.NAMESPACE: tree.namespaces, Entity.TABLE: tree.tables, Entity.VIEW: tree.views}
    assert len(created) == sum(sizes.get(entity, 0) for entity in kind.entities) and set(sizes.values()) == {3, 4}
    succeed(system, able(kind, (request for each in READS for request in walk.all(each))))
    updated = succeed(system, able(kind, (request for each in UPDATES for request in walk.all(each, "Updated"))))
    if not kind.stores:
        return
    found = look_for(system, created + updated)
    assert found.holds, found.named
    assert found.found == found.expected == len(created) + len(updated)
    after = system.counters()
    assert all(after[name] > before[name] for name in after)
    files, size, database = system.stored()
    assert issubclass(kind, LibraryCatalog) or (files > 0 and size > 0) is kind.writes_files
    assert kind.volatile or (database or 0) > 0


def test_taken_name_and_missing_parent_are_refused(kind: type[CatalogSystem], opened: Opened, tree: Tree) -> None:
    if not kind.stores:
        pytest.skip("keeps nothing")
    system = opened(kind)
    root = Request(NAMESPACE, (tree.root,))
    table = Request(TABLE, (tree.root,), "T_0")
    succeed(system, [root, table])
    taken = [409 if again.kind.entity in system.refuses_taken else 200 for again in (root, table)]
    assert [send(system, again) for again in (root, table)] == taken
    made = [root, table]
    if isinstance(system, LibraryCatalog):  # a child needs no parent, and creating the parent may have been refused
        made += succeed(system, [Request(NAMESPACE, (tree.root, "refused", "child"))])
    found = look_for(system, made)
    assert found.holds, found.named
    orphan = send(system, Request(TABLE, (tree.root, "nobody"), "T_1"))
    assert orphan == (404 if kind.checks_parents else 200)


def test_snapshots_are_appended_unless_outdated(kind: type[CatalogSystem], opened: Opened, tree: Tree) -> None:
    """Send the load generator's commit; one that was overtaken is refused."""
    if not kind.stores or issubclass(kind, LibraryCatalog):
        pytest.skip("keeps nothing, or is not spoken to over HTTP")
    system = opened(kind)
    made = succeed(system, [Request(NAMESPACE, (tree.root,)), Request(TABLE, (tree.root,), "T_0")])
    address = Request(APPENDING, (tree.root,), "T_0").address(system.endpoint)

    def commit(seen: int | None, snapshot: int) -> int:
        body = json.loads(APPENDING.body)
        body["requirements"][0]["snapshot-id"] = seen
        added = body["updates"][0]["snapshot"] | {"snapshot-id": snapshot, "sequence-number": snapshot}
        added["timestamp-ms"] = int(time.time() * 1000)
        body["updates"][0]["snapshot"] = added | ({"parent-snapshot-id": seen} if seen else {})
        body["updates"][1]["snapshot-id"] = snapshot
        return post(system, address, json.dumps(body))

    assert [commit(None, 1), commit(1, 2), commit(1, 3)] == [200, 200, 409]
    appended = [Request(APPENDING, (tree.root,), "T_0", str(number)) for number in (1, 2)]
    found = look_for(system, made + appended)
    assert found.holds and found.found == 4, found.named  # two entities, two snapshots
    assert look_for(system, [*made, appended[0]]).phantom == 1
    assert look_for(system, [*made, *appended, Request(APPENDING, (tree.root,), "T_0", "3")]).lost_updates == 1


def test_commit_overtaken_by_another_client_is_refused(kind: type[CatalogSystem], opened: Opened, tree: Tree) -> None:
    """Let another client commit between the library's own reading and writing."""
    if not issubclass(kind, LibraryCatalog) or kind.requests is None or "append" not in kind.requests:
        pytest.skip("is spoken to over HTTP, or takes no snapshots")
    system = opened(kind)
    assert isinstance(system, LibraryCatalog)
    made = succeed(system, [Request(NAMESPACE, (tree.root,)), Request(TABLE, (tree.root,), "T_0")])
    appends = [Request(APPENDING, (tree.root,), "T_0", str(number)) for number in (1, 2, 3)]
    updates = [Request(UPDATES[1], (tree.root,), "T_0", key) for key in ("Mine", "Theirs")]
    other = system.open_session(system.given(), Contents(COLUMNS, PROPERTIES))
    catalog = session_of(system).__dict__["_catalog"]
    load = catalog.load_table

    def overtaken(by: Request, identifier: tuple[str, ...]) -> Any:
        catalog.load_table = load
        table = load(identifier)
        assert other.perform(by.kind.name, by.path, by.name, by.key) == 200
        return table

    succeed(system, appends[:1])
    for mine, theirs in ((appends[2], appends[1]), (updates[0], updates[1])):
        catalog.load_table = partial(overtaken, theirs)
        status = send(system, mine)
        assert status == (409 if mine is appends[2] else 200), session_of(system).said
    other.close()
    found = look_for(system, [*made, *appends[:2], *updates])
    assert found.holds and found.found == 6, found.named


def test_renamed_and_dropped_tables_are_found_as_such(kind: type[CatalogSystem], opened: Opened, tree: Tree) -> None:
    asked = churn(tree)
    able_to = able(kind, asked)
    assert able_to == asked, "every system here can; one that cannot is not asked for any of it"
    system = opened(kind)
    sent = succeed(system, [Request(NAMESPACE, (tree.root,)), *asked])
    if kind.stores:
        found = look_for(system, sent)
        assert found.holds, found.named
        assert found.found == found.expected == 2 + 2  # two namespaces, and the two of four tables that were kept


def test_oracle_finds_every_kind_of_difference(opened: Opened, tree: Tree) -> None:
    """Compare on a real server: entities that exist and were not acknowledged, and acknowledged ones that do not."""
    system = opened(of_kind(CatalogSystem)["rest-jdbc-sqlite"])
    created = succeed(system, creations(tree))
    more = Request(TABLE, (tree.root,), "Nobody")
    unheard = Request(UPDATES[1], created[3].path, created[3].name, "Unheard")
    assert look_for(system, created[:-1]).phantom == 1
    assert look_for(system, [*created, more]).lost == 1
    assert look_for(system, [*created, created[-1]]).doubled == 1
    assert look_for(system, [*created, unheard]).lost_updates == 1
    given: list[Any] = [*created, more, created[0]]
    ledger = Ledger.of(given, [ACKED] * len(created) + ["unknown", CONFLICT])
    found = look(system.open_reader(), ledger, (tree.root,))
    assert found.holds and (found.resolved_done, found.resolved_not) == (0, 1)
    wrong = Request(NAMESPACE, (tree.root, "Wrong"))
    url = system.endpoint.base + wrong.address(system.endpoint)
    body = json.dumps({"namespace": list(wrong.path)}).encode()
    open_url(urllib.request.Request(url, body, {"Content-Type": "application/json"}), 30).close()
    assert look_for(system, [*created, wrong]).wrong == 1


def test_servers_listen_on_loopback_only_and_expose_no_secret(
    kind: type[CatalogSystem], opened: Opened, servers: Servers
) -> None:
    opened(kind)
    running = [servers.get(each) for each in in_order(kind.needs_for(kind.Options()))]
    secrets = [each.bucket.secret_key for each in running if isinstance(each, InBucket)]
    secrets += [str(conninfo_to_dict(each.dsn)["password"]) for each in running if isinstance(each, Postgres)]
    pids = {pid: service for service in running for pid in service.pids()}
    listening = [each for each in psutil.net_connections("inet") if each.status == psutil.CONN_LISTEN]
    assert {each.laddr.ip for each in listening if each.pid in pids} <= {"127.0.0.1"}
    assert {pids[each.pid] for each in listening if each.pid in pids} == set(running)
    shown = [word for pid in pids for word in psutil.Process(pid).cmdline()]
    assert not [word for word in shown if any(secret in word for secret in secrets)]
    assert not [each.name for each in running if any(secret in each.log_path.read_text() for secret in secrets)]


def test_syncs_and_programs_of_an_update_are_as_declared(
    kind: type[CatalogSystem], opened: Opened, servers: Servers, tree: Tree, tmp_path: Path
) -> None:
    """Count with strace while one client updates a table repeatedly."""
    reason = strace.why_not()
    if reason is not None or not kind.stores:
        pytest.skip(reason or "keeps nothing")
    system = opened(kind)
    first = [Request(NAMESPACE, (tree.root,)), Request(TABLE, (tree.root,), "T_0")]
    first.append(Request(UPDATES[1], (tree.root,), "T_0", "before"))
    updates = [Request(UPDATES[1], (tree.root,), "T_0", f"key_{place}") for place in range(UPDATED)]
    kinds = in_order(kind.needs_for(kind.Options()))
    running = {each.name: servers.get(each) for each in kinds}
    if "postgres" in running:
        with running["postgres"].connect(autocommit=True) as connection:
            connection.execute("CHECKPOINT")
    with working(system, tmp_path, first, updates) as (client, work):
        traced = {name: service.pids() for name, service in running.items()} | client
        with strace.tracing(traced, tmp_path, CALLS) as files:
            began = time.time()
            work()
            ended = time.time()

    def counted(name: str) -> Counts:
        lines = files[name].read_text(errors="replace").splitlines()
        calls = [call for line in lines if (call := parse(line))]
        sessions = {call.pid for call in calls if call.name == strace.READS}
        background = {call.pid for call in calls} - sessions if name == "postgres" else set()
        return counts(calls, began, ended, UPDATED, background)

    for name in client:
        found, declared = counted(name), kind.durability.client_syncs_per_write
        assert declared.least <= found.syncs_per_write <= declared.most, (name, found)
    for each in kinds:
        found = counted(each.name)
        declared = kind.durability.server_syncs_per_write.get(each, NONE_PER_WRITE)
        assert declared.least <= found.syncs_per_write <= declared.most, (each.name, found)
        programs = kind.programs_per_write.get(each, NONE_PER_WRITE)
        assert programs.least <= found.programs_per_write <= programs.most, (each.name, found)


@contextmanager
def working(
    system: CatalogSystem, folder: Path, first: list[Request], then: list[Request]
) -> Iterator[tuple[dict[str, list[int]], Callable[[], None]]]:
    """Do `first`; yield the processes of a client that does the catalog's work itself, and a function for `then`."""
    if not isinstance(system, LibraryCatalog):
        succeed(system, first)
        yield {}, lambda: succeed(system, then) and None
        return
    asked = [Phase("update", "update", 1, (each,)) for each in first] + [Phase("update", "update", 1, tuple(then))]
    with Generator.of_library(folder, asked, system) as generator:
        until = time.monotonic() + 60
        assert None not in [generator.play(number, until) for number in range(len(first))]
        users = [each.pid for pid in generator.pids for each in psutil.Process(pid).children(recursive=True)]
        yield {"client": [*generator.pids, *users]}, lambda: generator.play(len(first), until) and None
        assert set(generator.played().columns["status"]) == {200}


@pytest.mark.parametrize(
    ("fault", "where", "found"),
    [
        ("swallow", "T_3", {"lost": 1, "lost_updates": 0}),
        ("twice", "T_3", {"phantom": 1}),
        ("hide", "T_3", {"lost": 1}),
        ("repeat", "T_3", {"doubled": 1}),
        ("drop", "Updated", {"lost_updates": 11}),
        ("swallow", "Renamed_1_0", {"lost": 1, "undead": 1}),
        ("keep", "Renamed_0_0", {"lost": 0, "undead": 1}),
    ],
)
def test_faulty_server_is_detected(opened: Opened, tree: Tree, fault: str, where: str, found: dict[str, int]) -> None:
    """Put a real server behind a proxy that loses, doubles or hides objects."""
    system = opened(of_kind(CatalogSystem)["rest-jdbc-sqlite"])
    walk = Walk.of(tree)
    with proxy(system.endpoint.base, fault, where) as address:
        system.__dict__["endpoint"] = replace(system.endpoint, base=address)
        sent = creations(tree)
        if fault == "drop":
            sent += [request for each in UPDATES for request in walk.all(each, "Updated")]
        if where.startswith("Renamed"):
            sent += churn(tree)
        succeed(system, sent)
        reader = PyIcebergReader(system.endpoint, address, "")
        finding = look(reader, Ledger.of(sent, [ACKED] * len(sent)), (tree.root,))
    assert not finding.holds
    assert {name: getattr(finding, name) for name in found} == found, finding


def test_durability_settings_are_read_back_from_the_backend(opened: Opened, tree: Tree) -> None:
    known = of_kind(CatalogSystem)
    assert opened(known["rest-jdbc-postgres"]).settings()["synchronous_commit"] == "on"
    for name, mode in (("rest-jdbc-sqlite", "delete"), ("rest-jdbc-sqlite-wal", "wal")):
        system = opened(known[name])
        succeed(system, [Request(NAMESPACE, (tree.root,))])
        assert system.settings()["journal_mode"] == mode


def test_phases_request_each_entity_once(tree: Tree) -> None:
    settings = CatalogSettings(8, 2, "create,read,update,race", 10, 1.0, 10.0, 5, 5, 2, 4, 0, 30.0)
    asked = phases(settings, tree, 1)
    steps = {phase.step: sum(len(each.requests) for each in asked if each.step == phase.step) for phase in asked}
    assert steps["create namespace"] == 3 and steps["create table"] == 4 and steps["race"] == 2 * 8
    assert steps["read"] == 3 * (3 + 4 + 4)
