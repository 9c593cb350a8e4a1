"""Client of a table in a process of its own, which can be killed; and that process, as a program.

    python -m tidemark.studies.ingest.load.separate

It reads a `ClientFactory`, pickled, and prints "ready". Then it reads calls, each a name of a method of `TableWriter`
and its arguments, pickled, and prints for each "did <the result, and the error, as JSON>".
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.errors import SystemFailure
from tidemark.systems.writers import ClientFactory, CommitStatus, IdempotencyKey, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.studies.ingest.load.crew import Program

PROGRAM = "tidemark.studies.ingest.load.separate"
GONE = "the client's process was killed"


@dataclass(frozen=True, slots=True)
class SeparateFactory(ClientFactory):
    """Factory of clients of `inner`, each in a process; `started` is called with the id of each."""

    inner: ClientFactory
    folder: Path
    started: Callable[[int], None]

    def open(self) -> SeparateWriter:
        return SeparateWriter(self)


class SeparateWriter(TableWriter):
    def __init__(self, factory: SeparateFactory) -> None:
        self._factory = factory
        self._program = self._start()

    def _start(self) -> Program:
        from tidemark.studies.ingest.load.crew import Program  # which the program itself does not need

        program = Program("the client", PROGRAM, self._factory.inner, self._factory.folder)
        program.heard("ready")
        self._factory.started(program.pid)
        return program

    def _ask(self, method: str, *arguments: object) -> Any:
        try:
            self._program.send(pickle.dumps((method, arguments)))
            result, error = json.loads(self._program.heard("did"))
        except SystemFailure:
            self._program.end()
            raise SystemFailure(GONE) from None
        if error:
            raise SystemFailure(error)
        return result

    def write(self, rows: pa.Table) -> None:
        self._ask("write", rows)

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        self._ask("write_known", rows, key)

    def has(self, key: IdempotencyKey) -> bool:
        return bool(self._ask("has", key))

    def commit_status(self, _error: Exception) -> CommitStatus:
        return CommitStatus.UNKNOWN

    def refresh(self) -> None:
        """Refresh the client's view of the table; start a process again that was killed."""
        if self._program.is_alive():
            self._ask("refresh")
        else:
            self._program = self._start()

    def close(self) -> None:
        self._program.end()


def main() -> None:
    writer = pickle.load(sys.stdin.buffer).open()
    print("ready", flush=True)
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        result, said = None, ""
        try:
            result = getattr(writer, method)(*arguments)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print("did", json.dumps([result, said]), flush=True)


if __name__ == "__main__":
    main()
