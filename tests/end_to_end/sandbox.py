"""A copy of the repository in which complete pipelines run, observed from outside."""

from __future__ import annotations

import csv
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.tiers import QUICK_JVM

from tidemark.runs.spec import SeriesSpec
from tidemark.schema import sections

REPOSITORY = Path(__file__).parents[2]
MEASURE_ONLY = ("--omit-from", "database")  # no results are made
SNAKEMAKE_LOG = "logs/snakemake.log"
NOT_COPIED = {".venv", ".git", ".tidemark", ".snakemake", "data", "results", "__pycache__"}


def repository_files() -> list[Path]:
    """Return files that git tracks or would track, relative to the repository; without git, all except NOT_COPIED."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        return [Path(name.decode()) for name in listed.stdout.split(b"\0") if name]
    found = []
    for parent, folders, names in os.walk(REPOSITORY):
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        found += [Path(parent, name).relative_to(REPOSITORY) for name in names]
    return found


@dataclass(frozen=True, slots=True)
class Position:
    """Progress of the series that runs now, from the numbers that it shares with its producer."""

    series: Path
    produced: int
    consumed: int
    ended: bool  # the window is over


class Sandbox:
    """Separate workspace below `root`, with `config.yaml` as given."""

    def __init__(self, root: Path, cache: Path, config: dict[str, Any]) -> None:
        self.root, self.cache = root, cache
        compiled = [path.relative_to(REPOSITORY) for path in REPOSITORY.glob("src/**/*.pyc")]  # valid: times are kept
        for name in (*repository_files(), *compiled):
            source, target = REPOSITORY / name, root / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        with (root / "src/tidemark/services/programs/java.py").open("a") as file:  # as in tests/conftest.py
            file.write(f"COMMON_OPTIONS += ({QUICK_JVM!r},)\n")
        self.configure(config)

    def configure(self, config: dict[str, Any]) -> None:
        """Write config.yaml; keys of the section of the study `streams` may be given next to the others."""
        small = {"source": "synthetic", "synthetic_rows": 20_000}
        once = {"retries": 0}  # the observer of a pipeline disturbs it
        whole = {"dataset": small, "disturbance": once, **config}
        streams = {key: whole.pop(key) for key in tuple(whole) if key in sections()["streams"]["properties"]}
        whole |= {"streams": streams} if streams else {}
        (self.root / "config.yaml").write_text(json.dumps(whole))  # JSON is YAML

    def know(self, system: str, events_per_s: float) -> None:
        """Record the rate of a system in both modes as if measured here before, so that nothing is probed."""
        path = self.root / ".tidemark/rates.json"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        known |= {f"events/s thesis {system} {mode}": events_per_s for mode in ("single", "batch-1000")}
        path.write_text(json.dumps(known))

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def work(self) -> Path:
        return self.root / ".tidemark" / "work"

    def start(self, *arguments: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start `tidemark` with `arguments`, as leader of a new process group; its output must be read from a pipe."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "TIDEMARK_CACHE": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, "-m", "tidemark", *arguments],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, timeout_s: float = 1_500) -> subprocess.CompletedProcess[str]:
        """Run `tidemark` with `arguments` to its end; its output is in `stdout`."""
        process = self.start(*arguments)
        return finish(process, timeout_s)

    def processes(self) -> list[psutil.Process]:
        """Return every process that works in this folder or names it, regardless of its parent."""
        here, found = str(self.root), []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                inside = process.cwd().startswith(here) or any(here in word for word in process.cmdline())
                if inside and process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
                    found.append(process)
        return found

    def left_running(self, patience_s: float = 15) -> list[str]:
        """Return descriptions of the sandbox's processes that still run after `patience_s`."""
        deadline = time.monotonic() + patience_s
        while (found := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [f"{process.pid} {' '.join(words_of(process))[:200]}" for process in found]

    def plan(self) -> list[dict[str, Any]]:
        """Return the series that the last `all` planned; an empty list before the first one."""
        path = self.root / ".tidemark/plan.json"
        series: list[dict[str, Any]] = json.loads(path.read_text())["series"] if path.exists() else []
        return series

    def runs(self) -> dict[str, dict[str, Any]]:
        """Return the content of every existing run.json, by the run's path from the results folder."""
        return {
            str(path.parent.relative_to(self.results)): json.loads(path.read_text())
            for path in sorted(self.results.glob("runs/*/*/*/*/run-*/run.json"))
        }

    def table(self, study: str, name: str) -> list[dict[str, str]]:
        """Return the rows of a table that the pipeline made, by their columns."""
        with (self.results / "tables" / study / f"{name}.csv").open() as file:
            return list(csv.DictReader(file))

    def counted(self, system: str) -> list[str]:
        """Return the runs of `system` that the last `all` would count."""
        folders = [self.root / series["directory"] for series in self.plan() if series["system"] == system]
        return [str(run) for folder in folders for run in folder.glob("run-*")]

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """Return the outcome of each series, by `system/mode`; series without an outcome are left out."""
        found = {}
        for series in self.plan():
            path = self.root / series["directory"] / "outcome.json"
            if path.exists():
                _, system, mode, _ = series["id"].split("/")
                found[f"{system}/{mode}"] = json.loads(path.read_text())
        return found

    def position(self) -> Position | None:
        """Return the position of the series that runs now, or None if none does."""
        for counters in self.work.glob("*/counters"):
            with suppress(OSError, ValueError), counters.open("rb") as file:
                with mmap.mmap(file.fileno(), 24, access=mmap.ACCESS_READ) as numbers:
                    produced, consumed, stop = memoryview(numbers[:24]).cast("q")
                return Position(counters.parent, produced, consumed, bool(stop))
        return None

    def in_window(self) -> bool:
        position = self.position()
        return position is not None and position.consumed > 0 and not position.ended

    def server(self, word: str) -> psutil.Process:
        """Return the outermost process that has `word` in its command line."""
        found = [process for process in self.processes() if any(word in part for part in words_of(process))]
        numbers = {process.pid for process in found}
        return next(process for process in found if process.ppid() not in numbers)


def words_of(process: psutil.Process) -> list[str]:
    """Return its command line; empty once it has ended, as short-lived ones do between being listed and queried."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def finish(process: subprocess.Popen[str], timeout_s: float = 1_500) -> subprocess.CompletedProcess[str]:
    """Wait for `process` and read all its output; after `timeout_s` kill its group and fail the test."""
    try:
        said, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        kill_group(process)
        said, _ = process.communicate()
        raise AssertionError(f"not done after {timeout_s} s; it said:\n{said}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, said, "")


def kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def wait_for(what: str, condition: Callable[[], object], process: subprocess.Popen[str], timeout_s: float = 600) -> Any:
    """Return the result of `condition` once that is true; fail if `process` ends or the time is up before."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        if process.poll() is not None or time.monotonic() > deadline:
            kill_group(process)
            said = process.communicate()[0]
            raise AssertionError(f"never seen: {what}; the pipeline said:\n{said}")
        time.sleep(0.03)
    return found


def complete(sandbox: Sandbox) -> Iterator[str]:
    """Yield each fault of the results: missing planned runs, unplanned runs, failed verdicts and leftovers."""
    cannot_run = {name for name, outcome in sandbox.outcomes().items() if outcome["status"] == "not-run"}
    expected = {
        f"{series['directory'].removeprefix('results/')}/run-{number}"
        for series in sandbox.plan()
        if "/".join(series["id"].split("/")[1:3]) not in cannot_run
        for number in runs_of(sandbox, series)
    }
    found = sandbox.runs()
    for name in sorted(expected ^ set(found)):
        yield f"{name}: {'missing' if name in expected else 'not planned'}"
    for name, run in found.items():
        if run["oracle"]["verdict"] is not True or run["oracle"]["expected"] != run["events"]:
            yield f"{name}: oracle {run['oracle']}"
    for name, outcome in sandbox.outcomes().items():
        if outcome["status"] == "failed":
            yield f"{name}: {outcome}"
    for path in sandbox.results.rglob("*"):
        if path.name.startswith(".") and path.name != ".snakemake_timestamp":
            yield f"{path}: left behind"
    if list(sandbox.work.iterdir()):
        yield f"{sandbox.work}: not empty"


def runs_of(sandbox: Sandbox, series: dict[str, Any]) -> range:
    return SeriesSpec.read(sandbox.root / series["directory"] / "spec.json").numbers


def changed_since(sandbox: Sandbox, before: dict[str, int]) -> set[str]:
    """Return the files of the results that were changed, removed or added."""
    after = file_times(sandbox.results)
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return {str(Path(path).relative_to(sandbox.results)) for path in paths}


def file_times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
