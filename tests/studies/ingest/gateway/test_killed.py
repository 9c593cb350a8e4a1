"""A front is killed or terminated with requests under way; one that acknowledges too early is detected."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemark.studies.ingest.gateway import protocol
from tidemark.studies.ingest.gateway.group_commit import (
    FileBundling,
    GroupCommit,
    GroupCommitter,
    PerRequest,
    Policy,
    Request,
)
from tidemark.studies.ingest.gateway.protocol import Answer, Connection, GatewayClient, Outcome
from tidemark.studies.ingest.gateway.server import Gateway, GatewayConfig
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.window.runner import ACKED_BATCH, REFUSED_BATCH, UNKNOWN_BATCH, Finding, look
from tidemark.systems.base import Context
from tidemark.systems.delta.delta_rs import DeltaRs

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float64())])
TOKEN = protocol.new_token()
ROWS, CLIENTS = 5, 4
STATES = {Outcome.ACKED: ACKED_BATCH, Outcome.UNKNOWN: UNKNOWN_BATCH}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[DeltaRs]:
    system = DeltaRs(Context(tmp_path, {}, ROWS), DeltaRs.Options())
    system.create(SCHEMA)
    yield system
    system.close()


def batch(client: int, sequence: int) -> pa.RecordBatch:
    ids = np.arange(ROWS) + ((client << ID_BITS) + ROWS * sequence)
    return pa.record_batch([ids, np.zeros(ROWS)], schema=SCHEMA)


def found(table: DeltaRs, told: dict[int, list[Answer]]) -> Finding:
    """Return the finding of the study's oracle on a table, given the answers that clients received."""
    states = {
        client: np.array([STATES.get(each.outcome, REFUSED_BATCH) for each in answers])
        for client, answers in told.items()
    }
    return look(table.ids(), states, ROWS)


class Asking(threading.Thread):
    """Client that sends requests until one is not acknowledged."""

    def __init__(self, number: int, port: int) -> None:
        super().__init__()
        self.number, self.answers = number, list[Answer]()
        self._client = GatewayClient(("127.0.0.1", port), TOKEN, SCHEMA)

    def run(self) -> None:
        while not self.answers or self.answers[-1].outcome is Outcome.ACKED:
            self.answers.append(self._client.send(batch(self.number, len(self.answers))))
        self._client.close()


@pytest.mark.parametrize("policy", [PerRequest(), GroupCommit(), FileBundling()], ids=lambda policy: policy.name)
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_ended_front_has_committed_all_acknowledged_requests(
    table: DeltaRs, policy: Policy, by: signal.Signals
) -> None:
    order = GatewayConfig(table.client_factory(), SCHEMA, policy, TOKEN, writers=2, tries=20)
    with subprocess.Popen(
        [sys.executable, "-m", "tidemark.studies.ingest.gateway.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as front:
        assert front.stdin is not None and front.stdout is not None
        front.stdin.write(pickle.dumps(order))
        front.stdin.flush()
        port = int(front.stdout.readline().split()[1])
        asking = [Asking(number, port) for number in range(1, CLIENTS + 1)]
        for client in asking:
            client.start()
        while min(len(client.answers) for client in asking) < 3:
            assert front.poll() is None
        front.send_signal(by)
        for client in asking:
            client.join(30)
        said = front.stdout.read()
    told = {client.number: client.answers for client in asking}
    finding = found(table, told)
    assert finding.is_exact, finding.words
    assert finding.expected == ROWS * sum(each.outcome is Outcome.ACKED for a in told.values() for each in a) > 0
    last = [answers[-1] for answers in told.values()]
    assert {each.outcome for each in last} == {Outcome.UNKNOWN}  # the connection ended
    assert said.startswith(b"done") == (by is signal.SIGTERM) == (front.returncode == 0)


class TooEarly(GroupCommitter):
    """Committer that acknowledges a request that has only joined its buffer."""

    def _take_in(self, request: Request) -> None:
        super()._take_in(request)
        request.answer.set_result(Answer(Outcome.ACKED, 1))


@pytest.mark.parametrize("early", [True, False])
def test_policy_that_acknowledges_before_the_commit_is_detected_when_it_dies(table: DeltaRs, early: bool) -> None:
    """Let the buffer die: it is not drained."""
    policy = GroupCommit(max_rows=2 * ROWS * CLIENTS, max_age_ms=60_000)

    async def run() -> dict[int, list[Answer]]:
        front = Gateway(table.client_factory(), SCHEMA, policy, token=TOKEN)
        port = await front.start()
        if early:
            front._committer = TooEarly(front._hands, policy)
        connections = [await Connection.open(("127.0.0.1", port), TOKEN, SCHEMA) for _ in range(CLIENTS)]
        told: dict[int, list[Answer]] = {}
        for sequence in range(3 if early else 1):
            asking = [each.send(protocol.request(batch(n, sequence))) for n, each in enumerate(connections, 1)]
            answers = asyncio.gather(*asking)
            await asyncio.wait([answers], timeout=5 if early else 0.3)
            for client in range(1, CLIENTS + 1):
                answer = answers.result()[client - 1] if answers.done() else Answer(Outcome.UNKNOWN)
                told.setdefault(client, []).append(answer)
        for hand in front._hands:
            await hand.close()
        return told

    finding = found(table, asyncio.run(run()))
    assert finding.is_exact is not early
    assert (finding.lost >= ROWS * CLIENTS and "lost" in finding.words) if early else finding.not_done == CLIENTS
