"""A program in a separate process that exchanges lines with this one, in turns, over its standard input and output."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidemark.errors import SystemFailure, TidemarkError
from tidemark.services.programs.process import tail

READY_S = 120.0


class Worker:
    """Running program whose errors go to a log; `end` stops it, and `command` must not let it outlive its parent."""

    def __init__(
        self,
        name: str,
        command: Sequence[object],
        log: Path,
        error: type[TidemarkError] = SystemFailure,
        **options: Any,
    ) -> None:
        """Start `command`; `name` is used in messages, of exceptions of the type `error`. `options` go to Popen."""
        self.name, self.log = name, log
        self._error, self._said = error, b""
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, **options
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def tell(self, *words: object) -> None:
        self.send(f"{' '.join(map(str, words))}\n".encode())

    def send(self, data: bytes) -> None:
        """Send `data`; raise the failure if the program has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError as error:
            raise self.ended() from error

    def line(self, deadline: float | None) -> str | None:
        """Return its next line, or None if none comes by `deadline`, in seconds of time.monotonic, if there is one."""
        assert self.process.stdout is not None
        while b"\n" not in self._said:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                raise self.ended()
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    def hear(self, expected: str, deadline: float) -> str | None:
        """Return the rest of its next line after the words `expected`, or None if no line comes by `deadline`."""
        line = self.line(deadline)
        if line is None:
            return None
        if not f"{line} ".startswith(f"{expected} "):
            raise self.failure(f"sent {line!r} where '{expected}' was expected")
        return line[len(expected) + 1 :]

    def heard(self, expected: str, deadline: float | None = None, late: str | None = None) -> str:
        """Return what `hear` does; raise an error if no line comes by `deadline`, by default in READY_S seconds.

        The message of that error is `late` if given, otherwise the failure.
        """
        rest = self.hear(expected, time.monotonic() + READY_S if deadline is None else deadline)
        if rest is None:
            raise self._error(late) if late else self.failure(f"did not say '{expected}' within {READY_S:.0f} s")
        return rest

    def ended(self) -> TidemarkError:
        return self.failure("ended on its own")

    def failure(self, happened: str) -> TidemarkError:
        """Return an exception with the program's name, what happened, and the end of its log."""
        text = tail(self.log) or "(it is empty)"
        return self._error(f"{self.name} {happened}. Its log, {self.log}, ends:\n{text}")

    def end(self) -> None:
        """Kill the process, wait for it, and close its pipes; safe to call twice."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
