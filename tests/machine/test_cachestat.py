"""Pages that are only in memory are distinguished from those that are on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidemark.machine import cachestat


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reason = cachestat.why_not(tmp_path)
    if reason is not None:
        pytest.skip(reason)
    return tmp_path


def test_a_page_is_at_risk_until_its_file_is_synced(folder: Path) -> None:
    path = folder / "rows"
    with path.open("wb") as file:
        file.write(bytes(40_000))
        file.flush()
        assert cachestat.at_risk(path) == 10
        os.fsync(file.fileno())
        assert cachestat.at_risk(path) == 0


def test_kernel_without_cachestat_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cachestat, "_CACHESTAT", 100_000)  # no kernel has this call
    assert "6.5" in (cachestat.why_not(tmp_path) or "")
    with pytest.raises(OSError):
        cachestat.at_risk(Path(__file__))
