from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.hdfs import DataNode, NameNode, write_configuration
from tidemark.services.servers import Servers, prepared

ROWS = pa.table({"number": list(range(1000))})


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Servers]:
    assert cache
    root = tmp_path_factory.mktemp("spaced") / "wörk space, too"
    root.mkdir()
    workspace = Workspace(root)
    with prepared([DataNode], workspace, workspace.work / "hdfs", ServicesConfig()) as made:
        made.start()
        yield made


@pytest.fixture
def names(servers: Servers) -> NameNode:
    found = servers.by_class[NameNode]
    assert isinstance(found, NameNode)
    return found


def test_table_is_written_by_a_client_and_read_over_http(names: NameNode, tmp_path: Path) -> None:
    since = names.said_bytes()
    write_deltalake(f"{names.address}/here/table", ROWS)
    closes = names.closes(since)
    assert closes.closed == 2 and closes.refused >= 0, "a commit closes a file of data and one of the log"
    files = names.web.fetch("/here/table", tmp_path / "fetched")
    assert len(files) == 2 and PurePosixPath("_delta_log/00000000000000000000.json") in {each.path for each in files}
    assert DeltaTable(str(tmp_path / "fetched")).to_pyarrow_table().sort_by("number") == ROWS
    assert '"numRecords' in names.web.text("/here/table", ".json").replace("\\", "")
    names.web.remove("/here/table")
    assert names.web.listed("/here/table") == []


def test_servers_listen_on_loopback_only_and_report_their_version(
    servers: Servers, listening: Callable[[Iterable[int]], set[str]]
) -> None:
    assert listening(servers.pids()) == {"127.0.0.1"}
    assert set(servers.versions().values()) == {"3.4.2"}
    groups = servers.files()
    assert groups["hdfs-datanode program"] == groups["hdfs-namenode program"]


def test_killed_datanode_is_reported_and_restarts_with_its_blocks(servers: Servers, names: NameNode) -> None:
    write_deltalake(f"{names.address}/kept", ROWS)
    node = servers.by_class[DataNode]
    os.kill(node.pids()[0], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not servers.ended() and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(ServiceError, match="HDFS DataNode ended on its own"):
        servers.check()
    node.stop()
    node.start()
    assert DeltaTable(f"{names.address}/kept").to_pyarrow_table().num_rows == 1000
    assert names.takes_writes()


def test_processes_and_data_are_removed_with_the_servers(
    workspace: Workspace, wait_until_gone: Callable[[Iterable[int]], list[int]]
) -> None:
    folder = workspace.work / "hdfs"
    with prepared([DataNode], workspace, folder, ServicesConfig()) as made:
        made.start()
        pids = made.pids()
        assert len(pids) >= 2 and (folder / "hdfs-datanode" / "data" / "blocks").is_dir()
    assert wait_until_gone(pids) == []
    assert not list(folder.glob("*/data"))


def test_path_misread_by_hadoop_is_refused_before_start(shared_workspace: Workspace) -> None:
    with (
        pytest.raises(ServiceError, match=r"cannot keep its data where a path has .*Move the workspace"),
        prepared([NameNode], shared_workspace, shared_workspace.work / "hdfs", ServicesConfig()),
    ):
        pass


def test_settings_are_written_as_xml(tmp_path: Path) -> None:
    folder = write_configuration(tmp_path / "conf", {"a.flag": True, "a.name": "<&>"})
    text = (folder / "hdfs-site.xml").read_text()
    assert "<name>a.flag</name><value>true</value>" in text and "<value>&lt;&amp;&gt;</value>" in text
    assert (folder / "webapps" / "datanode").is_dir()
