"""Conformance suite for every destination of complete tables in the registry, on real servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conformance.conftest import ODD, Servers

from tidemark.errors import SystemFailure
from tidemark.software.tools import packages, provide_tool
from tidemark.studies.deltars.oracle import Comparer
from tidemark.systems.base import Capability, Context
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.bulk.process import Client
from tidemark.systems.registry import of_kind

Opened = Callable[[type[BulkTable]], BulkTable]
ROWS, KEYS = 1000, ("s_suppkey",)
LONGEST_S = 180.0
SLOW = pytest.mark.long(reason="a minute each, and the legacy path has all their steps")
NAMES = [
    pytest.param(name, marks=SLOW) if kind.is_slow and name != "legacy" else name
    for name, kind in of_kind(BulkTable).items()
]


@pytest.fixture
def opened(servers: Servers, tmp_path: Path) -> Iterator[Opened]:
    folder = tmp_path / ODD / "tables"  # the last part names folders on servers as well
    folder.mkdir(parents=True)
    with ExitStack() as stack:

        def opened(kind: type[BulkTable]) -> BulkTable:
            services = {needed: servers.get(needed) for needed in kind.needs_for(kind.Options())}
            for tool in kind.tools:
                provide_tool(tool, servers.workspace)
            system = kind(Context(folder, services, 1, tools=packages(kind.tools, servers.workspace)), kind.Options())
            stack.callback(system.close)
            return system

        yield opened


@pytest.fixture
def source(tmp_path: Path) -> Path:
    numbers = range(ROWS)
    rows = {
        "s_suppkey": pa.array(numbers, pa.int64()),
        "s_line": pa.array([number % 7 for number in numbers], pa.int32()),
        "s_name": pa.array([f"näme {number}" for number in numbers]),
        "s_price": pa.array([Decimal(number - 500) / 100 for number in numbers], pa.decimal128(15, 2)),
        "s_day": pa.array([date(1992, 1, 1) + timedelta(number) for number in numbers]),
    }
    pq.write_table(pa.table(rows), tmp_path / "source.parquet")
    return tmp_path / "source.parquet"


@pytest.mark.parametrize("name", NAMES)
def test_table_is_written_read_back_compared_and_removed(
    name: str, opened: Opened, source: Path, tmp_path: Path
) -> None:
    kind = of_kind(BulkTable)[name]
    system = opened(kind)
    with Client(system, os.sched_getaffinity(0), tmp_path) as client:
        assert set(client.versions) >= {"pyarrow"}
        system.make_room("table-1")
        written = client.write(source, KEYS, system.address("table-1"), LONGEST_S)
        assert written["rows"] == ROWS and written["elapsed_ns"] > 0 and written["source_ns"] > 0
        # Consecutive steps sum to at most the total.
        steps = written["steps"]
        assert bool(steps) == kind.is_slow and sum(steps.values()) <= written["elapsed_ns"]
        assert all(took > 0 for took in steps.values())
        read = client.read(system.address("table-1"), tmp_path / "read.parquet", 60) if kind.reads else written
    if Capability.READ_BACK not in kind.capabilities:
        assert system.footprint("table-1").data_bytes == 0
        return
    assert read["rows"] == ROWS == system.counted("table-1")
    with Comparer(source, KEYS, kind.extensions, tmp_path) as comparer:
        assert comparer.compare(system.relation(system.fetched("table-1", tmp_path / "fetched"))).holds
        if kind.reads:
            assert comparer.compare(f"read_parquet('{tmp_path / 'read.parquet'}')").holds
    footprint = system.footprint("table-1")
    sizes = system.listed("table-1")
    assert footprint.data_bytes + footprint.metadata_bytes == sum(sizes.values()) > 0
    assert footprint.data_files + footprint.metadata_files == len(sizes)
    system.remove("table-1")
    system.remove("table-1")


def test_existing_table_is_not_overwritten(opened: Opened, source: Path, tmp_path: Path) -> None:
    system = opened(of_kind(BulkTable)["delta-rs-local"])
    with Client(system, os.sched_getaffinity(0), tmp_path) as client:
        client.write(source, KEYS, system.address("table-1"), 60)
        with pytest.raises(SystemFailure, match=r"the client could not write: .*already exists"):
            client.write(source, KEYS, system.address("table-1"), 60)


def test_truncated_data_file_is_detected(opened: Opened, source: Path, tmp_path: Path) -> None:
    system = opened(of_kind(BulkTable)["delta-rs-local"])
    with Client(system, os.sched_getaffinity(0), tmp_path) as client:
        client.write(source, KEYS, system.address("table-1"), 60)
    (data,) = Path(system.address("table-1")).glob("*.parquet")
    os.truncate(data, data.stat().st_size - 1)
    with pytest.raises(SystemFailure, match=r"the log of table-1 names .*\.parquet with"):
        system.counted("table-1")


def test_client_is_bound_to_its_processors_and_its_end_reported(opened: Opened, source: Path, tmp_path: Path) -> None:
    system = opened(of_kind(BulkTable)["delta-rs-local"])
    one = min(os.sched_getaffinity(0))
    with Client(system, {one}, tmp_path) as client:
        assert os.sched_getaffinity(client.pid) == {one} and client.is_alive()
        os.kill(client.pid, 9)
        with pytest.raises(SystemFailure, match="the client ended on its own"):
            client.write(source, KEYS, system.address("table-1"), 60)
