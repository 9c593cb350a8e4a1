"""Tests of the timed loop on messages from memory: counts, times, and how it ends when something fails."""

from __future__ import annotations

import errno
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemark.errors import DiskFull, StreamError, SystemFailure
from tidemark.stream.consumer import Source
from tidemark.stream.counters import Counters
from tidemark.stream.events import EventCodec
from tidemark.studies.streams import loop, samples
from tidemark.studies.streams.loop import run_segment
from tidemark.studies.streams.samples import Samples, StreamWindow

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float64())])


class Message:
    def __init__(self, value: bytes) -> None:
        self._value = value

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return self._value


class Memory:
    """Consumer whose queue is a list; when it is empty, polling waits as the real one does."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages = [Message(message) for message in reversed(messages)]

    def poll(self, timeout: float) -> Message | None:
        if self._messages:
            return self._messages.pop()
        time.sleep(timeout)
        return None

    def consume(self, count: int, _timeout: float) -> list[Message]:
        taken = self._messages[-count:][::-1]
        del self._messages[-count:]
        return taken


class Endless:
    """Consumer whose queue never ends, however fast it is emptied."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages = itertools.cycle([Message(message) for message in messages])

    def consume(self, count: int, _timeout: float) -> list[Message]:
        return list(itertools.islice(self._messages, count))


class Clock:
    """Clock in ns that a reading advances by a microsecond."""

    def __init__(self) -> None:
        self.now = time.perf_counter_ns()

    def __call__(self) -> int:
        self.advance(1_000)
        return self.now

    def advance(self, ns: int) -> None:
        self.now += ns


@pytest.fixture
def counters(tmp_path: Path) -> Counters:
    return Counters(tmp_path / "counters", create=True)


def messages(count: int) -> tuple[EventCodec, list[bytes]]:
    codec = EventCodec(SCHEMA)
    batch = pa.record_batch({"id": np.arange(count), "fare": np.arange(count) / 8}, schema=SCHEMA)
    return codec, codec.encode(batch)


def run(
    counters: Counters,
    events: int,
    size: int,
    seconds: float,
    write: Callable[[pa.Table], None],
    overlap: bool = False,
    alive: bool = True,
    read_ahead: int = 1,
) -> StreamWindow:
    codec, encoded = messages(events)
    counters.produced = events
    source = Source(Memory(encoded), counters, lambda: alive)
    window = StreamWindow(Samples(size), overlapped=overlap)
    run_segment(window, source, codec, write, seconds, read_ahead=read_ahead)
    return window


@pytest.mark.parametrize(("size", "overlap"), [(1, False), (7, False), (100, False), (100, True)])
def test_rows_arrive_in_order_once_and_every_operation_is_counted(counters: Counters, size: int, overlap: bool) -> None:
    written: list[pa.Table] = []
    window = run(counters, 3_000, size, 0.3, written.append, overlap)
    ids = pa.concat_tables(written).column("id").to_numpy()
    assert window.samples.events == len(ids)
    assert (ids == np.arange(len(ids))).all()
    assert len(ids) == 3_000 // size * size
    assert {table.num_rows for table in written} == {size}
    assert all(column.num_chunks == 1 for column in written[0].columns)


@pytest.mark.parametrize(("size", "overlap"), [(1, False), (50, False), (50, True)])
def test_time_budget_accounts_for_the_complete_window(
    counters: Counters, size: int, overlap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock of its own keeps other processes out of the sums: they would stop this one between two readings."""
    clock = Clock()
    monkeypatch.setattr(loop, "clock", clock)
    window = run(counters, 100_000, size, 0.4, lambda _rows: clock.advance(2_000_000), overlap)
    budget = window.budget()
    assert sum(budget.values()) == window.elapsed_ns
    assert abs(budget["rest"]) <= 0.01 * window.elapsed_ns
    assert budget["write"] >= 2_000_000 * window.samples.count
    assert window.elapsed_ns >= 0.4e9


@pytest.mark.parametrize(("size", "read_ahead"), [(1, 1), (1, 64), (1000, 1)])
def test_at_least_99_percent_of_a_window_at_full_speed_is_accounted_for(
    counters: Counters, size: int, read_ahead: int
) -> None:
    codec, encoded = messages(10_000)
    counters.produced = 1 << 62
    source = Source(Endless(encoded), counters, lambda: True)
    shares = []
    for _ in range(5):  # another process may take the processor between two clock reads, but not each time
        window = StreamWindow(Samples(size))
        run_segment(window, source, codec, lambda _rows: None, 0.2, read_ahead=read_ahead)
        assert window.samples.events > 2_000
        shares.append(abs(window.budget()["rest"]) / window.elapsed_ns)
    assert min(shares) <= 0.01


@pytest.mark.parametrize("read_ahead", [1, 2, 32])
def test_events_read_ahead_are_written_one_by_one_and_counted_once_written(counters: Counters, read_ahead: int) -> None:
    written: list[pa.Table] = []

    def write(rows: pa.Table) -> None:
        time.sleep(0.001)
        written.append(rows)

    window = run(counters, 10_000, 1, 0.2, write, read_ahead=read_ahead)
    ids = [rows.column("id")[0].as_py() for rows in written]
    assert ids == list(range(len(ids))) and {rows.num_rows for rows in written} == {1}
    assert window.samples.count == len(written) < 1_000
    budget = window.budget()
    assert sum(budget.values()) == window.elapsed_ns
    assert abs(budget["rest"]) <= 0.01 * window.elapsed_ns
    for stage in ("poll", "decode", "assemble", "write"):
        assert (window.samples.column(stage) > 0).all(), "each event has times of its own"


@pytest.mark.parametrize("size", [1, 50])
def test_window_ends_at_its_number_of_commits(counters: Counters, size: int) -> None:
    """Reading ahead goes no further than the last commit, so that no more are written than were asked for."""
    codec, encoded = messages(500)
    source = Source(Endless(encoded), counters, lambda: True)
    window = StreamWindow(Samples(size))

    def count(events: int) -> None:
        if events >= 100 * size:
            source.cancel()

    run_segment(window, source, codec, lambda _rows: None, 30, count, 64, 100)
    assert window.operations == 100 and window.elapsed_ns < 30e9


def test_available_events_are_read_without_waiting_for_more(counters: Counters) -> None:
    written: list[pa.Table] = []
    window = run(counters, 5, 1, 0.2, written.append, read_ahead=32)
    assert window.samples.count == len(written) == 5


def test_write_times_are_those_of_the_write(counters: Counters) -> None:
    slept: list[float] = []

    def write(_rows: pa.Table) -> None:
        began = time.perf_counter_ns()
        time.sleep(0.003)
        slept.append(time.perf_counter_ns() - began)

    window = run(counters, 1_000, 10, 0.2, write)
    timed = window.samples.column("write")
    assert (timed >= np.array(slept)).all()
    assert timed.sum() <= window.elapsed_ns


def test_operation_in_progress_at_the_end_is_finished_and_counted(counters: Counters) -> None:
    window = run(counters, 1_000, 1, 0.05, lambda _rows: time.sleep(0.2))
    assert window.samples.count == 1
    assert window.elapsed_ns >= 0.2e9


def test_a_batch_that_does_not_fill_is_not_written(counters: Counters) -> None:
    written: list[pa.Table] = []
    window = run(counters, 25, 10, 0.2, written.append)
    assert window.samples.events == 20
    assert len(written) == 2


def test_waiting_for_the_producer_is_not_counted_as_polling(counters: Counters) -> None:
    window = run(counters, 10, 1, 0.3, lambda _rows: None)
    budget = window.budget()
    assert budget["wait_for_producer"] > 0.9 * window.elapsed_ns
    assert sum(budget.values()) == window.elapsed_ns


class Trickle:
    """Consumer of a topic that its producer fills at a steady rate, the only cause of waiting for a batch."""

    def __init__(self, messages: list[bytes], counters: Counters, per_s: float) -> None:
        self._messages, self._counters, self._per_s = [Message(message) for message in messages], counters, per_s
        self._began = time.perf_counter()
        self._taken = 0

    def _there(self) -> int:
        produced = min(len(self._messages), int((time.perf_counter() - self._began) * self._per_s))
        self._counters.produced = produced
        return produced

    def consume(self, count: int, _timeout: float) -> list[Message]:
        taken = self._messages[self._taken : min(self._there(), self._taken + count)]
        self._taken += len(taken)
        return taken

    def poll(self, timeout: float) -> Message | None:
        deadline = time.perf_counter() + timeout
        while time.perf_counter() < deadline:
            if found := self.consume(1, 0):
                return found[0]
            time.sleep(0.0002)
        return None


@pytest.mark.parametrize("size", [1, 500])
def test_batch_delayed_by_the_producer_is_not_counted_as_polling(counters: Counters, size: int) -> None:
    codec, encoded = messages(20_000)
    source = Source(Trickle(encoded, counters, 3_000), counters, lambda: True)
    window = StreamWindow(Samples(size))
    run_segment(window, source, codec, lambda _rows: None, 1.0)
    budget = window.budget()
    assert window.samples.events >= 1_000
    assert budget["wait_for_producer"] > 0.7 * window.elapsed_ns, budget
    assert budget["poll"] < 0.2 * window.elapsed_ns


@pytest.mark.parametrize(("size", "overlap"), [(1, False), (7, False), (7, True)])
def test_window_continues_after_its_topic_was_refilled(counters: Counters, size: int, overlap: bool) -> None:
    codec, encoded = messages(100)
    memory, written = Memory(encoded[:60]), []
    counters.produced = 60
    source = Source(memory, counters, lambda: True, is_complete=True)
    window = StreamWindow(Samples(size), overlapped=overlap)
    run_segment(window, source, codec, written.append, 5.0)
    assert source.exhausted and window.samples.events == 60 // size * size
    before = window.elapsed_ns
    time.sleep(0.3)
    memory._messages = [Message(message) for message in reversed(encoded[60:])] + memory._messages
    counters.produced = 100
    run_segment(window, source, codec, written.append, 5.0)
    ids = pa.concat_tables(written).column("id").to_numpy()
    assert (ids == np.arange(100 // size * size)).all()
    assert window.stretches == 2 and window.wait_for_producer_ns == 0
    assert before < window.elapsed_ns < before + 0.3e9, "the clock stood still between the stretches"
    assert (np.diff(window.samples.column("start")) > 0).all()
    assert sum(window.budget().values()) == window.elapsed_ns


def test_samples_grow_beyond_what_was_allocated(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "GROW", 64)
    for size in (1, 2):
        assert len(samples.Samples(size).start) == 64
        written: list[pa.Table] = []
        window = run(counters, 1_000, size, 1.0, written.append)
        assert window.samples.count == len(written) == 1_000 // size
        assert (np.diff(window.samples.column("start")) > 0).all()


def test_failing_write_is_reported_with_its_number(counters: Counters) -> None:
    calls: list[int] = []

    def write(_rows: pa.Table) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise ValueError("the table is gone")

    with pytest.raises(SystemFailure, match="write 3 failed: ValueError: the table is gone"):
        run(counters, 100, 1, 1.0, write)


def test_full_disk_raises_its_own_error(counters: Counters) -> None:
    def write(_rows: pa.Table) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for overlap in (False, True):
        with pytest.raises(DiskFull, match="no room left"):
            run(counters, 100, 10, 1.0, write, overlap)


def test_a_dead_producer_ends_the_window_at_once(counters: Counters) -> None:
    """The window, of 20 minutes, would outlast the test's time limit."""
    with pytest.raises(StreamError, match="the producer died"):
        run(counters, 10, 1, 1200.0, lambda _rows: None, alive=False)
