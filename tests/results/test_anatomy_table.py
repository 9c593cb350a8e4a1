"""Tests of the table of counted commits: sums of ranges by column, growth as an arrow, and what is not counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import ConfigError
from tidemark.results.reference.anatomy import FOLDER, OLD, YOUNG, anatomy_table
from tidemark.runs.anatomy import Anatomy


def counts(opened: int, written: int) -> dict[str, dict[str, tuple[int, int]]]:
    calls = {"open by the client": (opened, opened), "create by a server": (1, 2), "fdatasync by a server": (3, 3)}
    return {
        "files": {"data files": (1, 1), "log files": (1, 2)},
        "bytes": {"bytes of data files": (written, written)},
        "file-system operations": {
            **calls,
            "bytes written by the client": (99, 99),
            "program started by a server": (2, 2),
        },
        "network": {"GET requests to a server": (4, 4), "round trips in series": (5, 5), "bytes to a server": (70, 70)},
    }


def test_a_row_sums_what_a_column_has_and_shows_growth(tmp_path: Path) -> None:
    commits = {YOUNG: counts(7, 10_000), OLD: counts(70, 10_100)}
    found = Anatomy("one", "One", "thesis", {}, {}, 1, 21, 2, commits, {"SQL": "no PostgreSQL is part of it"})
    (tmp_path / FOLDER / "current").mkdir(parents=True)
    (tmp_path / FOLDER / "current" / "one.json").write_text(found.to_json())
    (tmp_path / FOLDER / "one.json").write_text(found.to_json())
    _, _, first, second = anatomy_table(tmp_path)
    assert first == second == "| One | thesis | 2-3 | 10 | 8-9 → 71-72 | 3 | 2 | – | – | 4 | 5 |"


def test_none_and_unreadable_counts_are_said(tmp_path: Path) -> None:
    assert list(anatomy_table(tmp_path)) == ["There are none in `reference/`."]
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "one.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"one\.json: cannot be read as an anatomy"):
        list(anatomy_table(tmp_path))
