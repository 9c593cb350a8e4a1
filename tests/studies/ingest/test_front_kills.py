"""Tests of killing and restarting a front with waiting requests, on a real table and with early acknowledgements."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tidemark.studies.ingest.gateway.group_commit import GroupCommit
from tidemark.studies.ingest.gateway.protocol import new_token
from tidemark.studies.ingest.gateway.server import GatewayConfig
from tidemark.studies.ingest.load.crew import GatewayPool
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, UNKNOWN
from tidemark.studies.ingest.window.fault_injection import Faults, Look, account, commits_of
from tidemark.studies.ingest.window.runner import look, states
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.writers import ClientFactory

ROWS, CLIENTS, KILLS = 2, 4, 2
POLICY = GroupCommit(max_rows=8_000, max_age_ms=20)


@pytest.mark.parametrize("early", [False, True])
def test_killing_the_front_loses_only_rows_acknowledged_before_their_commit(
    early: bool, table: DeltaRs, trips: Path, early_factory: Callable[[ClientFactory], ClientFactory]
) -> None:
    client_factory = early_factory(table.client_factory()) if early else table.client_factory()
    order = GatewayConfig(client_factory, pq.read_schema(trips), POLICY, new_token(), writers=1, tries=20)
    with GatewayPool(order, trips, ROWS, CLIENTS, 0, 100_000, trips.parent, reconnects=True) as crew:
        first = crew.pids
        start = crew.go()
        faults = Faults(crew, table, [crew], lambda: None, KILLS, "seed", of_writers=False)
        faults.play(start, 3.0)
        crew.end()
        assert crew.pids != first and crew.ended_seconds() > 0 and not crew.has_failed()
        noted = crew.records()
    before = (faults.undisturbed_ns, faults.undisturbed)
    found = account(noted, start, before, faults.kills, Look.at(table), ROWS)
    undisturbed, losses = found.undisturbed, found.kills
    whole = look(table.ids(), {number: states(each) for number, each in enumerate(noted, 1)}, ROWS)
    assert [(loss.victim, loss.title) for loss in losses] == [("front", "the buffer's process")] * KILLS
    for loss in losses:
        assert loss.acked > 0 and 0 < loss.started_s < loss.down_s, losses
        assert 0 < loss.in_flight <= CLIENTS == loss.unknown == loss.done + loss.not_done, losses
    if early:
        assert sum(loss.lost for loss in losses) > 0 and not all(loss.holds for loss in losses)
        assert "rows lost" in whole.words
    else:
        assert undisturbed.holds and all(loss.holds for loss in losses), losses
        assert whole.is_exact and whole.done + whole.not_done == KILLS * CLIENTS
        killed = [kill.killed_ns for kill in faults.kills]
        requests = sum(int((each[:, 4] == NUMBERS[ACKED]).sum()) for each in noted)
        assert 0 < commits_of(noted, killed) < requests


def test_unexpected_end_of_a_front_is_detected(table: DeltaRs, trips: Path) -> None:
    order = GatewayConfig(table.client_factory(), pq.read_schema(trips), POLICY, new_token(), writers=1, tries=20)
    with GatewayPool(order, trips, ROWS, 1, 0, 1_000, trips.parent, reconnects=True) as crew:
        crew.kill()
        assert not crew.has_failed()
        crew.start()
        crew._programs[0].process.kill()
        deadline = time.monotonic() + 10
        while not crew.has_failed() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert crew.has_failed()


def test_each_front_numbers_its_own_commits() -> None:
    """Each record has the start, duration, number, attempt, outcome and commit of a request."""
    acked, unknown = NUMBERS[ACKED], NUMBERS[UNKNOWN]
    one = [(10, 5, 0, 1, acked, 1), (20, 5, 1, 1, acked, 2), (30, 40, 2, 1, unknown, -1), (80, 5, 3, 1, acked, 1)]
    two = [(11, 4, 0, 1, acked, 1), (39, 9, 1, 1, acked, 2), (90, 5, 2, 1, acked, 2)]
    assert commits_of([np.array(one), np.array(two)], [40]) == 4
    assert commits_of([np.array(one), np.array(two)], []) == 2
