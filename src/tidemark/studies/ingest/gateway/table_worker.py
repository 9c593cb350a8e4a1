"""One table client and the thread that owns it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.studies.ingest.gateway.protocol import Outcome
from tidemark.systems.writers import DataFile, Door, Fate, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_WAIT_S, LONGEST_WAIT_S = 0.001, 0.2  # backoff: initial value, doubled per try, and its maximum; plus jitter
LONGEST_WORDS = 400
OUTCOMES = {Fate.CONFLICT: Outcome.REFUSED, Fate.FAILED: Outcome.FAILED, Fate.UNKNOWN: Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Final status of a commit, with the error message if it was not acknowledged."""

    outcome: Outcome
    words: str = ""


ACKED = CommitResult(Outcome.ACKED)


class TableWorker:
    """Table client for use from one event loop; its calls run one at a time in a dedicated thread."""

    def __init__(self, door: Door, tries: int, seed: int) -> None:
        """Prepare the client: `tries` limits the attempts on conflict, `seed` seeds the jitter between them."""
        self._door, self._tries, self._waits = door, tries, random.Random(seed)
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
            self._writer = self._door.open()
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
                fate, words = writer.fate(error), spelled(error)
            try:
                writer.refresh()
            except Exception:
                self._drop()
                return CommitResult(OUTCOMES[fate], words)
            if fate is not Fate.CONFLICT or attempt >= self._tries:
                return CommitResult(OUTCOMES[fate], words)
            wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
            time.sleep(wait + self._waits.uniform(0, wait))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return all rows as one contiguous table: clients are slower with many small batches."""
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks()


def spelled(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:LONGEST_WORDS]
