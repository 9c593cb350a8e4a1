from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tidemark.services import postgres
from tidemark.services.postgres import remove_segments


def test_segments_of_dead_servers_are_freed_unless_one_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "SYSTEM_V_SEGMENTS", tmp_path / "none")
    account = os.geteuid()
    if any(p.info["name"] == "postgres" for p in psutil.process_iter(["name"])):
        pytest.skip("a PostgreSQL server runs on this machine")
    left, other = tmp_path / "PostgreSQL.123", tmp_path / "somebody-else"
    left.touch()
    other.touch()
    remove_segments(account + 1, tmp_path)
    assert left.exists(), "it belongs to another account"

    # A process is recognised by its name, which is that of its program.
    server = tmp_path / "postgres"
    server.symlink_to("/bin/sleep")
    running = subprocess.Popen([server, "60"])
    try:
        while psutil.Process(running.pid).name() != "postgres":
            time.sleep(0.01)
        remove_segments(account, tmp_path)
        assert left.exists(), "its server may be the one that runs"
    finally:
        running.kill()
        running.wait()
    remove_segments(None, tmp_path)
    assert not left.exists() and other.exists(), "without a name it is our own account"
