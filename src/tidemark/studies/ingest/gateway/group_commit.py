"""Commit policies as running tasks: each submitted request is answered after the commit that holds it has ended."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.studies.ingest.gateway.policies import FileBundling, GroupCommit, PerRequest, Policy
from tidemark.studies.ingest.gateway.protocol import Answer, Outcome
from tidemark.studies.ingest.gateway.table_worker import CommitResult, TableWorker
from tidemark.systems.writers import DataFile

if TYPE_CHECKING:
    import pyarrow as pa

MOST_KEPT = 3  # error messages kept by a committer


@dataclass(frozen=True, slots=True)
class Request:
    rows: pa.RecordBatch
    size: int  # bytes on the wire
    answer: asyncio.Future[Answer]


class Committer(ABC):
    """Base of all committers: numbers the commits, and gives all requests in a commit its number and outcome."""

    def __init__(self) -> None:
        self.commits = 0  # acknowledged commits
        self.said: list[str] = []  # error messages of the first commits that were not acknowledged
        self._numbers = itertools.count(1)

    async def submit(self, rows: pa.RecordBatch, size: int) -> Answer:
        """Commit `rows`, `size` bytes on the wire, and return the final answer."""
        request = Request(rows, size, asyncio.get_running_loop().create_future())
        self._take_in(request)
        return await request.answer

    @abstractmethod
    def _take_in(self, request: Request) -> None: ...

    @abstractmethod
    async def drain(self) -> None:
        """Commit everything accepted so far and stop; `submit` must not be called afterwards."""

    def _settle(self, requests: Iterable[Request], ended: CommitResult) -> None:
        number = 0
        if ended.outcome is Outcome.ACKED:
            number = next(self._numbers)
            self.commits += 1
        elif len(self.said) < MOST_KEPT:
            self.said.append(ended.words)
        for request in requests:
            if not request.answer.done():  # the client may have disconnected
                request.answer.set_result(Answer(ended.outcome, number))


class PerRequestCommitter(Committer):
    """Committer that commits each request separately, in arrival order, on the next free `TableWorker`."""

    def __init__(self, hands: Sequence[TableWorker]) -> None:
        super().__init__()
        self._waiting: asyncio.Queue[Request | None] = asyncio.Queue()
        self._work = [asyncio.create_task(self._working(hand)) for hand in hands]

    def _take_in(self, request: Request) -> None:
        self._waiting.put_nowait(request)

    async def _working(self, hand: TableWorker) -> None:
        while (request := await self._waiting.get()) is not None:
            self._settle((request,), await hand.write((request.rows,)))

    async def drain(self) -> None:
        for _ in self._work:
            self._waiting.put_nowait(None)
        await asyncio.gather(*self._work)


class GroupCommitter(Committer):
    """Committer with a buffer; when a flush is due, the next free `TableWorker` commits the complete buffer."""

    def __init__(self, hands: Sequence[TableWorker], policy: GroupCommit | FileBundling) -> None:
        super().__init__()
        self._policy = policy
        self._buffer: list[Request] = []
        self._rows = self._bytes = 0
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._ending = False
        self._work = [asyncio.create_task(self._working(hand)) for hand in hands]

    def _take_in(self, request: Request) -> None:
        self._buffer.append(request)
        self._rows += request.rows.num_rows
        self._bytes += request.size
        if self._ending or self._rows >= self._policy.max_rows or self._bytes >= self._policy.max_bytes:
            self._due.set()
        elif len(self._buffer) == 1:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._policy.max_age_ms / 1000, self._due.set)

    def _take_out(self) -> list[Request]:
        taken, self._buffer = self._buffer, []
        self._rows = self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._ending:
            self._due.clear()
        return taken

    async def _working(self, hand: TableWorker) -> None:
        while True:
            await self._due.wait()
            if taken := self._take_out():
                await self._flush(hand, taken)
            elif self._ending:
                return

    async def _flush(self, hand: TableWorker, taken: list[Request]) -> None:
        self._settle(taken, await hand.write([each.rows for each in taken]))

    async def drain(self) -> None:
        self._ending = True
        self._due.set()
        await asyncio.gather(*self._work)


class BundlingCommitter(GroupCommitter):
    """Committer whose flushes write data files; another `TableWorker` commits all files that arrive in one window."""

    def __init__(self, hands: Sequence[TableWorker], committing: TableWorker, policy: FileBundling) -> None:
        self._bundle = policy
        self._files: asyncio.Queue[tuple[DataFile, list[Request]] | None] = asyncio.Queue()
        super().__init__(hands, policy)
        self._commit = asyncio.create_task(self._committing(committing))

    async def _flush(self, hand: TableWorker, taken: list[Request]) -> None:
        made = await hand.stage([each.rows for each in taken])
        if isinstance(made, CommitResult):
            self._settle(taken, made)
        else:
            self._files.put_nowait((made, taken))

    async def _committing(self, hand: TableWorker) -> None:
        loop, last = asyncio.get_running_loop(), False
        while not last:
            first = await self._files.get()
            if first is None:
                return
            bundle, deadline = [first], loop.time() + self._bundle.window_ms / 1000
            while len(bundle) < self._bundle.max_files:
                try:
                    async with asyncio.timeout_at(deadline):
                        more = await self._files.get()
                except TimeoutError:
                    break
                if last := more is None:
                    break
                bundle.append(more)
            ended = await hand.register([file for file, _ in bundle])
            self._settle((request for _, taken in bundle for request in taken), ended)

    async def drain(self) -> None:
        await super().drain()
        self._files.put_nowait(None)
        await self._commit


def committer(policy: Policy, hands: Sequence[TableWorker]) -> Committer:
    """Return the committer for `policy` on opened `hands`; with a `FileBundling` policy the last one commits."""
    match policy:
        case PerRequest():
            return PerRequestCommitter(hands)
        case GroupCommit():
            return GroupCommitter(hands, policy)
        case FileBundling():
            return BundlingCommitter(hands[:-1], hands[-1], policy)
