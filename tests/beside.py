"""What runs beside the other tests: the flake's verification, tests without servers, of stacks, engines and servers.

Tests that start servers wait for them most of the time, and leave one processor of two idle. What runs beside is to
take about as long as the rest: how long it took stands with what it said.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

FLAKE, REST, ENGINES = "flake", "rest", "engines"  # what they are called
STACKS, SERVICES = "stacks", "services"  # folders, too
OF_THE_FLAKE, OF_THE_OTHERS = "test_the_flake", "test_what_ran_beside_passed"  # the tests that wait for them
SERVERLESS = ("analysis", "cli", "dataset", "results", "runs", "software", "stream", "studies")  # folders of REST
OF_ENGINES = ("conformance/test_lakehouses.py", "services/test_spark.py")  # files of ENGINES: Spark's
LET_GO_S = 30


class Beside:
    """Commands, one after the other, in the background; what each says is kept until somebody asks for it."""

    def __init__(self, directory: Path, commands: dict[str, Sequence[str | Path]]) -> None:
        """`commands` by name, run in `directory` in this order."""
        self._directory, self._commands = directory, commands
        self._said = {name: tempfile.TemporaryFile() for name in commands}  # noqa: SIM115 - closed by `stop`
        self._ended = {name: Event() for name in commands}
        self._codes: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._thread = Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Once."""
        self._thread.start()

    def __contains__(self, name: str) -> bool:
        return name in self._commands

    def end(self, name: str) -> tuple[int, str]:
        """The exit code of a command, once it has ended, and what it said."""
        self._ended[name].wait()
        said = self._said[name]
        said.seek(0)
        return self._codes[name], said.read().decode(errors="replace")

    def seconds(self, name: str) -> float:
        """How long a command took that has ended."""
        return self._seconds[name]

    def stop(self) -> None:
        """End what is under way and all that it started; nothing more begins."""
        self._stopped = True
        process = self._process
        if process is not None and process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(LET_GO_S)
        if self._thread.is_alive():
            self._thread.join(LET_GO_S)
        for said in self._said.values():
            said.close()

    def _run(self) -> None:
        for name, command in self._commands.items():
            if not self._stopped:
                began = time.monotonic()
                self._process = subprocess.Popen(
                    command,
                    cwd=self._directory,
                    stdin=subprocess.DEVNULL,
                    stdout=self._said[name],
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self._codes[name] = self._process.wait()
                self._seconds[name] = time.monotonic() - began
                self._ended[name].set()
