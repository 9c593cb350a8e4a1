"""Tests of the proxy and the judges of findings on lost answers: correct clients are not blamed, harmful ones are."""

from __future__ import annotations

import http.client
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from tidemark.paths import Workspace
from tidemark.pipeline.build import all_findings
from tidemark.pipeline.reproduce import reproduce
from tidemark.results.reference.findings import SCRIPTS, Evidence
from tidemark.software.stacks import PIPELINE

STATUSES = [200, 409]  # of the first delivery, and of each later one
PATH = "/table/commit"


def script(name: str) -> ModuleType:
    """Import a module of the findings folder, whose modules import each other by bare name."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(SCRIPTS))


@contextmanager
def server() -> Iterator[tuple[int, list[bytes]]]:
    """Run a server that accepts one commit and refuses all others; yield its port and the bodies that it received."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(STATUSES[min(len(got), len(STATUSES)) - 1])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    try:
        yield running.server_address[1], got
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def commit(port: int) -> int:
    """Send one commit and return its HTTP status, or 0 if no answer came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", PATH, b"rows")
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return 0
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("fault", "answer", "delivered", "next_answer"),
    [("", 200, 1, 409), ("lost", 0, 1, 409), ("cut", 0, 0, 200), ("twice", 409, 2, 409), ("late", 200, 1, 409)],
)
def test_proxy_applies_a_fault_to_one_request(fault: str, answer: int, delivered: int, next_answer: int) -> None:
    between: list[int] = []
    with server() as (port, got):
        proxy = script("http_proxy").Proxy("127.0.0.1", port)
        proxy.next_is(fault, f"^POST {PATH}$", lambda: between.append(len(got)))
        assert commit(proxy.port) == answer
        assert len(got) == delivered and set(got) <= {b"rows"}
        assert commit(proxy.port) == next_answer, "the fault is of one request"
    assert between == ([1] if fault in ("lost", "twice", "late") else [])
    assert [(hit["fault"], len(hit["server answered"])) for hit in proxy.hits] == (
        [(fault, delivered)] if fault else []
    )


def test_an_outage_lets_the_commit_through_and_refuses_the_next_until_it_is_over() -> None:
    during: list[int] = []
    with server() as (port, got):
        proxy = script("http_proxy").Proxy("127.0.0.1", port)
        over = threading.Event()
        proxy.next_is("outage", f"^POST {PATH}$", lambda: (during.append(commit(proxy.port)), over.set()))
        assert commit(proxy.port) == 0
        assert over.wait(10)
        while (status := commit(proxy.port)) == 503:
            pass
    assert during == [503] and len(got) == 2 and status == 409


def test_a_request_that_does_not_match_is_not_hit() -> None:
    with server() as (port, _):
        proxy = script("http_proxy").Proxy("127.0.0.1", port)
        proxy.next_is("cut", "^PUT /elsewhere$")
        assert commit(proxy.port) == 200
    assert proxy.hits == []


@pytest.mark.parametrize(
    ("outcome", "wrong", "right"),
    [
        ({"answers": ["acknowledged"], "a": 1, "b": 1, "right": 1}, False, True),
        ({"answers": ["acknowledged"], "a": 2, "b": 2, "right": 1}, True, False),
        ({"answers": ["acknowledged"], "a": 2, "b": 1, "right": 1}, False, False),  # only one reader has it twice
        ({"answers": ["acknowledged"], "a": 0, "b": 0, "right": 1}, False, False),  # lost: not this finding
        ({"answers": ["acknowledged"], "a": 1, "b": 1, "right": 0}, True, False),  # a deleted row is back
        ({"answers": ["Error"], "a": 2, "b": 2, "right": 1}, False, False),  # nothing was acknowledged
        ({"answers": ["Error", "acknowledged"], "applied": 2, "right": 1}, True, False),
    ],
)
def test_delta_rs_is_blamed_only_for_acknowledged_rows_that_all_readers_duplicate(
    outcome: dict[str, Any], wrong: bool, right: bool
) -> None:
    module = script("delta_own_commit")
    assert module.is_wrong(outcome) is wrong and module.is_right(outcome) is right


def once(name: str, workspace: Workspace) -> Evidence:
    """Run a finding's script once with the releases of the tests' own stack, and return its evidence."""
    (found,) = (each for each in all_findings() if each.id == name)
    assert found.script is not None
    here = replace(found, script=replace(found.script, stack=PIPELINE, also=()))
    return reproduce(workspace, here, 1, lambda _: None)


def test_delta_rs_commits_twice_and_a_careful_client_does_not(workspace: Workspace) -> None:
    (attempt,) = once("delta-own-commit", workspace).attempts
    assert attempt.seen, attempt.said
    assert attempt.said.endswith("14 of 14 right")


@pytest.mark.parametrize(
    ("name", "harmed", "whole"),
    [
        ("pyiceberg-no-retries", "0 of 2 tables", "4 of 4 controls are whole"),
        ("duckdb-iceberg-lost-answer", "0 of 3 tables", "2 of 2 controls are whole"),
    ],
)
def test_unaffected_earlier_release_is_not_blamed(name: str, harmed: str, whole: str, workspace: Workspace) -> None:
    (attempt,) = once(name, workspace).attempts
    assert not attempt.seen
    assert attempt.said.startswith(harmed) and attempt.said.endswith(whole), attempt.said


def test_java_client_is_blamed_and_its_later_release_is_not(workspace: Workspace) -> None:
    (attempt,) = once("iceberg-java-commit-twice", workspace).attempts
    assert attempt.seen, attempt.said
    assert attempt.said.endswith("4 of 4 controls, Iceberg 1.12.0 among them, are whole")
