"""Writers of a window, and next to them a process that maintains their table and one that reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tidemark.studies.ingest.load.crew import DRAIN_S, Program, WorkerPool
from tidemark.studies.ingest.load.writer import WorkerConfig
from tidemark.studies.ingest.maintenance.compactor import Call, Upkeep
from tidemark.studies.ingest.maintenance.row_counter import Polls
from tidemark.studies.ingest.parts import KEEPER, READER
from tidemark.systems.writers import ClientFactory

KEEPING = "tidemark.studies.ingest.maintenance.compactor"
WATCHING = "tidemark.studies.ingest.maintenance.row_counter"


class MaintainedPool(WorkerPool):
    """Writers with a reader, and a maintainer unless `upkeep` is None; `calls` and `polls` are known after `write`."""

    def __init__(
        self, orders: Sequence[WorkerConfig], client_factory: ClientFactory, upkeep: Upkeep | None, folder: Path
    ) -> None:
        super().__init__(orders, folder)
        self._factory, self._upkeep = client_factory, upkeep
        self._beside: list[Program] = []
        self.calls: list[Call] = []
        self.polls = Polls()

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._beside.append(Program(READER, WATCHING, self._factory, self._folder))
            if self._upkeep is not None:
                self._beside.append(Program(KEEPER, KEEPING, self._upkeep, self._folder))
            for program in self._beside:
                program.heard("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for program in self._beside:
            program.end()

    def beside(self, name: str) -> list[int]:
        """Return the pid of the process `name`, READER or KEEPER, in a list; [] if there is none."""
        return [program.pid for program in self._beside if program.name == name]

    def has_failed(self) -> bool:
        return super().has_failed() or any(program.process.poll() not in (None, 0) for program in self._beside)

    @property
    def _together(self) -> Sequence[Program]:
        return [*self._beside, *self._members]

    def write(self, seconds: float) -> int | None:
        written = super().write(seconds)
        if written is None:
            return None
        found: list[Any] = []
        for program in self._beside:
            late = f"the process '{program.name}' did not return within {DRAIN_S:.0f} s of the window's end"
            found.append(json.loads(program.heard("done", time.monotonic() + DRAIN_S, late)))
        self.polls = Polls(**found[0])
        self.calls = [Call(**call) for calls in found[1:] for call in calls]
        return written
