"""`all` under smoke, observed from outside: the files that it leaves, the ports that it opens, the steps it repeats."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import psutil
import pyarrow.parquet as pq
import pytest
from tests.end_to_end.conftest import MakeSandbox
from tests.end_to_end.sandbox import SNAKEMAKE_LOG, Sandbox, changed_since, complete, file_times

SNAKEMAKES = ("Building DAG", "Select jobs", "Execute ", "rule ", "Finished jobid", "[")  # Snakemake's own lines
pytestmark = pytest.mark.alone(reason="it looks at the page cache, which other servers fill")

RATES = {"null": 200_000, "ducklake": 50_000, "ducklake-inlined-postgres": 20_000}  # events/s
SMOKE = {"protocol": "smoke", "systems": {name: {} for name in RATES}, "modes": ["batch"]}


@dataclass
class Observer:
    """Thread that inspects all processes of a sandbox a few times per second."""

    sandbox: Sandbox
    listening: set[tuple[str, str]] = field(default_factory=set)  # program, address
    arguments: set[str] = field(default_factory=set)
    passwords: set[str] = field(default_factory=set)
    open_folders: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)  # other processes that keep the servers' programs in memory

    def __enter__(self) -> Observer:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            programs: dict[int, str] = {}
            self.strangers |= {name for name in ("java", "postgres") if self._runs_elsewhere(name)}
            for process in self.sandbox.processes():
                with suppress(psutil.Error):
                    programs[process.pid] = process.name()
                    self.arguments.add(" ".join(process.cmdline()))
            for connection in psutil.net_connections("inet"):
                # A datagram socket accepts packets from any address unless it is connected; it has no state to query.
                open_to_all = connection.status == psutil.CONN_LISTEN or (connection.type == 2 and not connection.raddr)
                if connection.pid in programs and open_to_all:
                    self.listening.add((programs[connection.pid], connection.laddr.ip))
            for path in self.sandbox.work.rglob("*"):
                with suppress(OSError):
                    if path.name == ".pgpass":
                        self.passwords.add(path.read_text().strip().rsplit(":", 1)[1])
            for path in (self.sandbox.root / ".tidemark").rglob("*"):
                with suppress(OSError):
                    if path.is_dir() and path.stat().st_mode & 0o077 and not _behind_a_closed_door(self.sandbox, path):
                        self.open_folders.add(str(path))

    def _runs_elsewhere(self, name: str) -> bool:
        for process in psutil.process_iter(["name", "cwd"]):
            # A process that is ending has no folder any more, and keeps nothing in memory.
            place = process.info["cwd"]
            if process.info["name"] == name and place and not place.startswith(str(self.sandbox.root)):
                return True
        return False


def _behind_a_closed_door(sandbox: Sandbox, path: Path) -> bool:
    """Return True if a folder above `path`, up to the private one, denies access to others."""
    above = [folder for folder in path.parents if folder.is_relative_to(sandbox.root / ".tidemark")]
    return any(not folder.stat().st_mode & 0o077 for folder in above)


@dataclass(frozen=True)
class Done:
    sandbox: Sandbox
    result: CompletedProcess[str]
    seen: Observer


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Iterator[Done]:
    sandbox = make_sandbox(SMOKE)
    for name, rate in RATES.items():
        sandbox.know(name, rate)
    with Observer(sandbox) as seen:
        result = sandbox.run("all")
    yield Done(sandbox, result, seen)


def test_all_succeeds_and_leaves_the_planned_runs(done: Done) -> None:
    assert done.result.returncode == 0, done.result.stdout
    assert "3 of 3 series complete" in done.result.stdout
    assert [line for line in done.result.stdout.splitlines() if line.startswith(SNAKEMAKES)] == []
    assert len(done.result.stdout.splitlines()) < 30, done.result.stdout
    assert all(f"({number} of 3 series)" in done.result.stdout for number in range(1, 4))
    log = (done.sandbox.results / SNAKEMAKE_LOG).read_text()
    assert "Job stats:" in log and "Finished jobid" in log and "rule dataset:" in log
    assert list(complete(done.sandbox)) == []
    assert len(done.sandbox.runs()) == 6
    assert done.sandbox.left_running() == []


def test_run_has_three_consistent_files(done: Done) -> None:
    for name, run in done.sandbox.runs().items():
        folder = done.sandbox.results / name
        assert {path.name for path in folder.iterdir()} == {"operations.parquet", "machine.parquet", "run.json"}
        operations = pq.read_table(folder / "operations.parquet")
        assert operations.num_rows == run["operations"] > 0
        assert sum(operations["rows"].to_pylist()) == run["events"]
        assert sum(run["time_budget_ns"].values()) == run["elapsed_ns"]
        assert abs(run["time_budget_ns"]["rest"]) <= 0.01 * run["elapsed_ns"], "99 % is accounted for"
        assert run["dataset"]["synthetic"] is True
        applicable = run["series"]["system"] != "null"
        assert run["oracle"]["applicable"] is applicable
        if applicable:  # smoke: 100 commits and two seconds, or ten
            assert run["elapsed_ns"] >= 2e9 and (run["operations"] >= 100 or run["elapsed_ns"] >= 10e9), name


def test_run_0_is_cold_and_the_others_hot_with_proof(done: Done) -> None:
    shares = {}
    for name, run in done.sandbox.runs().items():
        proof = run["cold_proof"]
        sizes = proof["residency"].values()
        share = sum(group["resident_bytes"] for group in sizes) / sum(group["bytes"] for group in sizes)
        # These tests themselves keep client libraries in memory.
        servers = [group for name, group in proof["residency"].items() if name != "client libraries"]
        theirs = sum(group["resident_bytes"] for group in servers) / sum(group["bytes"] for group in servers)
        assert proof["boot_id"] and proof["uptime_s"] > 0, name
        assert run["cold"] == (run["run"] == 0)
        if run["cold"]:
            shares[name] = theirs
            assert (proof["verdict"] == "cold") == (share < 0.01), (name, proof)
        else:
            assert proof["verdict"] == "hot" and share > 0.90, (name, proof)
    if done.seen.strangers:
        pytest.skip(f"other processes keep these programs in memory: {', '.join(sorted(done.seen.strangers))}")
    assert max(shares.values()) < 0.01


def test_null_system_writes_almost_no_bytes(done: Done) -> None:
    """Exclude the topic that was filled before, its deletion, and the servers of an earlier series."""
    if done.seen.strangers:
        pytest.skip(f"other pipelines write to this disk: {', '.join(sorted(done.seen.strangers))}")
    for name, run in done.sandbox.runs().items():
        disk = run["disk"]
        if run["series"]["system"] == "null" and disk["device"] is not None:
            assert disk["left_bytes"] <= 1 << 20, (name, disk)
            assert disk["window_bytes"] + disk["sync_bytes"] - disk["stream_bytes"] < 1_000_000, (name, disk)


def test_run_records_its_code_and_its_machine(done: Done) -> None:
    plan = json.loads((done.sandbox.results / "plan.json").read_text())
    for name, run in done.sandbox.runs().items():
        assert run["tidemark"] == plan["tidemark"] and len(run["tidemark"]["harness"]) == 64, name
        assert run["machine"]["identity"] == plan["machine"]["identity"] != "", name
        assert run["first_write_ns"] > 0
    assert (done.sandbox.results / "plan.json").read_bytes() == (done.sandbox.root / ".tidemark/plan.json").read_bytes()


def test_run_0_records_page_cache_residency_at_window_open(done: Done) -> None:
    for name, run in done.sandbox.runs().items():
        opening = run["opening"]
        assert set(opening["apart"]) == {"kafka program", "kafka data", "stream"}
        decisive = {key: group for key, group in opening["residency"].items() if key not in opening["apart"]}
        whole = sum(group["bytes"] for group in decisive.values())
        share = sum(group["resident_bytes"] for group in decisive.values()) / whole if whole else None
        assert opening["residency"]["stream"]["bytes"] > 0, name
        if share is None:
            assert opening["verdict"] == "unknown" and run["series"]["system"] == "null"
        elif run["cold"]:
            assert share < 0.5 and (opening["verdict"] == "cold") == (share < 0.01), (name, opening)
        else:
            assert opening["verdict"] == "hot", (name, opening)


def test_tables_and_figures_are_made(done: Done) -> None:
    for kind in ("tables", "figures"):
        assert json.loads((done.sandbox.results / kind / "index.json").read_text())
    assert (done.sandbox.results / "metrics.duckdb").stat().st_size > 0


def test_nothing_listens_beyond_loopback(done: Done) -> None:
    assert {program for program, _ in done.seen.listening} >= {"java", "postgres"}, "the servers were seen"
    assert {address for _, address in done.seen.listening} == {"127.0.0.1"}


def test_passwords_are_in_no_argument_list_and_no_kept_file(done: Done) -> None:
    assert len(done.seen.passwords) >= 2, "each PostgreSQL has its own"
    kept = [
        path for folder in (".tidemark", "results", ".snakemake") for path in (done.sandbox.root / folder).rglob("*")
    ]
    for password in done.seen.passwords:
        assert len(password) >= 24
        assert not any(password in line for line in done.seen.arguments)
        assert password not in done.result.stdout
        assert [str(path) for path in kept if path.is_file() and password.encode() in path.read_bytes()] == []


def test_private_folders_are_private(done: Done) -> None:
    assert done.seen.open_folders == set()
    assert (done.sandbox.root / ".tidemark").stat().st_mode & 0o777 == 0o700


def test_second_all_runs_nothing(done: Done) -> None:
    before = file_times(done.sandbox.results)
    again = done.sandbox.run("all")
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout
    assert changed_since(done.sandbox, before) == {SNAKEMAKE_LOG}


def test_series_are_listed_in_their_order(done: Done) -> None:
    *listed, last = done.sandbox.run("list", "series").stdout.splitlines()
    assert last == "tidemark: nothing is left to measure"
    names = [line.split()[1:3] for line in listed]
    assert names == [[series["system"], series["id"].split("/")[2]] for series in done.sandbox.plan()]
    assert listed and all("complete" in line and "2 of 2 runs" in line for line in listed)
