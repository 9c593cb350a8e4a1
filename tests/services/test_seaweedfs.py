from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest

from tidemark.config import ServicesConfig
from tidemark.errors import ConfigError, ProvisionError
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.programs.tools import tool_program
from tidemark.services.seaweedfs import PARTS, SOCKETS, Bucket, SeaweedFS, remove_sockets
from tidemark.software.tools import provide_tool


@pytest.fixture(scope="module")
def store(shared_workspace: Workspace) -> Iterator[SeaweedFS]:
    provide_tool("seaweedfs", shared_workspace)
    made = SeaweedFS.from_config(
        ServiceContext(shared_workspace, shared_workspace.work / "seaweedfs", ServicesConfig())
    )
    with made:
        yield made
    made.remove_data()
    assert not made.data_directory.exists()


def put(bucket: Bucket, name: str, content: bytes) -> None:
    with bucket.file_system().open_output_stream(f"{bucket.name}/{name}") as stream:
        stream.write(content)


def get(bucket: Bucket, name: str) -> bytes:
    with bucket.file_system().open_input_stream(f"{bucket.name}/{name}") as stream:
        return stream.read()


def sockets(server: SeaweedFS) -> set[Path]:
    found = {Path(each.laddr) for each in psutil.net_connections("unix") if each.pid in server.pids() and each.laddr}
    return {path for path in found if path.is_absolute()}


def test_killed_store_keeps_its_objects_and_leaves_no_sockets(store: SeaweedFS) -> None:
    bucket = store.make_bucket("kept")
    assert bucket.stored() == (0, 0)
    put(bucket, "a/one", b"1" * 4000)
    put(bucket, "two", b"22")
    assert bucket.stored() == (2, 4002)
    outside = sockets(store)
    assert len(outside) == len(PARTS) and {path.parent for path in outside} == {SOCKETS}
    (pid,) = store.pids()
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while not store.has_ended() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(path.exists() for path in outside), "a kill leaves them"
    store.stop()
    assert not [path for path in outside if path.exists()]
    store.start()
    again = store.make_bucket("kept")
    assert again.endpoint == bucket.endpoint, "servers that keep files in it find it again"
    assert again.stored() == (2, 4002) and get(again, "two") == b"22"
    assert store.version().split()[1] == "4.48"


def test_store_requires_the_keys_given_in_its_environment(store: SeaweedFS) -> None:
    bucket = store.make_bucket("closed")
    put(bucket, "secret", b"x")
    stranger = Bucket(bucket.name, bucket.endpoint, bucket.access_key, "wrong")
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        get(stranger, "secret")
    shown = "".join(word for pid in store.pids() for word in psutil.Process(pid).cmdline())
    written = b"".join(path.read_bytes() for path in store.directory.rglob("*") if path.is_file())
    assert len(bucket.secret_key) == 40 and bucket.secret_key not in repr(bucket)
    assert bucket.secret_key not in shown and bucket.secret_key.encode() not in written


def test_store_listens_on_loopback_only_and_is_not_root(
    store: SeaweedFS, listening: Callable[[Iterable[int]], set[str]]
) -> None:
    assert listening(store.pids()) == {"127.0.0.1"}
    uids = {psutil.Process(pid).uids().effective for pid in store.pids()}
    assert uids == {65534 if os.geteuid() == 0 else os.geteuid()}


def test_only_sockets_left_by_killed_servers_are_removed(tmp_path: Path) -> None:
    used, left, stranger = (tmp_path / name for name in ("seaweedfs-s3-grpc-1.sock", "seaweedfs-s3-grpc-2.sock", "s"))
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as gone:
        listener.bind(str(used))
        listener.listen()
        gone.bind(str(left))
        gone.close()
        stranger.touch()
        remove_sockets(tmp_path)
    assert used.exists() and stranger.exists() and not left.exists()


def test_missing_program_names_the_command_that_builds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_CACHE", raising=False)
    with pytest.raises(ProvisionError, match=r"tidemark tool seaweedfs"):
        tool_program("seaweedfs", "weed", Workspace(tmp_path))
    with pytest.raises(ConfigError, match=r"allowed: .*locust, roc-validator, seaweedfs, secantusdb, sqlalchemy"):
        tool_program("nothing", "weed", Workspace(tmp_path))
