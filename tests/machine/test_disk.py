"""Data that waits for the disk, the wait for it, and the processes that sent it; on real files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.machine import disk
from tidemark.machine.disk import DiskCounter, sent_bytes, settle, waiting_bytes

SIZE = 48 << 20
WRITE = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(os.urandom(4 << 20)); f.flush(); print(1); input()"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder on the repository's own disk: a tmpfs has none."""
    with tempfile.TemporaryDirectory(prefix=".disk-", dir=Path(__file__).parent) as name:
        yield Path(name)


def test_written_data_waits_until_settled_and_is_then_on_the_device(folder: Path) -> None:
    counter = DiskCounter(folder)
    if counter.device is None:
        pytest.skip(str(counter.reason))
    settle(None)
    (folder / "file").write_bytes(os.urandom(SIZE))
    before, waiting = counter.read(), waiting_bytes()
    assert waiting is not None and waiting > SIZE // 2, "the write went past the page cache; nothing is shown here"
    settled = settle(None)
    after = counter.read()
    assert settled.left_bytes is not None and settled.left_bytes < waiting - SIZE // 2
    assert before is not None and after is not None and after - before > SIZE // 2


def test_wait_for_an_endless_writer_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "waiting_bytes", lambda: 5 << 20)
    settled = settle(1000, patience_s=0.3)
    assert not settled.at_rest and settled.left_bytes == 5 << 20 and settled.seconds > 0.3
    assert settle(6 << 20, patience_s=0.3).at_rest, "so much waited when the machine was at rest"


def test_sent_bytes_are_those_of_the_process_that_wrote(folder: Path) -> None:
    command = [sys.executable, "-c", WRITE, folder / "file"]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    idle = subprocess.Popen(["/bin/sleep", "60"])
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        sent = sent_bytes([writer.pid])
        if sent is None:
            pytest.skip("this kernel keeps no account of what a process writes")
        assert sent >= 4 << 20
        assert sent_bytes([idle.pid]) == 0
    finally:
        for process in (writer, idle):
            process.kill()
            process.communicate()
    assert sent_bytes([writer.pid]) is None
