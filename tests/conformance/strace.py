"""System calls of programs while they write, counted by strace: flushes to the disk, and programs started."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

import tidemark
from tidemark.services.base import Service
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import Child

from . import traced_client
from .traced_client import WRITES

# Each of these returns once its target is on the disk.
SYNCS = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync")
OPENS = ("open", "openat", "creat")
# Only those of PostgreSQL's processes that serve a client make this call; an autovacuum may sync meanwhile.
READS = "recvfrom"
CALLS = (*SYNCS, *OPENS, "pwritev2", "execve", READS)
TESTS = Path(__file__).parents[1]
ATTACH_SECONDS = 20.0
LINE = re.compile(r"^(?P<pid>\d+) +(?P<time>\d+\.\d+) (?P<call>\w+)\((?P<rest>.*)$")
PATH = re.compile(r"^-?\d+<(?P<path>/[^>]*)>")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call; `name` is the call's, with the flag if a file was opened or written synchronously."""

    pid: int
    time: float
    name: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Calls of one group of processes in one part of the writing."""

    writes: int
    syncs: Counter[str] = field(default_factory=Counter)
    paths: tuple[str, ...] = ()  # synced paths, one entry per sync
    programs: int = 0  # processes that executed another program
    background: int = 0  # syncs of PostgreSQL's background processes, which belong to no commit

    @property
    def syncs_per_write(self) -> float:
        return sum(self.syncs.values()) / self.writes

    @property
    def programs_per_write(self) -> float:
        return self.programs / self.writes


def parse(line: str) -> Call | None:
    """Parse a line of `strace -f -ttt -y`; return None for the second half of a call and for an irrelevant call."""
    found = LINE.match(line)
    if found is None:
        return None
    name, rest = found["call"], found["rest"]
    if name in OPENS or name == "pwritev2":
        flags = re.search(r"\b(O_DSYNC|O_SYNC|RWF_DSYNC|RWF_SYNC)\b", rest)
        if flags is None:
            return None
        name = f"{name} {flags[1]}"
    elif name == "msync" and "MS_SYNC" not in rest:
        return None
    path = PATH.match(rest)
    return Call(int(found["pid"]), float(found["time"]), name, path["path"] if path else None)


def counts(calls: Iterable[Call], began: float, ended: float, writes: int, background: Container[int] = ()) -> Counts:
    within = [call for call in calls if began <= call.time <= ended]
    made = [call for call in within if call.name not in ("execve", READS)]
    syncs = [call for call in made if call.pid not in background]
    # A process may try several paths for its program, and run a helper first.
    programs = {call.pid for call in within if call.name == "execve"}
    return Counts(
        writes,
        Counter(call.name for call in syncs),
        tuple(call.path for call in syncs if call.path),
        len(programs),
        len(made) - len(syncs),
    )


@cache
def why_not() -> str | None:
    """Return why nothing can be traced here, or None if tracing works."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    sleeper = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
    try:
        command = ["strace", "-f", "-ttt", "-y", "-e", "trace=" + ",".join(f"?{call}" for call in CALLS)]
        tracer = subprocess.Popen(
            [*command, "-p", str(sleeper.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + ATTACH_SECONDS
        while tracer.poll() is None and not _is_traced(sleeper.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        traced = tracer.poll() is None and _is_traced(sleeper.pid)
        tracer.send_signal(signal.SIGINT)
        _, said = tracer.communicate(timeout=ATTACH_SECONDS)
    finally:
        sleeper.kill()
        sleeper.wait()
    return None if traced else f"strace may not trace another process here: {said.strip()[-300:]}"


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _status(task: Path, key: str) -> str:
    try:
        lines = (task / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return next((line.split(":")[1].strip() for line in lines if line.startswith(f"{key}:")), "")


def _is_traced(pid: int) -> bool:
    return all(_status(task, "TracerPid") not in ("0", "") for task in _tasks(pid))


@contextmanager
def tracing(groups: Mapping[str, list[int]], directory: Path) -> Iterator[dict[str, Path]]:
    """Trace each group of processes, with threads and children, into a separate file, which is complete at the end.

    When the context ends, strace detaches from each process, and none is left stopped.
    """
    files = {name: directory / f"{name}.strace" for name in groups}
    with ExitStack() as stack:
        for name, pids in groups.items():
            command = ["strace", "-f", "-q", "-ttt", "-y", "-s", "8", "-o", str(files[name])]
            command += ["-e", "trace=" + ",".join(f"?{call}" for call in CALLS), "-e", "signal=none"]
            for pid in pids:
                command += ["-p", str(pid)]
            tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            stack.callback(_let_go, tracer, pids)
            deadline = time.monotonic() + ATTACH_SECONDS
            while not all(_is_traced(pid) for pid in pids):
                assert tracer.poll() is None, tracer.communicate()[1]
                assert time.monotonic() < deadline, f"strace did not attach to {name} {pids}"
                time.sleep(0.02)
        yield files


def _let_go(tracer: subprocess.Popen[str], pids: list[int]) -> None:
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.communicate(timeout=ATTACH_SECONDS)
    except subprocess.TimeoutExpired:
        # The kernel releases all processes that a tracer held when the tracer dies.
        tracer.kill()
        tracer.communicate()
    for pid in pids:
        for task in _tasks(pid):
            if _status(task, "State").startswith("T"):
                psutil.Process(pid).send_signal(signal.SIGCONT)


class _Sender(pickle.Pickler):
    """Pickler that sends running servers to another process: addresses and passwords, without their processes."""

    def reducer_override(self, value: object) -> Any:
        return (type(None), ()) if isinstance(value, Child) else NotImplemented


def trace_writes(
    system: str,
    options: Mapping[str, Any],
    services: Mapping[type[Service], Service],
    directory: Path,
    tools: Mapping[str, Path],
    more_syncs: int = 0,
) -> dict[str, dict[str, Counts]]:
    """Return the calls of the client ("client") and of each server (by name), in single writes and in batches.

    `services` are all servers involved, including those that a catalog server needs.
    """
    table = directory / "traced"
    table.mkdir()
    order = traced_client.Order(system, options, table, dict(services), more_syncs, tools)
    # The same sources as here, even if the environment would find others.
    environment = {**os.environ, "PYTHONPATH": str(Path(tidemark.__file__).parents[1])}
    command = [sys.executable, "-m", traced_client.__name__]
    with (
        (directory / "log").open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=TESTS, env=environment
        ) as client,
    ):
        assert client.stdin is not None and client.stdout is not None
        _Sender(client.stdin).dump(order)
        client.stdin.flush()

        def told() -> dict[str, Any]:
            assert client.stdout is not None
            line = client.stdout.readline()
            assert line, (directory / "log").read_text()[-3000:]
            return json.loads(line)

        for service in services.values():
            if isinstance(service, Postgres):
                # The next timed checkpoint, which would sync every file, is then minutes away.
                with service.connect(autocommit=True) as connection:
                    connection.execute("CHECKPOINT")
        groups = {"client": [told()["pid"]]} | {service.name: service.pids() for service in services.values()}
        with tracing(groups, directory) as files:
            client.stdin.write(b"go\n")
            client.stdin.flush()
            parts = [told() for _ in WRITES]
        assert told()["ids"] > 0 or system == "null"
        client.stdin.close()
        assert client.wait(60) == 0, (directory / "log").read_text()[-3000:]
    found = {}
    for name, file in files.items():
        calls = [call for line in file.read_text(errors="replace").splitlines() if (call := parse(line))]
        sessions = {call.pid for call in calls if call.name == READS}
        background = {call.pid for call in calls} - sessions if name == Postgres.name else set()
        found[name] = {
            part["part"]: counts(calls, part["began"], part["ended"], WRITES[part["part"]], background)
            for part in parts
        }
    return found
