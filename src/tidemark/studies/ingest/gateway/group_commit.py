"""Commit policies, and the tasks that run them: each request is answered after the commit that holds it has ended.

A policy is one commit per request, buffered commits, or files that are committed in groups. The default values are
those of kyma's staging buffer and commit coordinator. A `TableWorker` is one table client and the thread that owns it;
a committer has one or several of them.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.studies.ingest.gateway.protocol import Answer, Outcome
from tidemark.systems.writers import ClientFactory, CommitStatus, DataFile, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

DIRECT, STAGED, BUNDLED = "direct", "staged", "bundled"


@dataclass(frozen=True, slots=True)
class PerRequest:
    """One commit per request."""

    name = DIRECT


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """Buffered requests: a limit on the buffer's rows, bytes or age triggers one commit of all of them."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20  # bytes on the wire
    max_age_ms: float = 50.0  # of the oldest request in the buffer

    name = STAGED


@dataclass(frozen=True, slots=True)
class FileBundling(GroupCommit):
    """Policy like `GroupCommit`, but each flush writes a data file; files that arrive in a window share one commit."""

    window_ms: float = 5.0  # starts with the first file
    max_files: int = 128

    name = BUNDLED


type Policy = PerRequest | GroupCommit
POLICIES: dict[str, type[PerRequest | GroupCommit]] = {DIRECT: PerRequest, STAGED: GroupCommit, BUNDLED: FileBundling}

FIRST_WAIT_S, LONGEST_WAIT_S = 0.001, 0.2  # backoff: initial value, doubled per try, and its maximum; plus jitter
LONGEST_WORDS = 400
OUTCOMES = {
    CommitStatus.CONFLICT: Outcome.REFUSED,
    CommitStatus.FAILED: Outcome.FAILED,
    CommitStatus.UNKNOWN: Outcome.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Final status of a commit, with the error message if it was not acknowledged."""

    outcome: Outcome
    words: str = ""


ACKED = CommitResult(Outcome.ACKED)


class TableWorker:
    """Table client for use from one event loop; its calls run one at a time in a dedicated thread."""

    def __init__(self, client_factory: ClientFactory, tries: int, seed: int) -> None:
        """Prepare the client: `tries` limits the attempts on conflict, `seed` seeds the jitter between them."""
        self._factory, self._tries, self._waits = client_factory, tries, random.Random(seed)
        self._thread = ThreadPoolExecutor(1, "hand")
        self._writer: TableWriter | None = None

    async def open(self) -> None:
        """Open the client; errors propagate."""
        await self._in_thread(self._opened)

    async def write(self, batches: Sequence[pa.RecordBatch]) -> CommitResult:
        """Append all rows of `batches` in one commit."""

        def work() -> CommitResult:
            rows = joined(batches)
            return self._committed(lambda writer: writer.write(rows))

        return await self._in_thread(work)

    async def stage(self, batches: Sequence[pa.RecordBatch]) -> DataFile | CommitResult:
        """Write all rows to a data file that is not yet part of the table; a failure here leaves no commit behind."""

        def work() -> DataFile | CommitResult:
            try:
                return self._opened().stage(joined(batches))
            except Exception as error:
                self._drop()
                return CommitResult(Outcome.FAILED, spelled(error))

        return await self._in_thread(work)

    async def register(self, files: Sequence[DataFile]) -> CommitResult:
        """Add `files` to the table in one commit."""
        return await self._in_thread(lambda: self._committed(lambda writer: writer.register(files)))

    async def close(self) -> None:
        def work() -> None:
            if self._writer is not None:
                self._writer.close()

        await self._in_thread(work)
        self._thread.shutdown()

    async def _in_thread[Result](self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _opened(self) -> TableWriter:
        if self._writer is None:
            self._writer = self._factory.open()
        return self._writer

    def _drop(self) -> None:
        """Close the client, so that the next commit opens a new one."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(Exception):  # the client is already broken
                writer.close()

    def _committed(self, commit: Callable[[TableWriter], None]) -> CommitResult:
        """Retry until the commit is acknowledged, finally refused, or has an unknown outcome."""
        try:
            writer = self._opened()
        except Exception as error:  # nothing was sent
            return CommitResult(Outcome.FAILED, spelled(error))
        attempt = 0
        while True:
            attempt += 1
            try:
                commit(writer)
                return ACKED
            except Exception as error:
                commit_status, words = writer.commit_status(error), spelled(error)
            try:
                writer.refresh()
            except Exception:
                self._drop()
                return CommitResult(OUTCOMES[commit_status], words)
            if commit_status is not CommitStatus.CONFLICT or attempt >= self._tries:
                return CommitResult(OUTCOMES[commit_status], words)
            wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
            time.sleep(wait + self._waits.uniform(0, wait))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return all rows as one contiguous table: clients are slower with many small batches."""
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks()


def spelled(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:LONGEST_WORDS]


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

    def __init__(self, hands: Sequence[TableWorker], policy: GroupCommit) -> None:
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
        case FileBundling():
            return BundlingCommitter(hands[:-1], hands[-1], policy)
        case GroupCommit():
            return GroupCommitter(hands, policy)
