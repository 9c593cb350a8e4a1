"""Control of the load generator's process: pass it an order, start it phase by phase, and stop it reliably."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.code import PACKAGE
from tidemark.errors import MachineError
from tidemark.paths import Workspace
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.worker import Worker
from tidemark.software.tools import tool_python
from tidemark.studies.catalogs.requests import FILL, KINDS, LISTING, MOST_ATTEMPTS, MOST_RETRIES, Phase, Request
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


def _in_order(phases: Sequence[Phase], written: Callable[[Request], list[Any]]) -> list[dict[str, Any]]:
    """Return the phases of an order, each request as `written` for the program that reads it."""
    return [
        {
            **{name: getattr(phase, name) for name in ("users", "due_s", "own", "ramp")},
            "requests": list(map(written, phase.requests)),
        }
        for phase in phases
    ]


class Generator:
    """Load generator as a context manager; call `play` once per phase, then `played`."""

    def __init__(self, program: Sequence[str | Path], folder: Path, order: Mapping[str, Any]) -> None:
        """Write the order to `folder`. `program` is the environment's interpreter and the program that reads it."""
        self._result, self._stopping = folder / "played.json", folder / "stopping"
        path = folder / "order.json"
        path.write_text(json.dumps({**order, "stopping": str(self._stopping)}))
        self._command = launched([*program, path, self._result])
        self._folder = folder
        self._cancelled = False
        self._worker: Worker | None = None

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
        numbers = {name: number for number, name in enumerate(KINDS)}
        order = {
            "base": endpoint.base,
            "headers": {"Content-Type": "application/json", **endpoint.headers},
            "timeout_s": timeout_s,
            "fill": FILL,
            "most_attempts": MOST_ATTEMPTS,
            "most_retries": MOST_RETRIES,
            "listing": LISTING.name,
            "kinds": [[kind.name, kind.method, kind.body] for kind in KINDS.values()],
            "phases": _in_order(phases, lambda each: [numbers[each.kind.name], each.address(endpoint), each.fill]),
        }
        return cls([python, "-I", player], folder, order)

    @classmethod
    def of_library(cls, folder: Path, phases: Sequence[Phase], system: LibraryCatalog) -> Generator:
        """Return a generator with one process per user, in this environment, for a catalog without a server."""
        asked = _in_order(phases, lambda each: [each.kind.name, each.path, each.name, each.key])
        order = {"system": system.name, "given": dict(system.given()), "phases": asked}
        return cls([sys.executable, "-m", LIBRARY], folder, order)

    def __enter__(self) -> Generator:
        self._worker = Worker(
            "the load generator",
            self._command,
            self._folder / "load-generator.log",
            MachineError,
            env=server_environment(HOME=str(self._folder), PYTHONPATH=str(PACKAGE.parent)),
            cwd=self._folder,
        )
        try:
            self._heard("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    @property
    def pids(self) -> list[int]:
        return [] if self._worker is None else [self._worker.pid]

    def has_ended(self) -> bool:
        return self._worker is not None and not self._worker.is_alive()

    def cancel(self) -> None:
        """Make `play` return; called from another thread."""
        self._cancelled = True

    def let_stop(self) -> None:
        """From now on, end a user's phase if its request gets no answer or a server error (5xx)."""
        self._stopping.touch()

    def play(self, number: int, deadline: float) -> int | None:
        """Play phase `number`; return its nanoseconds, or None if it was abandoned or missed the deadline."""
        assert self._worker is not None
        self._worker.tell("go", number)
        while (took := self._worker.hear(f"done {number}", time.monotonic() + LOOK_S)) is None:
            if self._cancelled or time.monotonic() > deadline:
                return None
        return int(took)

    def played(self) -> Played:
        self._heard("written")
        found: dict[str, Any] = json.loads(self._result.read_text())
        return Played(found["columns"], found["began_ns"], tuple(found["said"]))

    def _heard(self, expected: str) -> None:
        assert self._worker is not None
        deadline = time.monotonic() + READY_S
        while self._worker.hear(expected, time.monotonic() + LOOK_S) is None:
            if self._cancelled or time.monotonic() > deadline:
                raise self._worker.failure(f"did not say '{expected}' in time")
