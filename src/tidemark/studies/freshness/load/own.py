"""Tidemark's consumer with the interface of a pipeline, so that it gets the same kills as the others."""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tidemark.errors import SystemFailure
from tidemark.machine.processes import cpu_seconds
from tidemark.services.programs.process import tail
from tidemark.studies.freshness.load.consumer import Order
from tidemark.studies.freshness.settings import Policy
from tidemark.systems.sinks.base import Source
from tidemark.systems.tables import TableSystem

PROGRAM = "tidemark.studies.freshness.load.consumer"
READY_SECONDS = 60.0
LOOK_SECONDS = 0.2
EXACTLY_ONCE = "it goes on with the event that the table's number of rows names"


class OwnConsumer:
    """Process that reads one topic and writes one table through the table's client."""

    def __init__(self, directory: Path, encoding: str, policy: Policy) -> None:
        self._directory, self._log = directory, directory / "consumer.log"
        self._encoding, self._policy = encoding, policy
        self._process: subprocess.Popen[bytes] | None = None
        self._order: Order | None = None
        self._table: TableSystem | None = None
        self._ended_seconds = 0.0

    def start(self, source: Source, table: TableSystem) -> None:
        """Start at the topic's first event; return once the client is open."""
        self._table = table
        self._order = Order(
            door=table.door(),
            bootstrap=source.bootstrap,
            topic=source.topic,
            encoding=self._encoding,
            schema=source.schema.serialize().to_pybytes(),
            policy=self._policy,
            first=0,
        )
        self._launch(self._order)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            self._ended_seconds += cpu_seconds(process.pid)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def again(self) -> None:
        assert self._order is not None and self._table is not None
        order = self._order
        self._launch(
            Order(
                order.door, order.bootstrap, order.topic, order.encoding, order.schema, order.policy,
                self._table.visible_rows(),
            )
        )  # fmt: skip

    def check(self) -> None:
        """Raise SystemFailure, with the end of the log, if the process has ended."""
        if self._process is None or self._process.poll() is not None:
            raise SystemFailure(f"the consumer ended on its own. Its log, {self._log}, ends:\n{tail(self._log)}")

    def stop(self) -> None:
        """Stop the process; events that it gathered and did not commit are dropped."""
        self.kill()

    def pids(self) -> list[int]:
        return [] if self._process is None else [self._process.pid]

    def ended_seconds(self) -> float:
        return self._ended_seconds

    def _launch(self, order: Order) -> None:
        command = [sys.executable, "-m", PROGRAM, str(os.getpid())]
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # the log contains the reason of its end
            process.stdin.write(pickle.dumps(order))
            process.stdin.close()
        deadline = time.monotonic() + READY_SECONDS
        while not select.select([process.stdout], [], [], LOOK_SECONDS)[0]:
            if time.monotonic() > deadline:
                raise SystemFailure(f"the consumer was not ready within {READY_SECONDS:.0f} s; its log is {self._log}")
        if process.stdout.readline() != b"ready\n":
            process.wait()
            self.check()
