"""A process that a series needs dies in an open window, or the disk is full: only that series fails, with a reason."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import MakeSandbox
from .sandbox import MEASURE_ONLY, Sandbox, finish, wait_for, words_of

# Tables and figures after every fault would take most of the time; one test makes them.


def faulty(like: str, window_seconds: float = 30) -> dict[str, Any]:
    """Return a configuration with one system that will fail and one that must not be affected."""
    return {
        "protocol": "faults",
        "protocols": {"faults": {"window_seconds": window_seconds, "runs": 1}},
        "systems": {"faulty": {"like": like}, "bystander": {"like": "null"}},
        "modes": ["single"],
        "cold": "none",
    }


@pytest.fixture(scope="module")
def sandbox(make_sandbox: MakeSandbox) -> Sandbox:
    made = make_sandbox(faulty("ducklake"))
    made.know("faulty", 2_000)
    return made


def in_its_window(sandbox: Sandbox) -> Callable[[], bool]:
    """Return a predicate that is true while the window of the system that is to fail is open."""

    def look() -> bool:
        position = sandbox.position()
        return position is not None and "faulty" in position.series.name and sandbox.in_window()

    return look


def fail(
    sandbox: Sandbox, break_it: Callable[[], object], *arguments: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run `all`, call `break_it` in the faulty system's window, and return the results of `all` and of that series."""
    process = sandbox.start("all", *arguments)
    wait_for("the window", in_its_window(sandbox), process)
    break_it()
    wait_for("the end of the window", lambda: sandbox.outcomes().get("faulty/single"), process)
    result = finish(process)
    outcome = sandbox.outcomes()["faulty/single"]
    return result, outcome


def check_failure(
    sandbox: Sandbox, result: subprocess.CompletedProcess[str], outcome: dict[str, Any], exit_code: int, *said: str
) -> None:
    """Check that the series failed with its own exit code and reason, counts no run, and the other one is complete."""
    assert result.returncode == outcome["exit_code"] == exit_code, result.stdout
    assert outcome["status"] == "failed" and outcome["runs"] == []
    assert outcome["reason"].startswith("run 0 of faulty single: ")
    for words in said:
        assert words in outcome["reason"]
    last = result.stdout.splitlines()[-1]
    reason = outcome["reason"].splitlines()[0].removesuffix(", ends with:")
    assert last.startswith(f"tidemark: faulty single: failed: {reason}") and "measure.log" in last
    assert result.stdout.count("tidemark: faulty single: failed: ") == 1
    assert "1 of 2 series complete, 1 failed" in result.stdout
    assert "Traceback" not in result.stdout
    assert sandbox.outcomes()["bystander/single"]["status"] == "complete"
    assert sandbox.counted("faulty") == [] and len(sandbox.counted("bystander")) == 1
    assert sandbox.left_running() == []
    assert list(sandbox.work.iterdir()) == []


def log_named(outcome: dict[str, Any], name: str) -> Path:
    """Return the log that the reason names, which must exist."""
    found = next(word.rstrip(".,;") for word in outcome["reason"].split() if name in word)
    assert Path(found).is_file(), found
    return Path(found)


@dataclass(frozen=True, slots=True)
class Victim:
    """Process that is killed in the window of one series, and how that series then fails."""

    like: str
    word: str  # in its command line
    exit_code: int
    reason: str
    log: str


VICTIMS = {
    "database": Victim(
        "ducklake", "bin/postgres", 5, "PostgreSQL ended on its own (killed by SIGKILL)", "postgres.log"
    ),
    "broker": Victim("ducklake", "kafka.Kafka", 5, "Kafka ended on its own (killed by SIGKILL)", "kafka.log"),
    "catalog": Victim(
        "iceberg-pyiceberg",
        "LoopbackCatalogServer",
        5,
        "Iceberg REST catalog ended on its own (killed by SIGKILL)",
        "iceberg-rest.log",
    ),
    "producer": Victim("ducklake", "tidemark.stream.producer", 6, "the producer died (exit status -9)", "producer.log"),
}


@pytest.fixture(scope="module")
def killed(make_sandbox: MakeSandbox) -> tuple[Sandbox, subprocess.CompletedProcess[str]]:
    """Run one pipeline in which each series loses a process; the windows would outlast the wait for their failure."""
    sandbox = make_sandbox(
        faulty("null", window_seconds=600) | {"systems": {n: {"like": v.like} for n, v in VICTIMS.items()}}
    )
    for name in VICTIMS:
        sandbox.know(name, 50)
    process = sandbox.start("all", *MEASURE_ONLY)
    left = dict(VICTIMS)

    def in_a_window() -> str | None:
        position = sandbox.position()
        names = [name for name in left if position and f"-{name}-" in position.series.name]
        return names[0] if names and sandbox.in_window() else None

    while left:
        name = wait_for("a window", in_a_window, process)
        sandbox.server(left.pop(name).word).kill()
        wait_for("the failure", lambda name=name: f"{name}/single" in sandbox.outcomes(), process)
    return sandbox, finish(process)


@pytest.mark.parametrize("name", VICTIMS)
def test_killed_process_fails_only_its_series(
    killed: tuple[Sandbox, subprocess.CompletedProcess[str]], name: str
) -> None:
    (sandbox, result), victim = killed, VICTIMS[name]
    outcome = sandbox.outcomes()[f"{name}/single"]
    assert outcome["status"] == "failed" and outcome["runs"] == [] and outcome["exit_code"] == victim.exit_code
    assert outcome["reason"].startswith(f"run 0 of {name} single: ") and victim.reason in outcome["reason"]
    assert log_named(outcome, victim.log).stat().st_size > 0 or name == "producer"
    reason = outcome["reason"].splitlines()[0].removesuffix(", ends with:")
    assert result.stdout.count(f"tidemark: {name} single: failed: {reason}") == 1
    assert sandbox.counted(name) == []


def test_pipeline_goes_on_after_each_killed_process(
    killed: tuple[Sandbox, subprocess.CompletedProcess[str]],
) -> None:
    sandbox, result = killed
    first = sandbox.outcomes()[sandbox.plan()[0]["system"] + "/single"]
    assert result.returncode == first["exit_code"], result.stdout
    assert "0 of 4 series complete, 4 failed" in result.stdout and "Traceback" not in result.stdout
    assert sandbox.left_running() == [] and list(sandbox.work.iterdir()) == []


def test_death_at_the_end_of_a_window_is_noticed_and_only_that_series_repeated(sandbox: Sandbox) -> None:
    """Discard the run although everything that this short window needs was in memory already."""
    sandbox.configure(faulty("null", window_seconds=1))
    result, outcome = fail(sandbox, lambda: sandbox.server("kafka.Kafka").kill(), *MEASURE_ONLY)
    check_failure(sandbox, result, outcome, 5, "Kafka ended on its own (killed by SIGKILL)")
    before = sandbox.runs()
    again = sandbox.run("all", *MEASURE_ONLY)
    assert again.returncode == 0, again.stdout
    assert sandbox.outcomes()["faulty/single"]["status"] == "complete"
    after = sandbox.runs()
    assert after.keys() - before.keys() == {
        str(Path(run).relative_to(sandbox.results)) for run in sandbox.counted("faulty")
    }
    assert before and all(after[name] == run for name, run in before.items())


def test_round_goes_on_with_new_servers_after_one_was_killed(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(
        faulty("ducklake", window_seconds=5)
        | {
            "protocols": {"faults": {"window_seconds": 3, "runs": 2, "rounds": 1}},
            "systems": {name: {"like": "ducklake"} for name in ("first", "second", "third")},
        }
    )
    for name in ("first", "second", "third"):
        sandbox.know(name, 200)
    log = sandbox.results / "logs" / "streams-block-01-thesis"
    the_round = ("--until", "series_streams_block_01_thesis")
    process = sandbox.start("all", *the_round)

    def in_the_second_window() -> str | None:
        done = [path.parent.parent for path in sandbox.results.glob("runs/*/*/*/*/run-1/run.json")]
        return done[0].parent.parent.name if done and sandbox.in_window() else None

    complete = wait_for("the second window", in_the_second_window, process)
    sandbox.server("bin/postgres").kill()
    result = finish(process)
    assert result.returncode == 5 and "2 of 6 series complete, 1 failed" in result.stdout, result.stdout
    of_round = [each for each in sandbox.plan() if each["repeat"] == 1]
    outcomes = {
        each["system"]: json.loads((sandbox.root / each["directory"] / "outcome.json").read_text()) for each in of_round
    }
    (failed,) = (name for name, outcome in outcomes.items() if outcome["status"] == "failed")
    assert list(outcomes).index(failed) == 1 and list(outcomes).index(complete) == 0
    assert "PostgreSQL ended on its own (killed by SIGKILL)" in outcomes[failed]["reason"]
    assert log_named(outcomes[failed], "postgres.log").parent == log
    before = sandbox.runs()
    again = sandbox.run("all", *the_round)
    assert again.returncode == 0 and "3 of 6 series complete, 3 not measured" in again.stdout, again.stdout
    new = sandbox.runs().keys() - before.keys()
    assert [run.split("/")[2] for run in new] == [failed] and all(sandbox.runs()[run] == before[run] for run in before)
    assert sandbox.left_running() == [] and list(sandbox.work.iterdir()) == []


def test_run_of_a_halted_measuring_process_is_repeated(sandbox: Sandbox) -> None:
    """Repeat only for the halt: the limits on other work of this machine are too high to be reached.

    Meanwhile a file of the code is edited, which the halted run states, and not the next one: its process is another.
    """
    most = {"foreign_cores": 100.0, "steal_cores": 100.0, "gap_seconds": 0.5, "disk_share": 1e6, "retries": 1}
    sandbox.configure({**faulty("ducklake", window_seconds=8), "disturbance": most})
    process = sandbox.start("all", *MEASURE_ONLY)
    wait_for("the window", in_its_window(sandbox), process)
    number = max(each.pid for each in sandbox.processes() if "measure" in words_of(each))  # the child of the two
    os.kill(number, signal.SIGSTOP)
    with (sandbox.root / "src/tidemark/measure/oracle.py").open("a") as file:
        file.write("# a remark\n")
    time.sleep(5)
    os.kill(number, signal.SIGCONT)
    result = finish(process)
    assert result.returncode == 0, result.stdout
    outcome = sandbox.outcomes()["faulty/single"]
    (kept,) = outcome["disturbed"]
    assert [why for why in kept["reasons"] if "the process that measures was halted for" in why], kept
    (counted,) = sandbox.counted("faulty")
    run = sandbox.runs()[str(Path(counted).relative_to(sandbox.results))]
    assert not [why for why in run["interference"]["disturbed"] if "halted" in why]
    changed = "the code changed while it was measured"
    (halted,) = Path(counted).parent.glob("disturbed/run-0-1/run.json")
    assert changed in json.loads(halted.read_text())["marks"] and changed not in run["marks"]


@pytest.fixture
def small_disk(sandbox: Sandbox) -> Iterator[Path]:
    """Yield the folder of servers and tables, on a separate file system of 300 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    sandbox.work.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300m,mode=0700", "tidemark-test", sandbox.work],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine does not let root mount a tmpfs: {mounted.stderr.strip()}")
    yield sandbox.work
    subprocess.run(["umount", "--lazy", sandbox.work], check=True)


def fill(filler: Path) -> None:
    """Fill every block of the file system that `filler` lies on."""
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            while True:  # then less than a megabyte at a time
                try:
                    file.write(bytes(4096))
                except OSError:
                    return


@pytest.mark.long(reason="the next test fills the disk as well, after a run that is kept")
def test_full_disk_ends_the_series_with_its_own_exit_code(sandbox: Sandbox, small_disk: Path) -> None:
    filler = small_disk / "filler"
    sandbox.configure(faulty("delta-rs"))
    try:
        result, outcome = fail(sandbox, lambda: fill(filler), *MEASURE_ONLY)
    finally:
        filler.unlink(missing_ok=True)
    check_failure(sandbox, result, outcome, 9, "no room left on the device")


def test_finished_run_is_kept_if_the_next_one_fills_the_disk(sandbox: Sandbox, small_disk: Path) -> None:
    filler = small_disk / "filler"
    short = {"protocols": {"faults": {"window_seconds": 1, "runs": 2}}}
    sandbox.configure({**faulty("ducklake"), **short})
    before = set(sandbox.counted("faulty"))  # of the plan of an earlier test, until there is a new one
    process = sandbox.start("all", *MEASURE_ONLY)
    try:
        wait_for("the first run's files", lambda: set(sandbox.counted("faulty")) - before, process)
        fill(filler)
        result = finish(process)
    finally:
        filler.unlink(missing_ok=True)
    outcome = sandbox.outcomes()["faulty/single"]
    assert result.returncode == outcome["exit_code"] == 9, result.stdout
    assert outcome["status"] == "failed" and outcome["runs"] == [0]
    assert "no room left on the device" in outcome["reason"]
    again = sandbox.run("all", *MEASURE_ONLY)
    assert again.returncode == 0, again.stdout
    outcome = sandbox.outcomes()["faulty/single"]
    assert outcome["status"] == "complete" and outcome["runs"] == [0, 1]
    assert [attempt["status"] for attempt in outcome["attempts"]] == ["failed", "complete"]


def test_second_pipeline_is_refused_and_ctrl_c_leaves_no_process_and_no_partial_result(sandbox: Sandbox) -> None:
    sandbox.configure(faulty("ducklake"))
    process = sandbox.start("all", *MEASURE_ONLY)
    wait_for("the window", in_its_window(sandbox), process)
    second = sandbox.run("all", *MEASURE_ONLY)
    assert second.returncode == 10
    assert f"(process {process.pid})" in second.stdout and str(sandbox.root) in second.stdout
    assert process.poll() is None, "the first goes on"
    os.killpg(process.pid, signal.SIGINT)
    result = finish(process, 60)
    assert result.returncode == 130, result.stdout
    assert "Traceback" not in result.stdout, result.stdout
    assert "interrupted" in result.stdout
    assert sandbox.left_running() == []
    assert "faulty/single" not in sandbox.outcomes()
    assert sandbox.counted("faulty") == []
    assert [str(path) for path in sandbox.results.glob("runs/**/.*")] == []


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, reason="SIGHUP is ignored here, as under nohup")
def test_closed_terminal_ends_the_pipeline_as_ctrl_c_does(sandbox: Sandbox) -> None:
    sandbox.configure(faulty("ducklake"))
    process = sandbox.start("all", *MEASURE_ONLY)
    wait_for("the window", in_its_window(sandbox), process)
    process.send_signal(signal.SIGHUP)
    result = finish(process, 60)
    assert result.returncode == 130, result.stdout
    assert "interrupted; finished runs are kept" in result.stdout and "Traceback" not in result.stdout
    assert sandbox.left_running() == []


def test_killed_snakemake_is_reported_and_leaves_nothing_elsewhere(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    sandbox.configure(faulty("ducklake"))
    process = sandbox.start("all", *MEASURE_ONLY)
    wait_for("the window", in_its_window(sandbox), process)
    sandbox.server("tidemark.pipeline.launch").kill()
    result = finish(process, 60)
    assert result.returncode == 1, result.stdout
    assert "tidemark: Snakemake: failed: it was ended by SIGKILL" in result.stdout.splitlines()[-1]
    assert sandbox.left_running() == []
    left = sandbox.root / ".tidemark/snakemake"
    before = set(left.iterdir())
    assert before and list(tmp_path.glob("snakemake*")) == []
    assert sandbox.run("all", "--dry-run").returncode == 0
    assert before.isdisjoint(left.iterdir())


def test_low_limit_on_open_files_is_reported_before_start(sandbox: Sandbox) -> None:
    process = sandbox.start("all", *MEASURE_ONLY)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (64, 64))
    result = finish(process, 60)
    assert result.returncode == 13, result.stdout
    assert result.stdout.splitlines()[-1].startswith("tidemark: found a limit of 64 open files for a process")
    assert "Traceback" not in result.stdout


def test_unwritable_results_are_reported(sandbox: Sandbox) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a file system that cannot be written needs root")
    sandbox.results.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tidemark-test", str(sandbox.results)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        result = sandbox.run("all", *MEASURE_ONLY)
    finally:
        subprocess.run(["umount", "--lazy", sandbox.results], check=True)
    assert result.returncode == 13, result.stdout
    assert result.stdout.splitlines()[-1].startswith(f"tidemark: {sandbox.results}: Read-only file system; ")
    assert "Traceback" not in result.stdout
