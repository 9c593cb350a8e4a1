"""Measurement window of the part `ambiguity`: commits hit by a proxy or a kill, and what is in the table after each.

A commit is one row, whose id is its token. Before each, the same client has a row acknowledged that nothing is done
to; after it, the client writes one more row. Another client then reads the table straight from its servers. A table
that is broken is replaced by a new one, so that one hit does not hide the next. Besides these hits, the connections of
writes are cut at random moments, which shows how often a cut loses an answer.
"""

from __future__ import annotations

import itertools
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import SystemFailure
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, DoneWindow, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.runs.manifest import Footprint
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import written
from tidemark.services import fault_proxy
from tidemark.services.fault_proxy import AFTER, CUT_OFF, LATE, RESTART, CommitFaults, CommitKills, FaultProxy
from tidemark.studies.ingest.load.records import CHECK, NEVER
from tidemark.studies.ingest.load.separate import SeparateFactory
from tidemark.studies.ingest.load.writer import ID_BITS, LONGEST, WRITER, batches
from tidemark.studies.ingest.parts import LIMIT_SECONDS, PAST, AmbiguitySettings, committed_by, request_of
from tidemark.studies.ingest.record import LOCAL_DISK, Ambiguity, Outcomes
from tidemark.studies.ingest.settings import table_class
from tidemark.studies.ingest.window.fault_injection import Look
from tidemark.studies.ingest.window.power_failure import Remains
from tidemark.studies.ingest.window.runner import OF_TABLE, fresh_table, versions
from tidemark.systems.object_store import Stored
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory, IdempotencyKey

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.runs.manifest import SystemPart
    from tidemark.services.base import Service

NUMBER = 1  # of the writer
COLOUR = re.compile(r"\x1b\[[\d;]*m")  # in an error's text, for terminals
MOST_TRIES = 4  # writes of one row
MOST_MISSED = 30  # hits in succession that do not count
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Attempted:
    """One row whose commit was hit, in windows of the part `ambiguity`."""

    fault: str  # how its commit was hit: after, before, twice, status, late or restart; cut: at a random moment
    retry: str  # policy of the writer: never, blind or check
    table: int  # number of the table, from 1
    token: int  # id of the row
    start_ns: int  # begin of its first write
    elapsed_ns: int  # time until the writer had it acknowledged, or found it, or gave up
    rows: int  # 1 if it was acknowledged or found, else 0
    tries: int  # writes of it
    copies: int  # how often it is in the table afterwards
    earlier: int  # rows of the table that were acknowledged before it
    earlier_lost: int  # those of them that are not there afterwards
    unread: str  # why the table cannot be read afterwards; empty if it can
    stuck: str  # error at the client's next row; empty if that was acknowledged
    said: str  # first error of the writer
    place: str = ""  # of a cut: before the commit was sent; after, with its answer lost; or once that was answered

    @property
    def is_broken(self) -> bool:
        """True if the table cannot be read, its client cannot go on, or it has lost earlier rows."""
        return bool(self.unread or self.stuck or self.earlier_lost)

    @property
    def is_harmed(self) -> bool:
        """True if it is broken, the row is there more than once, or it was acknowledged and is not there."""
        return self.is_broken or self.copies > 1 or (self.rows == 1 and self.copies == 0)


@dataclass(slots=True)
class HitWindow(DoneWindow[Attempted]):
    """Window of rows whose commits were hit."""

    activity = "hit"


@dataclass(frozen=True, slots=True)
class Contents:
    """Ids in a table as another client reads it; if it cannot, for the reason in `unread`, those of single files."""

    ids: Ints
    unread: str = ""

    @classmethod
    def of(cls, table: TableSystem, folder: Path) -> Contents:
        found = Look.at(table)
        if found.ids is not None:
            return cls(found.ids)
        stored = table.folder if isinstance(table, Stored) else None
        remains = Remains.below(folder) if stored is None else Remains.of(stored.sizes(), stored.file_system())
        return cls(remains.ids, found.said[:LONGEST])

    def copies(self, token: int) -> int:
        return int((self.ids == token).sum())

    def missing(self, tokens: Sequence[int]) -> int:
        return int((~np.isin(np.array(tokens, np.int64), self.ids)).sum())


def outcomes(done: Sequence[Attempted]) -> tuple[Outcomes, ...]:
    """Return the counts of each way and policy, in the order in which they were measured."""
    found = []
    for fault, retry in dict.fromkeys((each.fault, each.retry) for each in done):
        rows = [each for each in done if (each.fault, each.retry) == (fault, retry)]
        counts = Counter((each.rows, min(each.copies, 2)) for each in rows)
        found.append(
            Outcomes(
                fault=fault,
                retry=retry,
                hits=len(rows),
                tables=len({each.table for each in rows}),
                acked_once=counts[1, 1],
                acked_twice=counts[1, 2],
                acked_absent=counts[1, 0],
                error_once=counts[0, 1],
                error_twice=counts[0, 2],
                error_absent=counts[0, 0],
                unreadable=sum(bool(each.unread) for each in rows),
                stuck=sum(bool(each.stuck) for each in rows),
                earlier=sum(each.earlier for each in rows),
                earlier_lost=sum(each.earlier_lost for each in rows),
                harmed=sum(each.is_harmed for each in rows),
                lost=sum(each.place == AFTER for each in rows),
                lost_harmed=sum(each.place == AFTER and each.is_harmed for each in rows),
                said=next((each.said for each in rows if each.said), ""),
                unread=next((each.unread for each in rows if each.unread), ""),
            )
        )
    return tuple(found)


class Client:
    """Client of one table, with a policy for writes that end in an error: NEVER, BLIND or CHECK."""

    def __init__(self, client_factory: ClientFactory, retry: str, wait: Callable[[], None] = lambda: None) -> None:
        """Open the client; `wait` is called before it is opened again, until its server answers."""
        self._factory, self._retry, self._wait = client_factory, retry, wait
        self._writer = client_factory.open()
        self.took_s = 0.0  # of the last row that was acknowledged by `next`

    def write(self, rows: pa.Table, key: IdempotencyKey) -> tuple[bool, int, str]:
        """Return whether `rows` were acknowledged or found, the number of writes, and the first error."""
        said = ""
        for tries in range(1, MOST_TRIES + 1):
            try:
                if self._retry == CHECK:
                    self._writer.write_known(rows, key)
                else:
                    self._writer.write(rows)
                return True, tries, said
            except Exception as error:
                said = said or _words(error)
            if self._retry == NEVER:
                break
            self._wait()
            try:
                self.reopen()
                if self._retry == CHECK and self._writer.has(key):
                    return True, tries, said
            except Exception:  # it cannot tell, and must not guess
                break
        return False, tries, said

    def next(self, rows: pa.Table) -> str:
        """Write `rows` to the table as it is now; return the error, or nothing if they were acknowledged."""
        try:
            self._writer.refresh()
            began = time.perf_counter()
            self._writer.write(rows)
        except Exception as error:
            return _words(error)
        self.took_s = time.perf_counter() - began
        return ""

    def reopen(self) -> None:
        self.close()
        self._writer = self._factory.open()

    def close(self) -> None:
        with suppress(Exception):  # its connection may be gone
            self._writer.close()


def _words(error: Exception) -> str:
    said = COLOUR.sub("", f"{type(error).__name__}: {error}")
    return " ".join(said.split())[:LONGEST]


@dataclass(slots=True)
class Bench:
    """One table and its client, whose commits are hit by `faults`; `acked` are ids of acknowledged rows."""

    table: TableSystem
    folder: Path
    number: int
    client: Client
    retry: str
    faults: CommitFaults
    rows: Callable[[int], pa.Table]  # of a sequence number: one row
    sequence: Iterator[int]  # numbers of rows that no table has
    rng: random.Random = field(default_factory=random.Random)  # of the moments of cuts
    acked: list[int] = field(default_factory=lambda: [OF_TABLE << ID_BITS])

    def hit(self, fault: str, start_ns: int) -> Attempted | None:
        """Write a row and hit its commit, or cut its connections; return None if that does not count.

        The server may have refused the commit, or a cut was to come after the write. Moments are from `start_ns`.
        """
        if fault == CUT_OFF:
            self.client.reopen()  # after 64 cuts DuckDB 1.4.4 has no connection to PostgreSQL left, and says so
            self._undisturbed()  # the first row of a new connection takes longer
        self._undisturbed()
        sequence, earlier = next(self.sequence), len(self.acked)
        row, key = self.rows(sequence), IdempotencyKey(WRITER, sequence, token := _token(sequence))
        self.faults.take()
        self._arm(fault)
        began = time.perf_counter_ns()
        is_acked, tries, said = self.faults.during(lambda: self.client.write(row, key))
        took = time.perf_counter_ns() - began
        hits = self.faults.take()
        if not hits and fault == CUT_OFF:
            self.acked += [token] if is_acked else []
            return None
        if not hits:
            raise SystemFailure(f"no commit was hit, with the fault '{fault}': {said or 'it was acknowledged'}")
        if fault == RESTART:
            self.table.reconnect()
        if (stuck := self._next()) and fault in (CUT_OFF, RESTART):  # it may learn only now that all are gone
            stuck = self._next()
        contents = Contents.of(self.table, self.folder)
        found = Attempted(
            fault=fault,
            retry=self.retry,
            table=self.number,
            token=token,
            start_ns=began - start_ns,
            elapsed_ns=took,
            rows=int(is_acked),
            tries=tries,
            copies=contents.copies(token),
            earlier=earlier,
            earlier_lost=contents.missing(self.acked[:earlier]),
            unread=contents.unread,
            stuck=stuck,
            said=said,
            place=hits[0].fault if fault == CUT_OFF else "",
        )
        if is_acked:
            self.acked.append(token)
        return found if hits[0].counts else None

    def _arm(self, fault: str) -> None:
        if fault != CUT_OFF:
            self.faults.hit_next(fault)
            return
        assert isinstance(self.faults, FaultProxy)
        self.faults.cut_after(self.rng.uniform(0, PAST * self.client.took_s))

    def _undisturbed(self) -> None:
        if said := self._next():
            raise SystemFailure(f"a row that nothing was done to was not acknowledged: {said}")

    def _next(self) -> str:
        """Write a row that nothing is done to; return the error, or nothing if it was acknowledged."""
        sequence = next(self.sequence)
        if not (said := self.client.next(self.rows(sequence))):
            self.acked.append(_token(sequence))
        return said


def _token(sequence: int) -> int:
    return (NUMBER << ID_BITS) + sequence


def proxy_before(kind: type[Service], service: Service) -> FaultProxy:
    """Return the proxy that knows by which requests clients commit to `service`, of the class `kind`."""
    request, (_, port) = request_of(kind), service.host_and_port()
    if request:
        return fault_proxy.HttpFaults(port, request, server=service)
    return fault_proxy.PostgresFaults(port, service)


class AmbiguityRunner(WindowRunner[HitWindow]):
    """Runner of a `HitWindow`, which makes its own tables."""

    _system: SystemPart | None = None

    def __init__(self, test_bed: TestBed, directory: Path) -> None:
        super().__init__(test_bed, directory)
        self._settings = AmbiguitySettings.of(test_bed.spec)
        self._kind = committed_by(test_bed.variant)
        self._service = None if self._kind is None else test_bed.servers.by_class[self._kind]
        self._place = LOCAL_DISK if self._service is None else self._service.title
        self._rows = batches(test_bed.workload.trips, self._settings.rows, NUMBER)
        self._sequence, self._tables = itertools.count(), itertools.count(1)
        spec = test_bed.spec
        self._rng = random.Random(f"{spec.seed} {spec.repeat} {spec.label} cuts")
        self._reader = ""

    def new_window(self) -> HitWindow:
        return HitWindow()

    def execute(self, window: HitWindow, until_seconds: float) -> None:
        """Hit the commits of all ways and policies, however long that takes."""
        del until_seconds
        start_ns = time.perf_counter_ns()
        with self._faults() as faults:
            for fault, retry, hits in self._settings.planned(self.test_bed.variant):
                wanted = len(window.done) + hits
                while len(window.done) < wanted and not self.is_cancelled:
                    with self._bench(faults, fault, retry) as bench:
                        self._until_harmed(bench, fault, start_ns, window, wanted)
        window.elapsed_ns = time.perf_counter_ns() - start_ns

    def _until_harmed(self, bench: Bench, fault: str, start_ns: int, window: HitWindow, wanted: int) -> None:
        """Hit commits to one table until `window` has the rows that are `wanted`, or the table is broken."""
        missed = 0
        while len(window.done) < wanted and not self.is_cancelled:
            row = bench.hit(fault, start_ns)
            missed = missed + 1 if row is None else 0
            if missed == MOST_MISSED:
                raise SystemFailure(f"{missed} hits did not count, with the fault '{fault}' ({self._place})")
            if row is None:
                continue
            window.done.append(row)
            if row.is_broken:
                return

    @contextmanager
    def _bench(self, faults: CommitFaults, fault: str, retry: str) -> Iterator[Bench]:
        """Yield a new table and a client that `faults` can hit; one whose answer is to be LATE has a time limit."""
        number = next(self._tables)
        folder = self.directory / f"table-{number}"
        with ExitStack() as stack:
            table = fresh_table(self.test_bed, folder, stack, self._settings.rows)
            if self._system is None:
                self._system = system_part(self.test_bed.variant, table, self.test_bed.workload.trips_schema)
                self._reader = table.reader
            client = Client(self._client_factory(table, folder, faults, fault), retry, faults.wait)
            stack.callback(client.close)
            yield Bench(table, folder, number, client, retry, faults, self._rows, self._sequence, self._rng)

    def _faults(self) -> CommitFaults:
        if self._kind is None or self._service is None:
            return CommitKills(self.directory)
        return proxy_before(self._kind, self._service)

    def _client_factory(self, table: TableSystem, folder: Path, faults: CommitFaults, fault: str) -> ClientFactory:
        if isinstance(faults, CommitKills):
            return SeparateFactory(table.client_factory(), folder, faults.of)
        assert isinstance(faults, FaultProxy) and self._kind is not None and self._service is not None
        reached = table.reached_by({**self.test_bed.servers.by_class, self._kind: self._service.by_way_of(faults.port)})
        return (reached.waiting(LIMIT_SECONDS) if fault == LATE else reached).client_factory()

    def finish(self, window: HitWindow) -> None:
        self.test_bed.servers.check()
        if not window.done:
            raise SystemFailure("the window was abandoned before a commit was hit")

    def check(self, window: HitWindow, last: bool, show: ProgressCallback) -> CheckResult:
        """Sum up what was read after each hit."""
        del last, show
        done = window.done
        missing = sum(each.earlier_lost + (each.rows == 1 and each.copies == 0) for each in done)
        counts = (window.rows, sum(each.copies for each in done), missing, sum(each.copies > 1 for each in done), 0)
        verdict = not any(each.is_harmed for each in done)
        reason = "it has many tables, some of which were harmed on purpose"
        return CheckResult(Oracle(verdict, True, *counts, self._reader, 0.0), Footprint(0, 0, 0, 0, None, reason))

    def describe(self, window: HitWindow) -> RunMetadata:
        assert self._system is not None
        limit = "" if self._kind is None else table_class(self.test_bed.variant).time_limit or ""
        found = written(Ambiguity(self._place, outcomes(window.done), limit))
        mark = "its commits were lost on purpose, or the answers to them"
        return RunMetadata(system=self._system, versions=versions(), marks=(mark,), found=found)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[AmbiguityRunner]:
    """Yield a runner whose tables are below the folder `name`."""
    del seconds, show
    with test_bed.folder(name) as directory:
        yield AmbiguityRunner(test_bed, directory)
