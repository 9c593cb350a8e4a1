"""The client's process, controlled by the harness: requests have timeouts, and the process is reliably stopped."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidemark.errors import SystemFailure
from tidemark.services.programs.process import LAUNCHER, server_environment, tail
from tidemark.systems.bulk.base import BulkTable, program

START_S = 60.0
LOOK_S = 0.5


class Client:
    """Context manager of the client's process; entering it loads the libraries, on the processors that it may use."""

    def __init__(self, system: BulkTable, processors: Collection[int], folder: Path) -> None:
        self._log = folder / "client.log"
        self._said = b""
        self._is_over = False
        command = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), "-"]
        command += [str(system.python), "-I", str(program())]
        threads = {"OMP_NUM_THREADS": str(len(processors))}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=server_environment(HOME=str(folder), **threads, **system.environment()),
                cwd=folder,
            )
        self._order = system.order(processors)
        self.versions: dict[str, str] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process is running; also True after it was stopped on purpose."""
        return self._is_over or self._process.poll() is None

    def write(self, source: Path, keys: Sequence[str], address: str, timeout_s: float) -> dict[str, Any]:
        """Let the client write the rows of the file `source`, with these `keys`, as a new table; return its answer."""
        return self._ask({"do": "write", "source": str(source), "keys": list(keys), "at": address}, timeout_s)

    def read(self, address: str, keep: Path | None, timeout_s: float) -> dict[str, Any]:
        """Let the client read the complete table, and store it in the file `keep` if given; return its answer."""
        return self._ask({"do": "read", "at": address, "keep": str(keep) if keep else None}, timeout_s)

    def kill(self) -> None:
        """Kill the process; any thread may call."""
        self._is_over = True
        self._process.kill()

    def _ask(self, question: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._failure("ended on its own") from error
        answer = self._hear(timeout_s)
        if "error" in answer:
            raise SystemFailure(f"the client could not {question.get('do', 'begin')}: {answer['error']}")
        return answer

    def _hear(self, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._said:
            if select.select([self._process.stdout], [], [], LOOK_S)[0]:
                more = os.read(self._process.stdout.fileno(), 1 << 16)
                if not more:
                    raise self._failure("ended on its own")
                self._said += more
            elif time.monotonic() > deadline:
                raise self._failure(f"did not answer within {timeout_s:g} s")
        line, _, self._said = self._said.partition(b"\n")
        return json.loads(line)  # type: ignore[no-any-return]

    def _failure(self, happened: str) -> SystemFailure:
        said = tail(self._log) or "(it is empty)"
        return SystemFailure(f"the client {happened}. Its log, {self._log}, ends:\n{said}")

    def __enter__(self) -> Client:
        self.versions = self._ask(self._order, START_S)["versions"]
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
