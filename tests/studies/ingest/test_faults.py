"""Tests of the losses of a kill: worked out by hand, with killed and replaced writers on a real table, and planted."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from tidemark.errors import ServiceError
from tidemark.studies.ingest.load.crew import WorkerPool
from tidemark.studies.ingest.load.records import ACKED, CONFLICT, NUMBERS, SENT, UNKNOWN, WIDTH, Records
from tidemark.studies.ingest.load.writer import ID_BITS, ReconnectingWriter, WorkerConfig, publish
from tidemark.studies.ingest.record import Loss, Undisturbed
from tidemark.studies.ingest.window import fault_injection as faults_module
from tidemark.studies.ingest.window.fault_injection import WRITER, Faults, Kill, Look, account
from tidemark.studies.ingest.window.runner import look, states
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.null import NullClientFactory
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

ROWS = 2
DOUBT = NUMBERS[UNKNOWN]


def records(*attempts: tuple[int, int, int, int]) -> np.ndarray:
    """Return the records of attempts that are given as (start, duration, batch, outcome)."""
    return np.array([(start, took, batch, 1, outcome, -1) for start, took, batch, outcome in attempts], np.int64)


def seen(*batches: tuple[int, int], also: Sequence[tuple[int, int, int]] = ()) -> Look:
    """Return a look at all rows of `batches` (writer, number), and at single rows `also` (writer, number, row)."""
    whole = [(writer << ID_BITS) + ROWS * batch + row for writer, batch in batches for row in range(ROWS)]
    return Look(np.array(whole + [(writer << ID_BITS) + ROWS * batch + row for writer, batch, row in also], np.int64))


def killed(at: int, back: int, what: Look, dying: int = 0) -> Kill:
    return Kill("postgres", "PostgreSQL", at, at + dying, at + dying + 5, back, what)


def found(noted: Sequence[np.ndarray], kills: Sequence[Kill], final: Look) -> tuple[Undisturbed, tuple[Loss, ...]]:
    losses = account(noted, 0, (0, seen()), kills, final, ROWS)
    return losses.undisturbed, losses.kills


ONE = records(
    (10, 5, 0, NUMBERS[ACKED]), (20, 5, 1, NUMBERS[ACKED]), (30, 40, 2, DOUBT), (80, 5, 3, NUMBERS[ACKED]),
    (110, 5, 4, NUMBERS[ACKED]), (140, 5, 5, NUMBERS[CONFLICT]), (150, 5, 5, NUMBERS[ACKED]),
)  # fmt: skip
TWO = records((12, 5, 0, NUMBERS[ACKED]), (33, 0, 1, SENT))
THERE = [(1, 0), (1, 1), (1, 3), (1, 4), (2, 0)]


def test_acknowledged_and_unknown_batches_are_counted_for_their_kill() -> None:
    kills = [killed(40, 90, seen(*THERE[:3], (2, 0))), killed(120, 160, seen(*THERE, (1, 2)))]
    undisturbed, (first, second) = found([ONE, TWO], kills, seen(*THERE, (1, 2), (1, 5)))
    assert undisturbed.holds and first.holds and second.holds
    assert (first.acked, first.unknown, first.done, first.not_done, first.in_flight) == (3, 2, 1, 1, 2)
    assert (second.acked, second.unknown, second.in_flight) == (2, 0, 0)
    assert (first.moment_s, first.down_s, first.started_s) == (0.0, 0.0, 0.0)  # the times are a few nanoseconds


def test_attempt_counts_for_the_kill_that_interrupts_it() -> None:
    """Writer 1 is back at 60, and its next attempt is interrupted; writer 2 is back at 90, and killed at 120."""
    one = records((30, 15, 0, DOUBT), (55, 5, 1, NUMBERS[ACKED]), (61, 70, 2, DOUBT), (140, 5, 3, NUMBERS[ACKED]))
    two = records((30, 15, 0, DOUBT), (85, 5, 1, NUMBERS[ACKED]), (88, 0, 2, SENT))
    kills = [killed(40, 90, seen((1, 1), (2, 1))), killed(120, 160, seen((1, 1), (2, 1), (1, 3)))]
    _, (first, second) = found([one, two], kills, seen((1, 1), (2, 1), (1, 3)))
    assert (first.unknown, first.in_flight) == (second.unknown, second.in_flight) == (2, 2)


def test_lost_row_is_counted_for_one_kill_only() -> None:
    kills = [killed(40, 90, seen((1, 0), (2, 0))), killed(120, 160, seen((1, 0), (2, 0), also=[(1, 3, 0)]))]
    _, (first, second) = found([ONE, TWO], kills, seen())
    assert (first.lost, first.holds) == (ROWS, False)
    assert (second.lost, second.partial, second.holds) == (1 + ROWS, 1, False)


def test_row_that_a_dying_server_acknowledged_is_lost_by_its_kill() -> None:
    one = records((30, 12, 0, NUMBERS[ACKED]), (85, 5, 1, NUMBERS[ACKED]))
    kills = [killed(40, 90, seen((1, 1)), dying=5), killed(120, 160, seen((1, 1)))]
    _, (first, second) = found([one], kills, seen((1, 1)))
    assert (first.acked, first.lost, second.lost) == (1, ROWS, 0)


def test_duplicated_rows_and_unreadable_tables_do_not_hold() -> None:
    twice = seen(*THERE[:2], (2, 0), also=[(2, 0, 1)])
    _, (loss,) = found([ONE[:3], TWO], [killed(40, 90, twice)], twice)
    assert (loss.doubled, loss.lost, loss.holds) == (1, 0, False)
    _, (loss,) = found([ONE[:3], TWO], [killed(40, 90, Look(None, "OSError: gone"))], twice)
    assert (loss.lost, loss.holds, loss.said) == (0, False, "OSError: gone")


def test_losses_without_a_kill_are_counted_separately() -> None:
    losses = account([ONE], 0, (26, seen((1, 0))), [killed(40, 90, seen((1, 0)))], seen(), ROWS)
    assert (losses.undisturbed.lost, losses.undisturbed.holds) == (ROWS, False)
    assert [kill.holds for kill in losses.kills] == [True]


def orders(trips: Path, client_factory: ClientFactory) -> Callable[[int], WorkerConfig]:
    place = trips.with_name(".door")
    publish(client_factory, place)

    def order(number: int) -> WorkerConfig:
        return WorkerConfig(
            client_factory, number, trips, ROWS, 5, 0, 1, trips.with_name(f"records-{number}"), 100_000, place
        )

    return order


class Server:
    """Fake server that a planted client connects to."""

    up = True
    opened = 0


class Planted(TableWriter):
    def __init__(self) -> None:
        if not Server.up:
            Server.up = True  # the next attempt succeeds
            raise ConnectionError("refused")
        Server.opened += 1

    def write(self, rows: pa.Table) -> None:
        del rows
        if not Server.up:
            raise ConnectionError("reset")

    def commit_status(self, error: Exception) -> CommitStatus:
        del error
        return CommitStatus.UNKNOWN


class PlantedClientFactory(NullClientFactory):
    def open(self) -> Any:
        return Planted()


def test_writer_reopens_its_client_until_it_succeeds(trips: Path) -> None:
    order = orders(trips, PlantedClientFactory())(1)
    survivor = ReconnectingWriter(order, Records(order.records, order.most))
    survivor.count(2)
    Server.up = False
    survivor.count(3)
    assert Server.opened == 2 and survivor.said == ["ConnectionError: reset", "ConnectionError: refused"]
    whole = np.fromfile(order.records, np.int64).reshape(-1, WIDTH)
    acked = NUMBERS[ACKED]
    assert whole[1 : whole[0, 0] + 1, 4].tolist() == [acked, acked, DOUBT, acked, acked]
    assert whole[1 : whole[0, 0] + 1, 2].tolist() == [0, 1, 2, 3, 4]  # an unknown outcome is not retried
    assert order.place.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("early", [False, True])
def test_kill_loses_only_rows_acknowledged_before_their_commit(
    early: bool, table: DeltaRs, trips: Path, early_factory: Callable[[ClientFactory], ClientFactory]
) -> None:
    client_factory: ClientFactory = early_factory(table.client_factory()) if early else table.client_factory()
    with WorkerPool(orders(trips, client_factory), 2, trips.parent) as crew:
        start = crew.go()
        faults = Faults(crew, table, [], lambda: None, 1, "seed")
        faults.play(start, 1.5)
        crew.end()
        assert crew.numbers == sorted(crew.numbers) and len(crew.numbers) == 2 and crew.ended_seconds() > 0
        assert not crew.has_failed()
        noted = crew.records()
    assert len(noted) == 3
    before = (faults.undisturbed_ns, faults.undisturbed)
    final = Look.at(table)
    found = account(noted, start, before, faults.kills, final, ROWS)
    undisturbed, losses = found.undisturbed, found.kills
    whole = look(table.ids(), {number: states(each) for number, each in enumerate(noted, 1)}, ROWS)
    assert [loss.victim for loss in losses] == [WRITER]
    assert all(loss.acked > 0 and 0 < loss.started_s < loss.down_s for loss in losses), losses
    if early:
        assert sum(loss.lost for loss in losses) > 0 and not all(loss.holds for loss in losses)
        assert "rows lost" in whole.words
    else:
        assert undisturbed.holds and all(loss.holds for loss in losses), losses
        assert whole.is_exact and whole.done + whole.not_done <= 1


def test_unexpected_end_of_a_writer_is_detected(trips: Path) -> None:
    with WorkerPool(orders(trips, NullClientFactory()), 2, trips.parent) as crew:
        crew.kill(1)
        assert not crew.has_failed()
        crew._members[1].process.kill()
        deadline = time.monotonic() + 10
        while not crew.has_failed() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert crew.has_failed()


class Gone:
    """Two writers that succeed until their server is killed, and never afterwards."""

    numbers = (1, 2)

    def __init__(self) -> None:
        self.killed = False

    def has_failed(self) -> bool:
        return False

    def acked_since(self, _number: int, moment_ns: int) -> int | None:
        return None if self.killed else moment_ns


def test_server_that_does_not_recover_ends_the_run_with_its_log(
    table: DeltaRs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults_module, "BACK_S", 0.1)
    monkeypatch.setattr(faults_module.Faults, "_kill_writer", lambda _self: killed(1, 2, seen()))
    crew, log = Gone(), tmp_path / "server.log"
    log.write_text("cannot recover\n")
    kill = functools.partial(setattr, crew, "killed", True)
    server = SimpleNamespace(name="s", title="The server", log_path=log, kill=kill, start=lambda: None)
    faults = Faults(cast(Any, crew), table, [cast(Any, server)], lambda: None, 1, "seed")
    with pytest.raises(ServiceError, match=r"The server was killed, and 0\.1 s later .* of: 1, 2(.|\n)*cannot recover"):
        faults.play(time.perf_counter_ns(), 0.1)


def test_no_further_kills_once_the_table_is_unreadable(table: DeltaRs, monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Look(None, "OSError: gone")
    monkeypatch.setattr(faults_module.Faults, "_kill_writer", lambda _self: killed(1, 2, unread))
    faults = Faults(cast(Any, Gone()), table, [], lambda: None, 5, "seed")
    faults.play(time.perf_counter_ns(), 0.1)
    assert [each.look for each in faults.kills] == [unread]
