"""Tests of the load generator: real Locust users against the server that answers at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from tidemark.config import ServicesConfig
from tidemark.errors import MachineError
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.own import NullCatalog
from tidemark.software.tools import provide_tool, tool_python
from tidemark.studies.catalogs.record import ACKED, UNKNOWN
from tidemark.studies.catalogs.requests import KINDS, Phase, Request
from tidemark.studies.catalogs.window.generator import TOOL, Generator, Played
from tidemark.studies.catalogs.window.samples import CatalogWindow
from tidemark.systems.catalogs.base import Endpoint

GET = KINDS["get table"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[NullCatalog]:
    assert cache
    if sys.prefix.startswith("/nix/store"):
        pytest.skip("the check of the flake has what the study on streams runs from alone")
    workspace = Workspace(tmp_path_factory.mktemp("generator"))
    provide_tool(TOOL, workspace)
    with NullCatalog.from_config(ServiceContext(workspace, workspace.work / "null", ServicesConfig())) as service:
        yield service


def asked(count: int, users: int, part: str = "read", due_s: tuple[float, ...] | None = None) -> Phase:
    return Phase(part, part, users, tuple(Request(GET, ("a",), f"t{place}") for place in range(count)), due_s)


def generator(server: NullCatalog, folder: Path, phases: list[Phase], timeout_s: float = 5.0) -> Generator:
    endpoint = Endpoint(server.uri)
    return Generator.of_rest(tool_python(TOOL, server.workspace), folder, phases, endpoint, timeout_s)


def played(server: NullCatalog, folder: Path, phases: list[Phase]) -> tuple[Played, list[int]]:
    with generator(server, folder, phases) as started:
        took = [started.play(number, time.monotonic() + 60) for number in range(len(phases))]
        assert None not in took
        return started.played(), [each for each in took if each is not None]


def test_every_request_is_sent_once_by_the_given_number_of_users(server: NullCatalog, tmp_path: Path) -> None:
    phases = [asked(40, 8), asked(3, 8), asked(20, 1)]
    found, took = played(server, tmp_path, phases)
    window = CatalogWindow(phases, elapsed_ns=sum(took))
    window.take(found)
    assert window.operations == window.rows == 63
    assert set(window.columns["outcome"]) == {ACKED} and set(found.columns["status"]) == {200}
    users = window.columns["user"]
    assert set(users[:40]) == set(range(8)) and set(users[43:]) == {0}
    assert 2 <= window.in_flight <= 8
    starts, ends = window.columns["start_ns"], window.columns["start_ns"] + window.columns["elapsed_ns"]
    assert ends[:40].max() <= starts[40:43].min() and ends[40:43].max() <= starts[43:].min()
    assert (np.diff(starts[43:]) >= window.columns["elapsed_ns"][43:-1]).all()


def test_open_loop_response_counts_from_the_due_time(server: NullCatalog, tmp_path: Path) -> None:
    """One user cannot send several due requests at once: waiting ones are late, which their response time includes."""
    due = (0.0, 0.0, 0.0, 0.0, 0.2, 0.3)
    phases = [asked(6, 1, "open-50", due)]
    found, took = played(server, tmp_path, phases)
    window = CatalogWindow(phases, elapsed_ns=took[0])
    window.take(found)
    late, response = window.columns["late_ns"], window.columns["response_ns"]
    assert (response == window.columns["elapsed_ns"] + late).all()
    assert late[1] < late[2] < late[3] and late[3] >= window.columns["elapsed_ns"][:3].sum()
    assert took[0] >= 0.3e9 and (window.columns["start_ns"][4:] >= np.array([0.2e9, 0.3e9])).all()


def test_users_of_a_ramp_start_one_by_one(server: NullCatalog, tmp_path: Path) -> None:
    """The first begins at once; a phase that is done before the next user is due does not wait for it."""
    long, short = replace(asked(20_000, 3), ramp=True), replace(asked(6, 3), ramp=True)
    found, took = played(server, tmp_path, [long, short])
    starts, users = (np.array(found.columns[name]) for name in ("start_ns", "user"))
    first = {user: (starts[:20_000][users[:20_000] == user] - found.began_ns[0]).min() for user in set(users[:20_000])}
    assert first[0] < first[1] and first[1] >= 1e9 and first.get(2, 2e9) >= 2e9, first
    # On a machine so busy that six requests take a second, the next user is due before they are done.
    assert (took[1] < 1e9) == (set(users[20_000:]) == {0})


def test_failed_request_is_retried_only_in_a_ramp(server: NullCatalog, tmp_path: Path) -> None:
    """Namespaces are tried five more times after the first, as in the report, and other requests are not retried."""
    left = {"/once": 1, "/always": 100}

    class Failing(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

        def do_GET(self) -> None:
            name = "/" + self.path.rpartition("/")[2]
            left[name] = left.get(name, 0) - 1
            self.send_response(500 if left[name] >= 0 else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as failing:
        threading.Thread(target=failing.serve_forever, daemon=True).start()
        requests = tuple(Request(GET, ("a",), name) for name in ("fine", "once", "always"))
        phases = [Phase("create-ramp", "create-ramp", 1, requests, ramp=True), asked(1, 1)]
        phases[1] = replace(phases[1], requests=(Request(GET, ("a",), "always"),))
        endpoint = Endpoint(f"http://127.0.0.1:{failing.server_address[1]}")
        with Generator.of_rest(tool_python(TOOL, server.workspace), tmp_path, phases, endpoint, 5) as started:
            for number in range(2):
                started.play(number, time.monotonic() + 30)
            columns = started.played().columns
        failing.shutdown()
    assert columns["attempts"] == [1, 2, 6, 1] and columns["status"] == [200, 200, 500, 500]


def test_unanswered_request_has_an_unknown_outcome(tmp_path: Path, server: NullCatalog) -> None:
    """The port has no listener."""
    folder, phases = tmp_path, [asked(3, 1)]
    python = tool_python(TOOL, server.workspace)
    closed = Generator.of_rest(python, folder, phases, Endpoint("http://127.0.0.1:9"), 2)
    with closed as started:
        started.play(0, time.monotonic() + 30)
        window = CatalogWindow(phases, elapsed_ns=1)
        window.take(started.played())
    assert set(window.columns["outcome"]) == {UNKNOWN} and window.rows == 0
    assert len(window.said) == 3 and "get table" in window.said[0]


def test_phase_can_be_abandoned_and_a_crash_is_reported_with_its_log(server: NullCatalog, tmp_path: Path) -> None:
    phases = [asked(2, 1, "open-50", (0.0, 60.0)), asked(1, 1)]
    with generator(server, tmp_path, phases) as started:
        assert started.play(0, time.monotonic() + 0.5) is None
        assert not started.has_ended()
        os.kill(started.pids[0], signal.SIGKILL)
        with pytest.raises(MachineError, match=r"load generator ended on its own. Its log, .*load-generator.log"):
            started.play(1, time.monotonic() + 5)
    assert started.pids == []


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('no', flush=True); input()", "sent 'no' where 'ready' was expected"),
        ("input()", "did not say 'ready' in time"),
        ("raise SystemExit('reason')", "ended on its own"),
    ],
)
def test_failed_start_is_reported(program: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.studies.catalogs.window.generator.READY_S", 0.3 if program == "input()" else 60)
    started = Generator([sys.executable, "-c", program], tmp_path, {})
    with pytest.raises(MachineError, match=rf"the load generator {said}\. Its log, .*load-generator\.log"), started:
        pass
    assert started.pids == []
