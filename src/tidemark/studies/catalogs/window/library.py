"""Program that runs the users of a catalog without a server, one process each, with the same barriers as Locust's.

    python -m tidemark.studies.catalogs.window.library ORDER RESULT

It exchanges the same lines as `player`, plays the same phases, and writes the same columns.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Any

from tidemark.process_lifetime import die_with_parent
from tidemark.studies.catalogs import requests as asked
from tidemark.studies.catalogs.requests import APPENDING, MOST_ATTEMPTS, MOST_RETRIES
from tidemark.systems.catalogs.library import CONFLICT, Contents, LibraryCatalog, Session
from tidemark.systems.registry import of_kind

COLUMNS = ("start_ns", "elapsed_ns", "late_ns", "status", "user", "attempts", "doubled")
FAILING = 500
SECOND_NS, LOOK_S = 1_000_000_000, 0.05
MOST_KEPT, MOST_SHOWN = 2, 10  # answers kept as text: per user, and in total
FORKED = multiprocessing.get_context("fork")  # libraries are loaded once, before the users fork


class Play:
    """Order and the result of each request, in memory that all users share."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.system = of_kind(LibraryCatalog)[order["system"]]
        self.phases: list[dict[str, Any]] = order["phases"]
        self.first = [0, *itertools.accumulate(len(phase["requests"]) for phase in self.phases)]
        self.columns = {name: FORKED.RawArray("q", self.first[-1]) for name in COLUMNS}
        self.gates = [FORKED.Event() for _ in self.phases]
        self.began_ns = FORKED.RawArray("q", len(self.phases))
        self.next = [FORKED.Value("q", 0) for _ in self.phases]
        self.users = max(min(phase["users"], len(phase["requests"])) for phase in self.phases)
        self.told, self.kept = FORKED.SimpleQueue(), 0
        self.here, self.done = FORKED.Semaphore(0), FORKED.Semaphore(0)

    def busy(self, number: int) -> int:
        """Return the number of users that take part in a phase."""
        phase = self.phases[number]
        return min(int(phase["users"]), len(phase["requests"]))

    def take_part(self, user: int, parent: int) -> None:
        """Run one user through all phases."""
        die_with_parent(parent)
        session = self.system.open_session(self.order["given"], Contents(asked.COLUMNS, asked.PROPERTIES))
        self.here.release()
        for number in range(len(self.phases)):
            self.gates[number].wait()
            if user < self.busy(number):
                self._work(session, user, number)
                self.done.release()
        session.close()

    def _work(self, session: Session, user: int, number: int) -> None:
        phase, columns, clock = self.phases[number], self.columns, time.perf_counter_ns
        requests, due, began = phase["requests"], phase["due_s"], self.began_ns[number]
        own = iter(range(user, len(requests), phase["users"]))
        while phase["ramp"] and self.next[number].value < len(requests) and (
            left := began + user * SECOND_NS - clock()
        ) > 0:  # fmt: skip
            time.sleep(min(left / SECOND_NS, LOOK_S))
        for place in own if phase["own"] else iter(partial(self._draw, number), None):
            kind, path, name, key = requests[place]
            row, late = self.first[number] + place, 0
            if due is not None:
                at = began + int(due[place] * 1e9)
                if (left := at - clock()) > 0:
                    time.sleep(left / 1e9)
                late = clock() - at
            start = clock()
            retries = MOST_RETRIES if phase["ramp"] else 0
            status, columns["attempts"][row] = perform(session, kind, path, name, key, retries)
            columns["elapsed_ns"][row] = clock() - start
            columns["start_ns"][row], columns["late_ns"][row] = start, late
            columns["status"][row], columns["user"][row] = status, user
            if status >= FAILING:
                self.failed(f"{kind}: {status} {session.said[:300]}")
                if os.path.exists(self.order["stopping"]):  # noqa: PTH110
                    break
            elif phase["own"]:
                columns["doubled"][row] = len(session.listed) - len(set(session.listed))

    def failed(self, said: str) -> None:
        """Keep the text of a failure, for the first `MOST_KEPT` of each user."""
        if self.kept < MOST_KEPT:
            self.kept += 1
            self.told.put(said)

    def _draw(self, number: int) -> int | None:
        """Return the next request that no user has taken, or None if there is none."""
        counter = self.next[number]
        with counter.get_lock():
            place = int(counter.value)
            counter.value = place + 1
        return place if place < len(self.phases[number]["requests"]) else None


def perform(session: Session, kind: str, path: Sequence[str], name: str, key: str, retries: int = 0) -> tuple[int, int]:
    """Perform a request; return its status and attempts. An append starts again if another one was faster.

    A failed request is retried at most `retries` times.
    """
    attempts = 1
    status = session.perform(kind, path, name, key)
    while (kind == APPENDING.name and status == CONFLICT and attempts < MOST_ATTEMPTS) or (
        status == FAILING and attempts <= retries
    ):
        status = session.perform(kind, path, name, key)
        attempts += 1
    return status, attempts


def wait(told: Semaphore, count: int, users: Sequence[BaseProcess]) -> None:
    """Wait until `count` users have reported; end the process, and with it the others, if one has died."""
    while count:
        if told.acquire(timeout=1):
            count -= 1
        elif any(each.exitcode for each in users):
            print("a user ended on its own", file=sys.stderr, flush=True)
            os._exit(1)


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    whole = Play(order)
    whole.system.load(order["given"])
    users = [FORKED.Process(target=whole.take_part, args=(user, os.getpid())) for user in range(whole.users)]
    for each in users:
        each.start()
    wait(whole.here, len(users), users)
    print("ready", flush=True)
    for number, gate in enumerate(whole.gates):
        if sys.stdin.readline().split() != ["go", str(number)]:
            sys.exit("received something other than the next 'go'")
        whole.began_ns[number] = time.perf_counter_ns()
        gate.set()
        wait(whole.done, whole.busy(number), users)
        print("done", number, time.perf_counter_ns() - whole.began_ns[number], flush=True)
    columns = {name: list(values) for name, values in whole.columns.items()}
    lines = []
    while not whole.told.empty():
        lines.append(whole.told.get())
    found = {"columns": columns, "began_ns": list(whole.began_ns), "said": lines[:MOST_SHOWN]}
    Path(sys.argv[2]).write_text(json.dumps(found))
    print("written", flush=True)
    for each in users:
        each.join()


if __name__ == "__main__":
    main()
