"""The process of a producer, from the side of the harness: it answers commands with lines of JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tidemark import without_pandas
from tidemark.errors import StreamError
from tidemark.services.programs.worker import Worker


class ProducerProcess(Worker):
    """Running producer, whose log is in `directory`; its failures name that log, and are StreamErrors."""

    def __init__(self, module: str, directory: Path, *arguments: object) -> None:
        """Start `module`, in this process's environment; `arguments` are those of its command line."""
        command = [sys.executable, "-m", without_pandas.NAME, module, *arguments]
        super().__init__("the producer", command, directory / "producer.log")

    def answer(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Return its next answer; raise StreamError if that is an error, or if there is none after `timeout_s`."""
        line = self.line(None if timeout_s is None else time.monotonic() + timeout_s)
        if line is None:
            raise self.failure("is not done")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise self.failure(f"failed: {reply['error']}")
        return reply

    def ended(self) -> StreamError:
        return self.failure(f"died (exit status {self.process.wait()})")

    def failure(self, happened: str) -> StreamError:
        return StreamError(f"{self.name} {happened}; its log is {self.log}")
