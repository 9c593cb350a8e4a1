"""The client's process, controlled by the harness: requests have timeouts, and the process is reliably stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tidemark.errors import SystemFailure
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.worker import Worker
from tidemark.systems.bulk.base import BulkTable, program

START_S = 60.0


class Client(Worker):
    """Context manager of the client's process; entering it loads the libraries, on the processors that it may use."""

    def __init__(self, system: BulkTable, processors: Collection[int], folder: Path) -> None:
        self._is_over = False
        threads = {"OMP_NUM_THREADS": str(len(processors))}
        super().__init__(
            "the client",
            launched([system.python, "-I", program()]),
            folder / "client.log",
            env=server_environment(HOME=str(folder), **threads, **system.environment()),
            cwd=folder,
        )
        self._order = system.order(processors)
        self.versions: dict[str, str] = {}

    def is_alive(self) -> bool:
        """Return whether the process is running; also True after it was stopped on purpose."""
        return self._is_over or super().is_alive()

    def write(self, source: Path, keys: Sequence[str], address: str, timeout_s: float) -> dict[str, Any]:
        """Let the client write the rows of the file `source`, with these `keys`, as a new table; return its answer."""
        return self._ask({"do": "write", "source": str(source), "keys": list(keys), "at": address}, timeout_s)

    def read(self, address: str, keep: Path | None, timeout_s: float) -> dict[str, Any]:
        """Let the client read the complete table, and store it in the file `keep` if given; return its answer."""
        return self._ask({"do": "read", "at": address, "keep": str(keep) if keep else None}, timeout_s)

    def kill(self) -> None:
        """Kill the process; any thread may call."""
        self._is_over = True
        self.process.kill()

    def _ask(self, question: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        self.tell(json.dumps(question))
        if (line := self.line(time.monotonic() + timeout_s)) is None:
            raise self.failure(f"did not answer within {timeout_s:g} s")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SystemFailure(f"the client could not {question.get('do', 'begin')}: {answer['error']}")
        return answer

    def __enter__(self) -> Client:
        self.versions = self._ask(self._order, START_S)["versions"]
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.end()
