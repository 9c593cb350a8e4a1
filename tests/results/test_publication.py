"""Tests of reading published numbers from typed files; mistyped values are found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tidemark.results.publication import printed_rows


@dataclass(frozen=True, slots=True)
class Printed:
    system: str
    files: int | None
    mean_ms: float


def test_each_row_has_the_types_of_its_fields_and_empty_cells_are_none(tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    file.write_text("mean_ms,system,files\n1.5,Delta,3\n2,Hudi,\n")
    assert printed_rows(file, Printed) == (Printed("Delta", 3, 1.5), Printed("Hudi", None, 2.0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("system,files,mean_ms\nDelta,3,1.5\nHudi,4,1.5s\n", "report.csv, line 3: .*mean_ms"),
        ("system,files,mean_ms\nDelta,3,\n", "report.csv, line 2: "),
        ("system,files,median_ms\nDelta,3,1\n", "report.csv, line 2: .*mean_ms"),
    ],
    ids=["no number", "empty", "another column"],
)
def test_mistyped_value_is_reported_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "report.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        printed_rows(file, Printed)
