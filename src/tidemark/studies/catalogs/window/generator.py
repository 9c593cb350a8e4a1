"""Control of the load generator's process: pass it an order, start it phase by phase, and stop it reliably."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.code import PACKAGE
from tidemark.errors import MachineError
from tidemark.paths import Workspace
from tidemark.services.programs.process import LAUNCHER, server_environment, tail
from tidemark.software.tools import tool_python
from tidemark.studies.catalogs.requests import FILL, KINDS, LISTING, MOST_ATTEMPTS, MOST_RETRIES, Phase
from tidemark.systems.catalogs.base import CatalogSystem, Endpoint
from tidemark.systems.catalogs.library import LibraryCatalog

TOOL = "locust"
PLAYER = "tidemark.studies.catalogs.window.player"
LIBRARY = "tidemark.studies.catalogs.window.library"
READY_S = 60.0
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Played:
    """Results of an order's requests, in its order: columns of equal length, and some answers as text."""

    columns: dict[str, list[int]]
    began_ns: list[int]
    said: tuple[str, ...]


def _way(phase: Phase) -> dict[str, Any]:
    return {name: getattr(phase, name) for name in ("users", "due_s", "own", "ramp")}


def _for_rest(phases: Sequence[Phase], endpoint: Endpoint, timeout_s: float) -> dict[str, Any]:
    """Return the order that `player` reads."""
    numbers = {name: number for number, name in enumerate(KINDS)}
    return {
        "base": endpoint.base,
        "headers": {"Content-Type": "application/json", **endpoint.headers},
        "timeout_s": timeout_s,
        "fill": FILL,
        "most_attempts": MOST_ATTEMPTS,
        "most_retries": MOST_RETRIES,
        "listing": LISTING.name,
        "kinds": [[kind.name, kind.method, kind.body] for kind in KINDS.values()],
        "phases": [
            {
                **_way(phase),
                "requests": [[numbers[each.kind.name], each.address(endpoint), each.fill] for each in phase.requests],
            }
            for phase in phases
        ],
    }


def _for_library(phases: Sequence[Phase], system: LibraryCatalog) -> dict[str, Any]:
    """Return the order that `library` reads."""
    return {
        "system": system.name,
        "given": dict(system.given()),
        "phases": [
            {
                **_way(phase),
                "requests": [[each.kind.name, each.path, each.name, each.key] for each in phase.requests],
            }
            for phase in phases
        ],
    }


class Generator:
    """Load generator as a context manager; call `play` once per phase, then `played`."""

    def __init__(self, program: Sequence[str | Path], folder: Path, order: Mapping[str, Any]) -> None:
        """Write the order to `folder`. `program` is the environment's interpreter and the program that reads it."""
        self._result, self._log = folder / "played.json", folder / "load-generator.log"
        self._stopping = folder / "stopping"
        path = folder / "order.json"
        path.write_text(json.dumps({**order, "stopping": str(self._stopping)}))
        self._command = [sys.executable, "-I", "-S", LAUNCHER, os.getpid(), "-", *program, path, self._result]
        self._folder = folder
        self._cancelled = False
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of(
        cls, system: CatalogSystem, private: Path, folder: Path, phases: Sequence[Phase], timeout_s: float
    ) -> Generator:
        """Return the generator for `system`; `private` is the workspace's private folder, `folder` this order's."""
        if isinstance(system, LibraryCatalog):
            return cls.of_library(folder, phases, system)
        return cls.of_rest(tool_python(TOOL, Workspace(private.parent)), folder, phases, system.endpoint, timeout_s)

    @classmethod
    def of_rest(
        cls, python: Path, folder: Path, phases: Sequence[Phase], endpoint: Endpoint, timeout_s: float
    ) -> Generator:
        """Return a generator of Locust users for a server; `python` is the interpreter of Locust's environment."""
        player = Path(__file__).with_name(f"{PLAYER.rpartition('.')[2]}.py")
        return cls([python, "-I", player], folder, _for_rest(phases, endpoint, timeout_s))

    @classmethod
    def of_library(cls, folder: Path, phases: Sequence[Phase], system: LibraryCatalog) -> Generator:
        """Return a generator with one process per user, in this environment, for a catalog without a server."""
        return cls([sys.executable, "-m", LIBRARY], folder, _for_library(phases, system))

    def __enter__(self) -> Generator:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(word) for word in self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=server_environment(HOME=str(self._folder), PYTHONPATH=str(PACKAGE.parent)),
                cwd=self._folder,
            )
        self._said = b""
        try:
            self._hear(time.monotonic() + READY_S, "ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()

    @property
    def pids(self) -> list[int]:
        return [] if self._process is None else [self._process.pid]

    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def cancel(self) -> None:
        """Make `play` return; called from another thread."""
        self._cancelled = True

    def let_stop(self) -> None:
        """From now on, end a user's phase if its request gets no answer or a server error (5xx)."""
        self._stopping.touch()

    def play(self, number: int, deadline: float) -> int | None:
        """Play phase `number`; return its nanoseconds, or None if it was abandoned or missed the deadline."""
        self._tell(f"go {number}\n")
        words = self._hear(deadline, "done", str(number))
        return int(words[2]) if words else None

    def played(self) -> Played:
        self._hear(time.monotonic() + READY_S, "written")
        found: dict[str, Any] = json.loads(self._result.read_text())
        return Played(found["columns"], found["began_ns"], tuple(found["said"]))

    def _tell(self, line: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError as error:
            raise self._failure("ended on its own") from error

    def _hear(self, deadline: float, *expected: str) -> list[str]:
        """Return the words of the next line; [] if "done" is late or abandoned. Raises MachineError for all else."""
        assert self._process is not None and self._process.stdout is not None
        while b"\n" not in self._said:
            if select.select([self._process.stdout], [], [], LOOK_S)[0]:
                more = os.read(self._process.stdout.fileno(), 4096)
                if not more:
                    raise self._failure("ended on its own")
                self._said += more
            elif self._cancelled or time.monotonic() > deadline:
                if expected[0] != "done":
                    raise self._failure(f"did not say '{expected[0]}' in time")
                return []
        line, _, self._said = self._said.partition(b"\n")
        words = line.decode().split()
        if words[: len(expected)] != list(expected):
            raise self._failure(f"sent {line.decode()!r} where '{' '.join(expected)}' was expected")
        return words

    def _failure(self, happened: str) -> MachineError:
        said = tail(self._log) or "(it is empty)"
        return MachineError(f"the load generator {happened}. Its log, {self._log}, ends:\n{said}")
