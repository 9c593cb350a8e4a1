"""The front and its policies over sockets, with fake clients of a table; test_killed uses a real table on the disk."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from tidemark.studies.ingest.gateway import protocol
from tidemark.studies.ingest.gateway.group_commit import FileBundling, GroupCommit, PerRequest, Policy
from tidemark.studies.ingest.gateway.protocol import Answer, Connection, GatewayClient, Outcome
from tidemark.studies.ingest.gateway.server import Gateway, Limits
from tidemark.systems.writers import ClientFactory, CommitStatus, DataFile, TableWriter

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
TOKEN = protocol.new_token()
LONG_MS = 60_000.0


class Planted(ClientFactory, TableWriter):
    """In-memory table that is also each of its clients: commits wait for `gate` and end as `ends` lists, in order."""

    def __init__(self, ends: Sequence[CommitStatus | None] = ()) -> None:
        self.commits: list[list[int]] = []
        self.staged: list[pa.Table] = []
        self.gate = threading.Event()
        self.gate.set()
        self.tried = self.closed = self.at_once = self.most_at_once = 0
        self._ends, self._lock = list(ends), threading.Lock()

    def open(self) -> Planted:
        return self

    def write(self, rows: pa.Table) -> None:
        with self._lock:
            self.tried += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            end = self._ends.pop(0) if self._ends else None
        self.gate.wait(10)
        with self._lock:
            self.at_once -= 1
            if end is not None:
                raise ValueError(end)
            self.commits.append(rows.column("id").to_pylist())

    def stage(self, rows: pa.Table) -> DataFile:
        with self._lock:
            if rows.column("id")[0].as_py() < 0:
                raise OSError("no space")
            self.staged.append(rows)
            return DataFile(str(len(self.staged) - 1), rows.nbytes, rows.num_rows)

    def register(self, files: Sequence[DataFile]) -> None:
        self.write(pa.concat_tables([self.staged[int(each.path)] for each in files]))

    def commit_status(self, error: Exception) -> CommitStatus:
        return CommitStatus(error.args[0])

    def close(self) -> None:
        self.closed += 1


def batch(first: int, rows: int = 2, text: str = "") -> pa.RecordBatch:
    return pa.record_batch([list(range(first, first + rows)), [text] * rows], schema=SCHEMA)


def fronted(
    table: Planted, policy: Policy, work: Callable[[Gateway, int], Awaitable[Any]], writers: int = 1, **given: Any
) -> Any:
    """Return the result of `work`, called with a front and its port; drain the front afterwards."""

    async def run() -> Any:
        front = Gateway(table, SCHEMA, policy, token=TOKEN, writers=writers, **given)
        port = await front.start()
        try:
            return await asyncio.wait_for(work(front, port), 20)
        finally:
            table.gate.set()
            await front.drain()

    return asyncio.run(run())


async def opened(port: int) -> Connection:
    return await Connection.open(("127.0.0.1", port), TOKEN, SCHEMA)


async def asked(port: int, rows: pa.RecordBatch) -> Answer:
    connection = await opened(port)
    answer = await connection.send(protocol.request(rows))
    connection.close()
    return answer


def at_once(port: int, *requests: pa.RecordBatch) -> asyncio.Future[list[Answer]]:
    return asyncio.gather(*(asked(port, each) for each in requests))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


POLICIES = (PerRequest(), GroupCommit(max_age_ms=1), FileBundling(max_age_ms=1, window_ms=1))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_nothing_is_acknowledged_before_its_commit_returns(policy: Policy) -> None:
    table = Planted()
    table.gate.clear()

    async def work(_: Gateway, port: int) -> tuple[list[Answer], bool]:
        answers = at_once(port, *(batch(10 * number) for number in range(4)))
        await until(lambda: table.tried > 0)
        _, waiting = await asyncio.wait([answers], timeout=0.1)
        table.gate.set()
        return await answers, bool(waiting)

    answers, waited = fronted(table, policy, work)
    assert waited and {each.outcome for each in answers} == {Outcome.ACKED}
    ids = [number for commit in table.commits for number in commit]
    assert sorted(ids) == sorted([10 * n + i for n in range(4) for i in range(2)])
    numbers = [each.commit for each in answers]
    assert set(numbers) == set(range(1, len(table.commits) + 1))
    assert (len(set(numbers)) == 4) == isinstance(policy, PerRequest)


def test_direct_commits_each_request_with_the_given_number_of_clients() -> None:
    table = Planted()
    table.gate.clear()

    async def work(_: Gateway, port: int) -> list[Answer]:
        answers = at_once(port, *(batch(10 * number) for number in range(6)))
        await until(lambda: table.tried == 3)
        await asyncio.sleep(0.05)
        table.gate.set()
        return await answers

    answers = fronted(table, PerRequest(), work, writers=3)
    assert sorted(each.commit for each in answers) == [1, 2, 3, 4, 5, 6]
    assert table.most_at_once == 3 and all(len(ids) == 2 for ids in table.commits) and table.closed == 3


BYTES = len(protocol.request(batch(0))) - protocol.LENGTH.size


@pytest.mark.parametrize(
    ("policy", "together"),
    [
        (GroupCommit(max_rows=6, max_age_ms=LONG_MS), 3),
        (GroupCommit(max_bytes=4 * BYTES, max_age_ms=LONG_MS), 4),
        (FileBundling(max_rows=6, max_age_ms=LONG_MS), 3),
    ],
    ids=["rows", "bytes", "bundled"],
)
def test_buffer_is_flushed_at_its_limit_of_rows_or_bytes(policy: GroupCommit, together: int) -> None:
    table = Planted()

    async def work(front: Gateway, port: int) -> None:
        for first in (0, 100):
            some = at_once(port, *(batch(first + 10 * number) for number in range(together - 1)))
            await until(lambda: front.limits.waiting_bytes - front.room.free == (together - 1) * BYTES)
            await asyncio.sleep(0.05)
            assert len(table.commits) == first // 100  # one too few for a flush: they wait
            assert (await asked(port, batch(first + 90))).outcome is Outcome.ACKED
            await some

    fronted(table, policy, work)
    assert [len(ids) // 2 for ids in table.commits] == [together] * 2


def test_buffer_is_flushed_at_the_age_limit_of_its_oldest_request() -> None:
    table = Planted()

    async def work(front: Gateway, port: int) -> tuple[float, list[Answer]]:
        began = asyncio.get_running_loop().time()
        first = at_once(port, batch(0))
        await until(lambda: front.room.free < front.limits.waiting_bytes)
        await asyncio.sleep(0.1)
        second = at_once(port, batch(10))
        found = await first + await second
        return asyncio.get_running_loop().time() - began, found

    took, answers = fronted(table, GroupCommit(max_age_ms=400), work)
    assert took >= 0.4 and answers == [Answer(Outcome.ACKED, 1)] * 2 and table.commits == [[0, 1, 10, 11]]


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (CommitStatus.FAILED, Outcome.FAILED),
        (CommitStatus.UNKNOWN, Outcome.UNKNOWN),
        (CommitStatus.CONFLICT, Outcome.REFUSED),
    ],
)
@pytest.mark.parametrize(
    "policy", [GroupCommit(max_rows=6, max_age_ms=LONG_MS), FileBundling(6, max_age_ms=LONG_MS)], ids=str
)
def test_failed_commit_is_reported_to_all_its_requests(policy: Policy, end: CommitStatus, outcome: Outcome) -> None:
    table = Planted([end, end])

    async def work(front: Gateway, port: int) -> tuple[list[Answer], list[Answer], tuple[str, ...]]:
        requests = [batch(10 * number) for number in range(3)]
        return await at_once(port, *requests), await at_once(port, *requests), front.said

    first, second, said = fronted(table, policy, work, tries=2)
    assert first == [Answer(outcome)] * 3
    # A conflict used up both ends by itself; an unknown outcome and a failure are not retried.
    assert (
        second
        == [Answer(outcome if end is not CommitStatus.CONFLICT else Outcome.ACKED, int(end is CommitStatus.CONFLICT))]
        * 3
    )
    assert len(table.commits) == (end is CommitStatus.CONFLICT) and said[0].startswith("ValueError")


def test_conflict_is_retried_and_acknowledged_once() -> None:
    table = Planted([CommitStatus.CONFLICT, CommitStatus.CONFLICT])
    answer = fronted(table, PerRequest(), lambda _, port: asked(port, batch(1)), tries=3)
    assert answer == Answer(Outcome.ACKED, 1) and table.tried == 3 and table.commits == [[1, 2]]


def test_bundled_files_are_one_commit_and_a_file_that_fails_fails_alone() -> None:
    table = Planted()

    async def work(front: Gateway, port: int) -> list[Answer]:
        asking = []
        for number, rows in enumerate((batch(10), batch(20), batch(-9), batch(30)), 1):  # one flush each
            asking.append(asyncio.create_task(asked(port, rows)))
            await until(lambda number=number: len(table.staged) + len(front.said) == number)  # type: ignore[misc]
        return await asyncio.gather(*asking)

    policy = FileBundling(max_rows=2, max_age_ms=LONG_MS, window_ms=LONG_MS, max_files=3)
    answers = fronted(table, policy, work, writers=2)
    assert [each.outcome for each in answers] == [Outcome.ACKED, Outcome.ACKED, Outcome.FAILED, Outcome.ACKED]
    assert len(table.staged) == 3 and len(table.commits) == 1 and {each.commit for each in answers} == {0, 1}


def test_full_front_stops_reading_answers_busy_and_bounds_its_memory() -> None:
    table = Planted()
    table.gate.clear()
    size = len(protocol.request(batch(0, text="x" * 50_000))) - protocol.LENGTH.size
    limits = Limits(waiting_bytes=2 * size, request_bytes=size, busy_after_s=0.3)

    async def work(front: Gateway, port: int) -> tuple[list[Answer], Answer]:
        answers = at_once(port, *(batch(10 * number, text="x" * 50_000) for number in range(8)))
        await until(lambda: front.busy == 6)
        assert front.room.least_free == front.room.free == 0
        table.gate.set()
        found = await answers
        await until(lambda: front.room.free == 2 * size)
        return found, await asked(port, batch(99))

    answers, after = fronted(table, PerRequest(), work, limits=limits)
    told = sorted(each.outcome for each in answers)
    assert told == [Outcome.ACKED] * 2 + [Outcome.BUSY] * 6 and after.outcome is Outcome.ACKED
    written = {number for ids in table.commits for number in ids}
    acked = {10 * n for n, each in enumerate(answers) if each.outcome is Outcome.ACKED}
    assert written == {first + i for first in acked for i in range(2)} | {99, 100}
    with pytest.raises(ValueError, match="never be taken in"):
        Gateway(table, SCHEMA, PerRequest(), token=TOKEN, limits=Limits(waiting_bytes=1))


def test_requests_that_wait_for_room_are_all_acknowledged() -> None:
    table = Planted()
    table.gate.clear()
    size = len(protocol.request(batch(0))) - protocol.LENGTH.size
    limits = Limits(waiting_bytes=size, request_bytes=size, busy_after_s=10)

    async def work(_: Gateway, port: int) -> list[Answer]:
        answers = at_once(port, *(batch(10 * number) for number in range(5)))
        await until(lambda: table.tried == 1)
        table.gate.set()
        return await answers

    assert {each.outcome for each in fronted(table, PerRequest(), work, limits=limits)} == {Outcome.ACKED}
    assert table.most_at_once == 1


def test_invalid_request_is_refused_and_affects_no_other() -> None:
    table = Planted()

    async def work(front: Gateway, port: int) -> None:
        connection = await opened(port)
        assert (await connection.send(protocol.LENGTH.pack(4) + b"junk")).outcome is Outcome.FAILED
        too_long = protocol.LENGTH.pack(front.limits.request_bytes + 1) + bytes(front.limits.request_bytes + 1)
        assert (await connection.send(too_long)).outcome is Outcome.FAILED
        other = pa.record_batch([["x"]], names=["id"])
        assert (await connection.send(protocol.request(other))).outcome is Outcome.FAILED
        assert await connection.send(protocol.request(batch(1))) == Answer(Outcome.ACKED, 1)
        with suppress(ConnectionError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n" + bytes(100))
            assert await reader.read() == b""
        for token, schema in ((protocol.new_token(), SCHEMA), (TOKEN, other.schema)):
            with pytest.raises(PermissionError):
                await Connection.open(("127.0.0.1", port), token, schema)

    fronted(table, PerRequest(), work)
    assert table.commits == [[1, 2]]


@pytest.mark.parametrize(
    "policy", [GroupCommit(max_age_ms=LONG_MS), FileBundling(max_age_ms=LONG_MS)], ids=lambda p: p.name
)
def test_drained_front_commits_and_answers_accepted_requests(policy: Policy) -> None:
    table = Planted()

    async def run() -> tuple[list[Answer], Answer]:
        front = Gateway(table, SCHEMA, policy, token=TOKEN)
        port = await front.start()
        idle = await opened(port)
        answers = at_once(port, batch(1), batch(10))
        await until(lambda: front.room.free < front.limits.waiting_bytes)
        await asyncio.sleep(0.05)
        await front.drain()
        return await answers, await idle.send(protocol.request(batch(20)))

    answers, late = asyncio.run(asyncio.wait_for(run(), 20))
    assert [each.outcome for each in answers] == [Outcome.ACKED] * 2 and late.outcome is Outcome.UNKNOWN
    assert len(table.commits) == 1 and sorted(table.commits[0]) == [1, 2, 10, 11]


def test_blocking_client_is_answered_and_a_disconnected_one_does_no_harm() -> None:
    table = Planted()

    async def work(_: Gateway, port: int) -> tuple[Answer, Answer]:
        with socket.create_connection(("127.0.0.1", port)) as gone:
            gone.sendall(protocol.hello(TOKEN, SCHEMA) + protocol.request(batch(50)))

        def ask() -> tuple[Answer, Answer]:
            with GatewayClient(("127.0.0.1", port), TOKEN, SCHEMA) as client:
                return client.send(batch(1)), client.send(batch(3))

        return await asyncio.to_thread(ask)

    answers = fronted(table, GroupCommit(max_age_ms=1), work)
    assert {each.outcome for each in answers} == {Outcome.ACKED}
    assert sorted(number for ids in table.commits for number in ids) == [1, 2, 3, 4, 50, 51]
