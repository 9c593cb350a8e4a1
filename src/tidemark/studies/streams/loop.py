"""Timed loop: poll, decode, assemble, write, and nothing else inside the window.

Times are from `time.perf_counter_ns`. Each operation stores five numbers in preallocated arrays. Its rows and ids
follow from its position, because events arrive in the order of their ids. Nothing is printed, logged or written to
disk while the window is open.
"""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from tidemark.errors import DiskFull, SystemFailure, TidemarkError, is_disk_full
from tidemark.stream.consumer import Source
from tidemark.stream.events import EventCodec
from tidemark.studies.streams.samples import Samples, StreamWindow

clock = time.perf_counter_ns


def run_segment(
    window: StreamWindow,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    window_seconds: float,
    on_written: Callable[[int], None] = lambda _events: None,
    read_ahead: int = 1,
    commits: int = 0,
) -> None:
    """Read events and write them until `window` is `window_seconds` long or the source is exhausted.

    In single mode, one read takes up to `read_ahead` events that the client has already fetched, but no more than are
    left to the number of `commits`, if that is given: `on_written` is then called at that number.

    After each operation, or each read of single events, `on_written` gets the number of events written so far. The
    operation in progress at the end is finished and counted. Freeing objects after an operation counts as bookkeeping.
    Objects that exist before the stretch are hidden from the garbage collector (`gc.freeze`). The collector stays on,
    because a client with cyclic garbage pays for it in production as well.
    """
    starved, length_ns = source.starved_ns, int(window_seconds * 1e9) - window.elapsed_ns
    source.exhausted = False
    gc.collect()
    gc.freeze()
    try:
        if window.overlapped:
            _overlapped(window, source, codec, write, length_ns, on_written)
        elif window.samples.rows_per_operation == 1:
            _single(window, source, codec, write, read_ahead, commits, length_ns, on_written)
        else:
            _batch(window, source, codec, write, length_ns, on_written)
    except (TidemarkError, KeyboardInterrupt):
        raise
    except Exception as error:
        number = window.samples.count
        if is_disk_full(error):
            raise DiskFull(f"write {number}: no room left on the device: {error}") from error
        raise SystemFailure(f"write {number} failed: {type(error).__name__}: {error}") from error
    finally:
        gc.unfreeze()
    window.wait_for_producer_ns += source.starved_ns - starved
    window.stretches += 1


def _single(
    window: StreamWindow,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    read_ahead: int,
    commits: int,
    length_ns: int,
    on_written: Callable[[int], None],
) -> None:
    """Write one event at a time, but read up to `read_ahead` events that the client has already fetched at once.

    Each event is decoded and timed by itself and gets an equal share of the poll time. The events of one read are
    decoded back to back, while this loop's code is still in the CPU caches. After a write of milliseconds the caches
    are cold, and the same work takes ten times as long. For the same reason only two clock readings are taken around
    a write: once per read, they are turned into samples and the written tables are freed.
    """
    samples, now, decode, from_batches = window.samples, clock, codec.decode_one, pa.Table.from_batches
    starts, polls, decodes = samples.start, samples.poll, samples.decode
    assembles, writes = samples.assemble, samples.write
    tables: list[pa.Table] = []
    times: list[int] = []  # before and after each write of one read
    keep_time = times.append
    count, room, bookkeeping = samples.count, len(starts), 0
    started = now()
    source.deadline = started + length_ns
    begin = started - window.elapsed_ns  # of a clock that stands still between stretches
    try:
        while started < source.deadline:
            starved = source.starved_ns
            values = source.take(1, min(read_ahead, commits - count) if count < commits else read_ahead)
            if not values:
                break
            while room < count + read_ahead:
                samples.grow()
                room = len(starts)
            before = now()
            poll = (before - started - (source.starved_ns - starved)) // len(values)
            for place, value in enumerate(values, count):
                batch = decode(value)
                decoded = now()
                tables.append(from_batches([batch]))
                assembled = now()
                polls[place] = poll
                decodes[place] = decoded - before
                assembles[place] = assembled - decoded
                before = assembled
            try:
                for rows in tables:
                    writing = now()
                    write(rows)
                    written = now()
                    keep_time(writing)
                    keep_time(written)
                    if written >= source.deadline:
                        break
            finally:
                for writing, written in zip(times[::2], times[1::2], strict=False):  # Ctrl-C may leave one unpaired
                    starts[count] = started - begin
                    writes[count] = written - writing
                    bookkeeping += writing - before
                    started = before = written
                    count += 1
            on_written(count)
            for kept in (times, tables, values):
                kept.clear()
            started = now()
            bookkeeping += started - before
    finally:
        window.elapsed_ns = now() - begin
        samples.count = count
        window.bookkeeping_ns += bookkeeping


class _Fetched(NamedTuple):
    """Batch as a table, the time of each stage in ns, and the clock reading when it was complete."""

    rows: pa.Table
    poll: int
    decode: int
    assemble: int
    ended: int


def _fetch(source: Source, codec: EventCodec, size: int, started: int) -> _Fetched | None:
    """Return the next batch, or None after the deadline or at the topic's end. `ended` precedes freeing on return."""
    starved = source.starved_ns
    values = source.take(size, size)
    if not values:
        return None
    polled = clock()
    batches = codec.decode(values)
    decoded = clock()
    rows = codec.assemble(batches)
    ended = clock()
    return _Fetched(rows, polled - started - (source.starved_ns - starved), decoded - polled, ended - decoded, ended)


def _batch(
    window: StreamWindow,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    length_ns: int,
    on_written: Callable[[int], None],
) -> None:
    samples, size, bookkeeping = window.samples, window.samples.rows_per_operation, 0
    started = clock()
    source.deadline = started + length_ns
    begin = started - window.elapsed_ns
    while started < source.deadline:
        fetched = _fetch(source, codec, size, started)
        if fetched is None:
            break
        before = clock()
        bookkeeping += before - fetched.ended
        write(fetched.rows)
        written = clock()
        _keep(samples, started - begin, fetched, written - before)
        on_written(samples.count * size)
        started = clock()
        bookkeeping += started - written
    window.elapsed_ns = clock() - begin
    window.bookkeeping_ns += bookkeeping


def _overlapped(
    window: StreamWindow,
    source: Source,
    codec: EventCodec,
    write: Callable[[pa.Table], None],
    length_ns: int,
    on_written: Callable[[int], None],
) -> None:
    """Do the same as `_batch`, with a thread that decodes one batch ahead; Arrow and the clients release the GIL."""
    samples, size, bookkeeping, stalled = window.samples, window.samples.rows_per_operation, 0, 0
    starved = source.starved_ns
    ready: queue.Queue[Any] = queue.Queue(maxsize=1)
    ended = threading.Event()

    def fetch_ahead() -> None:
        item: Any = True
        while item is not None and not ended.is_set():
            try:
                item = _fetch(source, codec, size, clock())
            except Exception as error:  # passed to the writer, which raises it
                ready.put(error)
                return
            ready.put(item)

    started = clock()
    source.deadline = started + length_ns
    begin = started - window.elapsed_ns
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
            write(fetched.rows)
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
    window.bookkeeping_ns += bookkeeping
    window.stalled_ns += max(0, stalled - (source.starved_ns - starved))


def _keep(samples: Samples, start: int, fetched: _Fetched, write_ns: int) -> None:
    place = samples.count
    if place == len(samples.start):
        samples.grow()
    samples.start[place] = start
    samples.poll[place], samples.decode[place], samples.assemble[place] = fetched[1:4]
    samples.write[place] = write_ns
    samples.count = place + 1
