"""The timed loop: poll, decode, assemble, write, and nothing else inside the window.

Times are those of `time.perf_counter_ns`. Each operation leaves five numbers in arrays that were allocated
before; what an operation's rows and ids are follows from its place, because events come in the order of their
ids. Nothing is printed, logged or written to disk while the window is open.
"""

from __future__ import annotations

import gc
import queue
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemark.errors import DiskFull, SystemFailure, TidemarkError, is_disk_full
from tidemark.events import EventCodec
from tidemark.stream.source import Source

clock = time.perf_counter_ns

GROW = 1 << 16  # operations that the arrays grow by: 2.5 MB

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Samples:
    """Five numbers an operation, in nanoseconds; `count` operations are filled."""

    rows_per_operation: int
    count: int = 0
    start: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    poll: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    decode: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    assemble: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    write: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))

    def grow(self) -> None:
        for numbers in (self.start, self.poll, self.decode, self.assemble, self.write):
            numbers.frombytes(bytes(8 * GROW))

    def column(self, name: str) -> Numbers:
        """int64[count] of one of the five, without a copy."""
        return np.frombuffer(getattr(self, name), np.int64, self.count)

    @property
    def events(self) -> int:
        return self.count * self.rows_per_operation


@dataclass(slots=True)
class Window:
    """What one window left behind. All times in nanoseconds.

    With overlap `poll`, `decode` and `assemble` of an operation ran beside the write of the one before, so they
    are no part of the wall-clock; what is, is `stalled`: the time that the writer waited for the next batch.
    """

    samples: Samples
    elapsed_ns: int = 0
    bookkeeping_ns: int = 0
    wait_for_producer_ns: int = 0
    stalled_ns: int = 0
    overlapped: bool = False

    def budget(self) -> dict[str, int]:
        """Where the wall-clock went; the parts add up to `elapsed_ns`, `rest` being what none of them covers."""
        parts = {name: int(self.samples.column(name).sum()) for name in ("poll", "decode", "assemble", "write")}
        if self.overlapped:
            parts |= {"poll": 0, "decode": self.stalled_ns, "assemble": 0}
        parts["bookkeeping"] = self.bookkeeping_ns
        parts["wait_for_producer"] = self.wait_for_producer_ns
        parts["rest"] = self.elapsed_ns - sum(parts.values())
        return parts


def run_window(
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    rows_per_write: int,
    window_seconds: float,
    overlap: bool = False,
    on_written: Callable[[int], None] = lambda _events: None,
    read_ahead: int = 1,
) -> Window:
    """Read events and write them, `rows_per_write` at a time, until `window_seconds` have passed.

    With one row a write, up to `read_ahead` events that the client has at hand are read in one go.

    After each operation, or each go of single ones, `on_written` is given the number of events written so far. The
    operation under way at the end is finished and counted, and `elapsed_ns` ends with it. Objects alive before the
    window are kept out of the collector's sight; it stays on, because a client whose garbage is cyclic pays for it
    in production as well.
    """
    window = Window(Samples(rows_per_write), overlapped=overlap)
    gc.collect()
    gc.freeze()
    try:
        if overlap:
            _overlapped(window, source, codec, write, rows_per_write, window_seconds, on_written)
        elif rows_per_write == 1:
            _single(window, source, codec, write, read_ahead, window_seconds, on_written)
        else:
            _batch(window, source, codec, write, rows_per_write, window_seconds, on_written)
    except (TidemarkError, KeyboardInterrupt):
        raise
    except Exception as error:
        number = window.samples.count
        if is_disk_full(error):
            raise DiskFull(f"write {number}: no room left on the device: {error}") from error
        raise SystemFailure(f"write {number} failed: {type(error).__name__}: {error}") from error
    finally:
        gc.unfreeze()
    window.wait_for_producer_ns = source.starved_ns
    return window


def _single(
    window: Window,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    read_ahead: int,
    window_seconds: float,
    on_written: Callable[[int], None],
) -> None:
    """One event a write. Events that the client has at hand are taken up to `read_ahead` at a time.

    Each is polled, decoded and timed by itself; only, those of one go follow upon one another, with this loop's
    code still in the processor's caches. After a write of milliseconds they are cold, and the same work takes ten
    times as long. `on_written` is told of them together.
    """
    samples, now, decode, from_batches = window.samples, clock, codec.decode_one, pa.Table.from_batches
    one, at_hand = source.one, source.at_hand
    starts, polls, decodes = samples.start, samples.poll, samples.decode
    assembles, writes = samples.assemble, samples.write
    tables: list[pa.Table] = []
    count, room, bookkeeping = 0, len(starts), 0
    begin = started = now()
    source.deadline = begin + int(window_seconds * 1e9)
    try:
        while started < source.deadline:
            starved, place, before = source.starved_ns, count, started
            value = one()
            waited = source.starved_ns - starved
            while room < count + read_ahead:
                samples.grow()
                room = len(starts)
            while value is not None:
                polled = now()
                batch = decode(value)
                decoded = now()
                tables.append(from_batches([batch]))
                assembled = now()
                polls[place] = polled - before - waited
                decodes[place] = decoded - polled
                assembles[place] = assembled - decoded
                place, before, waited = place + 1, assembled, 0
                value = at_hand() if len(tables) < read_ahead else None
            if not tables:
                break
            written = before
            for rows in tables:
                writing = now()
                bookkeeping += writing - written
                write(rows)
                written = now()
                starts[count] = started - begin
                writes[count] = written - writing
                count += 1
                started = written
                if written >= source.deadline:
                    break
            # What can wait is done once for all of them: freeing a table takes 40 us when it comes by itself.
            on_written(count)
            tables.clear()
            started = now()
            bookkeeping += started - written
    finally:
        window.elapsed_ns = now() - begin
        samples.count, window.bookkeeping_ns = count, bookkeeping


def _fetch(source: Source, codec: EventCodec, size: int) -> tuple[pa.Table, int, int, int] | None:
    """The next batch as a table, and its poll, decode and assemble times; None once the deadline has passed."""
    started, starved = clock(), source.starved_ns
    values = source.many(size)
    if values is None:
        return None
    polled = clock()
    batches = codec.decode(values)
    decoded = clock()
    rows = codec.assemble(batches)
    assembled = clock()
    return rows, polled - started - (source.starved_ns - starved), decoded - polled, assembled - decoded


def _batch(
    window: Window,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    size: int,
    window_seconds: float,
    on_written: Callable[[int], None],
) -> None:
    samples, bookkeeping = window.samples, 0
    begin = started = clock()
    source.deadline = begin + int(window_seconds * 1e9)
    while started < source.deadline:
        fetched = _fetch(source, codec, size)
        if fetched is None:
            break
        before = clock()
        write(fetched[0])
        written = clock()
        _keep(samples, started - begin, fetched, written - before)
        on_written(samples.count * size)
        started = clock()
        bookkeeping += started - written
    window.elapsed_ns = clock() - begin
    window.bookkeeping_ns = bookkeeping


def _overlapped(
    window: Window,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    size: int,
    window_seconds: float,
    on_written: Callable[[int], None],
) -> None:
    """As `_batch`, with one batch decoded ahead by a thread; Arrow and the clients release the lock."""
    samples, bookkeeping, stalled = window.samples, 0, 0
    ready: queue.Queue[Any] = queue.Queue(maxsize=1)
    ended = threading.Event()

    def fetch_ahead() -> None:
        item: Any = True
        while item is not None and not ended.is_set():
            try:
                item = _fetch(source, codec, size)
            except Exception as error:  # handed to the writer, which raises it
                ready.put(error)
                return
            ready.put(item)

    begin = started = clock()
    source.deadline = begin + int(window_seconds * 1e9)
    thread = threading.Thread(target=fetch_ahead, daemon=True)
    thread.start()
    try:
        while started < source.deadline:
            fetched = ready.get()
            before = clock()
            stalled += before - started
            if fetched is None:
                break
            if isinstance(fetched, Exception):
                raise fetched
            write(fetched[0])
            written = clock()
            _keep(samples, started - begin, fetched, written - before)
            on_written(samples.count * size)
            started = clock()
            bookkeeping += started - written
        window.elapsed_ns = clock() - begin
    finally:
        ended.set()
        while thread.is_alive():
            try:
                ready.get(timeout=0.05)
            except queue.Empty:
                continue
        thread.join()
    window.bookkeeping_ns, window.stalled_ns = bookkeeping, max(0, stalled - source.starved_ns)


def _keep(samples: Samples, start: int, fetched: tuple[pa.Table, int, int, int], write_ns: int) -> None:
    place = samples.count
    if place == len(samples.start):
        samples.grow()
    samples.start[place] = start
    samples.poll[place], samples.decode[place], samples.assemble[place] = fetched[1:]
    samples.write[place] = write_ns
    samples.count = place + 1
