"""A system that loses, duplicates or delays rows is caught after its window, on a real table."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark import process_lifetime
from tidemark.config import ServicesConfig, load
from tidemark.dataset import Provenance
from tidemark.errors import OracleError
from tidemark.machine.cold import Method, prove
from tidemark.machine.inventory import inventory
from tidemark.measure.run import RunHistory, measure_run
from tidemark.measure.workload import TestBed
from tidemark.paths import Workspace, private_directory
from tidemark.pipeline.plan import make_plan
from tidemark.services.kafka import Kafka
from tidemark.services.postgres import Postgres
from tidemark.services.servers import Servers, prepared
from tidemark.stream.sizes import weigh
from tidemark.studies.streams.settings import StreamSettings
from tidemark.studies.streams.study import Streams
from tidemark.systems.base import System, Variant
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.files import DuckLakeInlined
from tidemark.systems.ducklake.servers import DuckLake

SHIPPED = Path(__file__).parents[3] / "config.yaml"


class Lossy(DeltaRs):
    """System that drops the 1,000th row it is given."""

    def write(self, rows: pa.Table) -> None:
        super().write(rows.filter(pa.compute.not_equal(rows.column("id"), 999)))


class Duplicating(DeltaRs):
    """System that writes the 1,000th row in place of the one before it, so that the row count is right."""

    def write(self, rows: pa.Table) -> None:
        ids = rows.column("id").to_numpy()
        places = np.where(ids == 998, np.flatnonzero(ids == 999)[0], np.arange(len(ids))) if 999 in ids else None
        super().write(rows if places is None else rows.take(pa.array(places)).combine_chunks())


class Taken(DeltaRs):
    """System that reports success although an interruption came, as a client that converts the exception does."""

    def write(self, rows: pa.Table) -> None:
        with suppress(KeyboardInterrupt):
            super().write(rows)
            signal.raise_signal(signal.SIGINT)


def lazy(kind: Any, method: str) -> type[System]:
    """Return a system that acknowledges writes it only buffers, and commits them when `method` is called."""

    class Lazy(kind):
        def write(self, rows: pa.Table) -> None:
            self.__dict__.setdefault("held", []).append(rows)

        def commit(self) -> None:
            held = self.__dict__.pop("held", [])
            if held:
                super().write(pa.concat_tables(held).combine_chunks())

    def called(self: Any) -> Any:
        self.commit()
        return getattr(kind, method)(self)

    setattr(Lazy, method, called)
    return Lazy


def behind(kind: Any) -> type[System]:
    """Return a system that acknowledges a write while another thread still makes its commit."""

    class Behind(kind):
        def write(self, rows: pa.Table) -> None:
            if "late" in self.__dict__:
                self.late.result()
            pool = self.__dict__.setdefault("pool", ThreadPoolExecutor(1))
            self.late = pool.submit(super().write, rows)

    return Behind


def every_second(kind: Any) -> type[System]:
    """Return a system that combines two writes in one commit and commits any remainder when it is read."""

    class EverySecond(lazy(kind, "ids")):  # type: ignore[misc]
        def write(self, rows: pa.Table) -> None:
            super().write(rows)
            if len(self.held) == 2:
                self.commit()

    return EverySecond


@pytest.fixture(scope="module")
def servers(shared_workspace: Workspace) -> Iterator[Servers]:
    directory = private_directory(shared_workspace.work / "servers")
    with prepared((Kafka, Postgres), shared_workspace, directory, ServicesConfig(kafka_heap_mb=512)) as servers:
        servers.start()
        yield servers


@pytest.fixture
def measure(servers: Servers, workspace: Workspace) -> Callable[[type[System]], Path]:
    def run(system: type[System]) -> Path:
        trips = workspace.root / "trips.parquet"
        pq.write_table(pa.table({"id": np.arange(5_000), "fare": np.arange(5_000) / 4}), trips)
        base = make_plan(load(SHIPPED, ["streams.systems={delta-rs: {}}", "streams.modes=[batch]"])).series[0]
        once = replace(base.disturbance, retries=0)
        settings = replace(StreamSettings.of(base), batch_size=500)
        spec = replace(
            base, name="planted", system=system.name, window_seconds=1.0, settings=settings.pairs, disturbance=once
        )
        work = private_directory(workspace.work / "planted")
        dataset = Provenance("path", False, "trips", "yellow", 5_000, "0" * 64, (), (), (), 0, 4_999)
        target = workspace.root / "run-0"
        variant = Variant("planted", system, system.Options(), system.title)
        weigh(trips).write(trips.with_name("events.json"))
        streams = Streams(spec, variant, trips, workspace.private)
        with streams.start_processes(work) as session:
            machine = inventory(workspace.root)
            test_bed = TestBed(
                spec, variant, servers, streams, dataset, machine, {}, None, work, workspace.root, session
            )
            before = RunHistory(prove(Method.NONE, {}), "cold start")
            measure_run(test_bed, 0, before, False, lambda _what: None)
        return target

    return run


@pytest.mark.parametrize("system", [DeltaRs, DuckLake, DuckLakeInlined])
def test_honest_system_passes(measure: Callable[[type[System]], Path], system: type[System]) -> None:
    target = measure(system)
    assert (target / "run.json").exists()
    assert pq.read_table(target / "operations.parquet").num_rows >= 2


def test_run_that_was_interrupted_is_not_kept(
    measure: Callable[[type[System]], Path], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_lifetime, "_interruptions", [])
    before = {number: signal.getsignal(number) for number in process_lifetime.INTERRUPTIONS}
    process_lifetime.heed_interruptions(once=True)
    try:
        with pytest.raises(KeyboardInterrupt):
            measure(Taken)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert not (workspace.root / "run-0").exists()


@pytest.mark.parametrize(
    ("system", "said"),
    [
        pytest.param(Lossy, "1 missing, 0 more than once", id="loses a row"),
        pytest.param(Duplicating, "1 missing, 1 more than once", id="doubles a row"),
        *(
            pytest.param(lazy(kind, method), r"holds 0 rows.* shows 0 commits", id=f"{kind.name} in {method}")
            for kind in (DeltaRs, DuckLake)
            for method in ("footprint", "data_files", "settings", "inlined_rows")
        ),
        pytest.param(lazy(DuckLakeInlined, "flush"), r"holds 0 rows.* shows 0 commits", id="inlined in flush"),
        # Reading makes it hold all acknowledged rows; only its history gives it away.
        *(
            pytest.param(lazy(kind, "ids"), r" 0 missing.* history shows 1 commits", id=f"{kind.name} in ids")
            for kind in (DeltaRs, DuckLake)
        ),
        pytest.param(behind(DeltaRs), "files were written after the last write had returned", id="in another thread"),
        *(
            pytest.param(every_second(kind), r" 0 missing.* history shows \d+ commits", id=f"{kind.name} two at once")
            for kind in (DeltaRs, DuckLake)
        ),
    ],
)  # fmt: skip
def test_dishonest_system_is_rejected(
    measure: Callable[[type[System]], Path], workspace: Workspace, system: type[System], said: str
) -> None:
    with pytest.raises(OracleError, match=re.compile(said)):
        measure(system)
    assert not (workspace.root / "run-0").exists()
