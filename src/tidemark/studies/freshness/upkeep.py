"""Upkeep of a table: the policies, the calls between a consumer's commits or beside them, and their account.

The account is a file with one line of JSON per call, as processes are killed at the end of a window. A process beside
the consumer finds the commits in it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tidemark.machine.disk import sent_bytes
from tidemark.machine.processes import forget_peak, peak_bytes
from tidemark.runs.serde import pairs
from tidemark.studies.freshness.record import UpkeepCall, UpkeepRecord
from tidemark.systems.tables import Committed, TableSystem
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {  # maintenance operations by what they do, in the words of clients
    "merge": ("merge", "compact"),
    "expire": ("expire", "clean up", "cleanup", "vacuum"),
    "flush": ("flush",),
    "checkpoint": ("checkpoint",),
}
ALL, BESIDE = "all", "beside"
COMMIT, DONE = "commit", "done"
LONGEST = 300  # characters of an error that are kept
TRIES = 50  # of a commit while other commits come first
LOOK_S = 0.02  # between two looks at the account


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Policy of upkeep of a table: after every `every` commits, by its consumer, or with `beside` by another process.

    `kinds` are keys of KINDS, or ALL for whatever the client offers; empty for nothing.
    """

    kinds: tuple[str, ...]
    every: int
    beside: bool = False

    @classmethod
    def parse(cls, text: str) -> Upkeep:
        """Parse `none`, `all-50`, `merge-expire-50` or `all-50-beside`."""
        plain = text.removesuffix(f"-{BESIDE}")
        *kinds, every = plain.split("-")
        return cls(tuple(kinds), int(every), plain != text) if kinds else cls((), 0)

    @property
    def words(self) -> str:
        if not self.kinds:
            return "no upkeep"
        where = " by a process beside the writer" if self.beside else ""
        return f"{' and '.join(self.kinds)} after {self.every:,} commits{where}"

    def maintainer(self, table: type[TableSystem]) -> type[TableSystem]:
        """Return the system whose client does it for a table of the system `table`."""
        return table.maintained_by or table if self.beside else table

    def operations(self, offered: Sequence[str]) -> tuple[str, ...]:
        """Return those of the `offered` operations of a client that belong to it, in the client's order."""
        if ALL in self.kinds:
            return tuple(offered)
        wanted = {name for kind in self.kinds for name in KINDS[kind]}
        return tuple(name for name in offered if name in wanted)

    def refused_by(self, table: type[TableSystem], options: Any) -> str | None:
        """Return why no client of `table` can do it, in words for tables; None if one can."""
        if not self.kinds:
            return None
        client = self.maintainer(table)
        if refused := client.refuses_maintenance(options):
            return refused
        offered = client.operations(options)
        for kind in self.kinds:
            if kind != ALL and not set(KINDS[kind]) & set(offered):
                return f"{client.title}: no {kind} is among its client's maintenance ({', '.join(offered)})"
        return None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a client: a commit of the consumer, or an operation of the upkeep."""

    began_ns: int  # Unix time
    seconds: float
    operation: str  # COMMIT, or the name of an operation
    commit: int  # number of this commit, or of the last one before the operation; from 1
    rows: int  # that the commit adds
    cpu_s: float  # of the calling process
    written_bytes: int  # that the calling process sent to a disk
    peak_bytes: int  # most memory of the calling process during the call
    outcome: str  # DONE, or a value of CommitStatus
    said: str  # the error, if there was one


class Caller:
    """Calls of one client, each of which becomes a line of the file `account`."""

    def __init__(self, client: TableWriter, upkeep: Upkeep, account: Path) -> None:
        offered = client.maintenance() if upkeep.kinds else {}
        self._operations = {name: offered[name] for name in upkeep.operations(tuple(offered))}
        self._client, self._account = client, account.open("a")

    def call(self, name: str, do: Callable[[], object], commit: int, rows: int = 0) -> Exception | None:
        """Return what `do` raises, or None."""
        failure: Exception | None = None
        outcome, said = DONE, ""
        forget_peak()
        written, cpu = _written_bytes(), time.process_time()
        began_ns, began = time.time_ns(), time.perf_counter()
        try:
            do()
        except Exception as error:
            failure, outcome = error, str(self._client.commit_status(error))
            said = f"{type(error).__name__}: {error}"[:LONGEST]
        seconds, spent = time.perf_counter() - began, time.process_time() - cpu
        written = _written_bytes() - written
        call = Call(began_ns, seconds, name, commit, rows, spent, written, peak_bytes(), outcome, said)
        self._account.write(f"{json.dumps(asdict(call))}\n")
        self._account.flush()
        return failure

    def maintain(self, commit: int) -> None:
        """Do the upkeep after the commit of this number; an operation that fails is left out."""
        for name, operation in self._operations.items():
            if self.call(name, operation, commit) is not None:
                with suppress(Exception):  # the next call shows the consequences
                    self._client.refresh()


class UpkeepWriter:
    """Writes of `client`, with the upkeep that they make due, unless another process does it."""

    def __init__(self, client: TableWriter, upkeep: Upkeep, account: Path) -> None:
        self._client, self._upkeep = client, upkeep
        self._caller = Caller(client, upkeep, account)
        self._commits = 0

    def write(self, rows: pa.Table) -> None:
        """Commit `rows`, again if another commit came first, then do the upkeep if it is due."""
        self._commits += 1
        for _ in range(TRIES):
            failure = self._caller.call(COMMIT, partial(self._client.write, rows), self._commits, rows.num_rows)
            if failure is None or self._client.commit_status(failure) is not CommitStatus.CONFLICT:
                break
            self._client.refresh()
        if failure is not None:
            raise failure
        if self._upkeep.kinds and not self._upkeep.beside and self._commits % self._upkeep.every == 0:
            self._caller.maintain(self._commits)


@dataclass(frozen=True, slots=True)
class UpkeepOrder:
    """Instructions for the process beside a consumer; they contain what `client_factory` contains."""

    client_factory: ClientFactory
    upkeep: Upkeep
    account: Path  # of the consumer's calls, and of its own


def keep(order: UpkeepOrder) -> NoReturn:
    """Do the upkeep whenever commits in the account have made it due, without end.

    What became due more than once during a round is done once.
    """
    upkeep = order.upkeep
    caller = Caller(order.client_factory.open(), upkeep, order.account)
    done, text = 0, ""
    print("ready", flush=True)
    with order.account.open() as file:
        while True:
            *lines, text = (text + file.read()).split("\n")
            calls = [Call(**json.loads(line)) for line in lines]
            commits = [call.commit for call in calls if call.operation == COMMIT and call.outcome == DONE]
            rounds = max(commits, default=0) // upkeep.every
            if rounds > done:
                done = rounds
                caller.maintain(commits[-1])
            else:
                time.sleep(LOOK_S)


def _written_bytes() -> int:
    return sent_bytes([os.getpid()]) or 0


@dataclass(frozen=True, slots=True)
class Account:
    """Calls of a consumer, in order of time."""

    calls: tuple[Call, ...]

    @classmethod
    def read(cls, path: Path) -> Account:
        """Return the calls in the file `path`, without a last line that was cut off."""
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return cls(tuple(Call(**json.loads(line)) for line in lines if line.endswith("\n")))

    def has_ended(self, rows: int, upkeep: Upkeep, operations: Sequence[str]) -> bool:
        """Return True if `rows` rows are committed and the `operations` that the last commit made due have returned."""
        commits = self._commits
        if self.acknowledged < rows:
            return False
        due = commits[-1].commit // upkeep.every * upkeep.every if commits and operations else 0
        return not due or any(call.operation == operations[-1] and call.commit >= due for call in self.calls)

    def history(self) -> list[Committed]:
        """Return the commits as they were acknowledged: maintenance removes them from a table's own history."""
        return [Committed(call.began_ns / 1e6 + 1000 * call.seconds, call.rows) for call in self._commits]

    @property
    def acknowledged(self) -> int:
        """Rows of acknowledged commits."""
        return sum(call.rows for call in self._commits)

    @property
    def _commits(self) -> list[Call]:
        return [call for call in self.calls if call.operation == COMMIT and call.outcome == DONE]

    def record(self, begin_ns: int, upkeep: Upkeep, written_bytes: dict[str, int]) -> UpkeepRecord:
        """Return the record of the calls that began in the window, which opened at `begin_ns`.

        `written_bytes`: by process group, as in `UpkeepRecord`.
        """
        inside = [call for call in self.calls if call.began_ns >= begin_ns]
        of_writer = [call for call in inside if call.operation == COMMIT or not upkeep.beside]
        busy: dict[int, float] = {}
        for call in of_writer:
            busy[call.commit] = busy.get(call.commit, 0.0) + call.seconds
        return UpkeepRecord(
            calls=tuple(
                UpkeepCall(
                    (call.began_ns - begin_ns) / 1e9, call.seconds, call.operation, call.commit, call.outcome,
                    call.said, call.cpu_s, call.written_bytes, call.peak_bytes,
                )
                for call in inside
                if call.operation != COMMIT
            ),
            commits=len(busy),
            refused=sum(call.outcome == CommitStatus.CONFLICT for call in inside if call.operation == COMMIT),
            longest_busy_s=max(busy.values(), default=0.0),
            peak_bytes=max((call.peak_bytes for call in of_writer), default=0),
            written_bytes=pairs(written_bytes),
            acknowledged=self.acknowledged,
        )  # fmt: skip
