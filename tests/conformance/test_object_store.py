"""Tables whose files lie in an S3 server: written, read by another client, measured, merged, written concurrently."""

from __future__ import annotations

import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.measure import table_calls
from tidemark.services.iceberg.backends import IcebergRestS3
from tidemark.systems.base import Capability
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.servers import DuckLake
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.object_store import S3, Stored
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .test_writers import write
from .trips import YELLOW, assert_same_rows, stored_schema, trips

OpenTable = Callable[..., Any]


def may_be_elsewhere(kind: type[Any]) -> bool:
    return "storage" in {field.name for field in dataclasses.fields(kind.Options)}


KINDS = {name: kind for name, kind in of_kind(TableSystem).items() if may_be_elsewhere(kind)}


def opened(open_table: OpenTable, kind: type[Any]) -> Any:
    system = open_table(kind, kind.Options(storage=S3))
    system.create(YELLOW)
    return system


def test_promised_systems_support_object_storage() -> None:
    assert {"ducklake", "iceberg-pyiceberg", "iceberg-duckdb", "delta-rs"} <= set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_written_files_are_in_the_bucket_only(name: str, open_table: OpenTable) -> None:
    system = opened(open_table, KINDS[name])
    written = [trips(YELLOW, 1 + 10 * i, 1000 * i) for i in range(5)]
    for rows in written:
        system.write(rows)
    table_calls.flush(system)
    footprint, files, objects = system.footprint(), system.data_files(), system.folder.sizes()
    assert footprint.data_files == len(files) > 0 and set(files) <= set(objects)
    assert footprint.data_bytes == system.weigh(files)[1] == sum(objects[path] for path in files)
    assert footprint.data_bytes + footprint.metadata_bytes == sum(objects.values())
    assert footprint.catalog_bytes is not None
    assert (footprint.metadata_files > 0) == (system.format != "DuckLake")
    for path in files:
        with pq.ParquetFile(str(path), filesystem=system.folder.file_system()) as file:
            assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    local = [path for path in system.context.directory.rglob("*") if path.suffix in (".parquet", ".avro", ".json")]
    assert local == []
    assert sorted(system.ids().to_pylist()) == sorted(n for rows in written for n in rows.column("id").to_pylist())
    merged = table_calls.merge(system)
    assert (merged is not None) == (Capability.MERGE in system.capabilities)
    if merged is not None:
        assert (merged.files_before, merged.files_after) == (len(files), 1)
        assert merged.bytes_after == system.weigh(system.data_files())[1]
    assert_same_rows(system.read(), pa.concat_tables(written), stored_schema(system, YELLOW))
    # The removal of an object is noticed.
    (first, *_) = system.data_files()
    system.folder.file_system().delete_file(str(first))
    with pytest.raises(Exception, match=r"(?i)not found|404|no such|not exist"):
        system.ids()


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1])  # so that they can import this file
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            yield pool


@pytest.mark.parametrize("kind", [DeltaRs, DuckLake, IcebergPyIceberg], ids=lambda kind: kind.name)
def test_two_processes_lose_no_commits(kind: type[Any], open_table: OpenTable, processes: ProcessPoolExecutor) -> None:
    """Rely, for Delta, on puts that the store refuses if the object exists already."""
    system = opened(open_table, kind)
    system.write(trips(YELLOW, 1))
    at_work = [processes.submit(write, system.client_factory(), number, 6) for number in (1, 2)]
    acknowledged = [0, *(number for each in at_work for number in each.result(timeout=120)[0])]
    assert sorted(system.ids().to_pylist()) == sorted(acknowledged)


@pytest.mark.parametrize("name", KINDS)
def test_secret_key_is_exposed_nowhere(name: str, open_table: OpenTable) -> None:
    system = opened(open_table, KINDS[name])
    system.write(trips(YELLOW, 1))
    secret = system.folder.bucket.secret_key
    assert len(secret) == 40
    services = system.context.services.values()
    commands = [word for service in services for pid in service.pids() for word in psutil.Process(pid).cmdline()]
    folders = [system.context.directory, *(service.directory for service in services)]
    written = b"".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())
    shown = [repr(system.client_factory()), repr(system.settings()), repr(system.notes), str(system.folder), *commands]
    assert secret not in "".join(shown) and secret.encode() not in written


RTT_MS = 25


@pytest.mark.parametrize("name", ["ducklake", "iceberg-pyiceberg", "iceberg-duckdb", "delta-rs"])
def test_configured_round_trip_is_between_writers_and_files(name: str, open_table: OpenTable) -> None:
    kind = KINDS[name]
    system = open_table(kind, kind.Options(storage=S3, rtt_ms=RTT_MS))
    system.create(YELLOW)
    took = []
    for number in range(4):
        began = time.perf_counter()
        system.write(trips(YELLOW, 1, number))
        took.append(1000 * (time.perf_counter() - began))
    assert min(took) >= RTT_MS, took
    folder = system.folder
    assert folder.bucket.endpoint != folder.near.endpoint == folder.for_readers().bucket.endpoint
    for service in system.context.services.values():
        if isinstance(service, IcebergRestS3):
            assert service._backend()["CATALOG_S3_ENDPOINT"] == folder.bucket.endpoint
    assert sorted(system.ids().to_pylist()) == [0, 1, 2, 3]
    assert system.footprint().data_files == 4


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("ducklake", {"durability": "full"}, "a disk of this machine"),
        ("delta-rs", {"durability": "full"}, "a disk of this machine"),
        ("delta-rs", {"catalog": "unity", "unity_address": "http://127.0.0.1:1"}, "local disk"),
        ("iceberg-pyiceberg", {"file_io": "nio"}, "reference server with a FileIO"),
        ("iceberg-duckdb", {"catalog": "polaris"}, "reference server with a FileIO"),
        ("ducklake", {}, None),
    ],
)
def test_unavailable_object_storage_is_explained(name: str, options: dict[str, Any], said: str | None) -> None:
    kind = KINDS[name]
    assert issubclass(kind, Stored)
    reason = kind.unavailable(kind.Options(storage=S3, **options))
    assert (said is None and reason is None) or (said is not None and said in (reason or ""))
    assert "storage is local" in str(kind.unavailable(kind.Options(rtt_ms=5)))
