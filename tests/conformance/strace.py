"""System calls of programs while they write, counted by strace: flushes to the disk, and programs started."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tidemark
from tidemark.machine.strace import OPENS, READS, SYNCS, tracing
from tidemark.services.base import Service
from tidemark.services.postgres import Postgres

from . import traced_client
from .traced_client import WRITES

CALLS = (*SYNCS, *OPENS, "pwritev2", "execve", READS)
TESTS = Path(__file__).parents[1]
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
        client.stdin.write(pickle.dumps(order))
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
        with tracing(groups, directory, CALLS) as files:
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
