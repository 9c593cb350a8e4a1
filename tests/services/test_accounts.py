"""User accounts and processors of real servers, and the owners of the files that they write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace, private_directory
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.programs.process import NOBODY, Child
from tidemark.services.servers import Servers, prepared
from tidemark.systems.base import Context, System
from tidemark.systems.registry import registry

CAP_DAC_READ_SEARCH = 1 << 2
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")


@pytest.fixture(scope="module")
def servers(shared_workspace: Workspace) -> Iterator[Servers]:
    with prepared([Kafka, IcebergRest], shared_workspace, shared_workspace.work, ServicesConfig()) as servers:
        servers.start()
        yield servers


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


@is_root
def test_no_server_process_runs_as_root(servers: Servers) -> None:
    assert {service.name for service in servers.by_class.values()} == {"kafka", "postgres", "iceberg-rest"}
    for service in servers.by_class.values():
        pids = service.pids()
        assert pids, service.name
        for pid in pids:
            found = status(pid)
            assert set(found["Uid"].split()) == set(found["Gid"].split()) == {str(NOBODY)}, service.name
            assert int(found["CapEff"], 16) == CAP_DAC_READ_SEARCH, "one right: to enter our folders"


@is_root
def test_servers_write_their_files_and_tidemark_folders_stay_private(servers: Servers, workspace: Workspace) -> None:
    directory = private_directory(workspace.work / "table")
    kind: type[System] = registry()["iceberg-pyiceberg"]
    table = kind(Context(directory, dict(servers.by_class), rows_per_write=3), kind.Options())
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    try:
        table.create(rows.schema)
        table.write(rows)
        assert sorted(table.ids().to_pylist()) == [1, 2, 3]
    finally:
        table.close()
    owners = {path.suffix: path.stat().st_uid for path in (directory / "table").rglob("*") if path.is_file()}
    assert owners[".json"] == NOBODY and owners[".parquet"] == 0
    assert directory.stat().st_uid == 0 and directory.stat().st_mode & 0o077 == 0
    kafka = servers.by_class[Kafka]
    assert isinstance(kafka, Kafka)
    kafka.create_topic("mine")
    assert {path.stat().st_uid for path in kafka.data_directory.rglob("*")} == {NOBODY}
    kafka.delete_topic("mine")


BOUND = """
import os, sys
from pathlib import Path
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from tidemark.services.programs.process import Child
child = Child.start("grep", ["/bin/grep", "Cpus_allowed_list", "/proc/self/status"], Path(sys.argv[1]), env={}, cwd="/")
child.run_to_end(10)
print(len(os.sched_getaffinity(0)))
"""


def test_server_may_use_every_processor_when_tidemark_may_not(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine grants one processor alone")
    log = tmp_path / "log"
    ours = subprocess.run([sys.executable, "-c", BOUND, log], capture_output=True, text=True, check=True).stdout
    assert ours.strip() == "1"
    Child.start(
        "grep", ["/bin/grep", "Cpus_allowed_list", "/proc/self/status"], tmp_path / "free", env={}, cwd=tmp_path
    ).run_to_end(10)
    assert log.read_text() == (tmp_path / "free").read_text() != ""
    assert len(psutil.Process().cpu_affinity()) > 1
