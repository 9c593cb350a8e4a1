"""Tests of the table of counted commits: sums of ranges by column, growth as an arrow, and what is not counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidemark.analysis.statistics import Estimate
from tidemark.errors import ConfigError
from tidemark.results.figures.anatomy import label, own_work, picture
from tidemark.results.reference.anatomy import (
    BY_COLUMNS,
    EMPTY,
    FOLDER,
    IN_STORE,
    YOUNG,
    anatomy_table,
    columns_table,
    distance_table,
    in_sequence,
    kept_by_columns,
    kept_counts,
    sequence_lines,
)
from tidemark.runs.anatomy import SERVER, Anatomy, Step


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
        "network of the catalog's server": {"round trips to a server by the catalog's server": (6, 6)},
    }


def test_a_row_sums_what_a_column_has_and_shows_growth(tmp_path: Path) -> None:
    commits = {YOUNG: counts(7, 10_000), 1000: counts(70, 10_100)}
    found = Anatomy("one", "One", "thesis", {}, {}, 1, 21, 2, commits, {"SQL": "no PostgreSQL is part of it"})
    (tmp_path / FOLDER / "current").mkdir(parents=True)
    (tmp_path / FOLDER / "current" / "one.json").write_text(found.to_json())
    (tmp_path / FOLDER / "one.json").write_text(found.to_json())
    in_store = replace(found, options=IN_STORE)
    _, _, first, second = anatomy_table([*kept_counts(tmp_path), in_store])
    (tmp_path / FOLDER / BY_COLUMNS).mkdir()
    for columns in (100, 9):
        wide = replace(found, columns=columns, commits={**commits, 500: counts(8, 1)})
        (tmp_path / FOLDER / BY_COLUMNS / f"one-{columns}.json").write_text(wide.to_json())
    assert len(kept_counts(tmp_path)) == 2, "rows of trips alone"
    assert [line.split(" | ")[:5] for line in list(columns_table(kept_by_columns(tmp_path)))[2:]] == [
        ["| One", "9", "1,000", "2-3", "10"], ["| One", "100", "1,000", "2-3", "10"],
    ]  # fmt: skip
    assert first == second == "| One | thesis | 2-3 | 10 | 8-9 → 71-72 | 3 | 2 | – | – | 4 | 6 | 5 |"


def test_a_pipeline_is_named_and_has_a_dash_for_what_is_not_counted() -> None:
    settings = {"trigger": "1000 ms"}
    found = of_one(LAST, rows=1, not_counted={"round trips in series": "the broker is not seen"}, pipeline=settings)
    _, _, only = anatomy_table([found])
    assert only.startswith("| One, a pipeline | thesis | 2-3 |") and only.endswith("| 4 | 6 | – |")
    _, *others = sequence_lines([of_one(LAST, title="Two"), replace(found, steps=())])
    assert others == [], "it asks a server, although no sequence of it is kept"


def test_none_and_unreadable_counts_are_said(tmp_path: Path) -> None:
    assert list(anatomy_table(kept_counts(tmp_path))) == [EMPTY]
    assert list(distance_table([], [])) == list(sequence_lines([])) == list(columns_table([])) == [EMPTY]
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "one.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"one\.json: cannot be read as an anatomy"):
        kept_counts(tmp_path)


def of_one(*steps: Step, **changes: Any) -> Anatomy:
    commits = {YOUNG: counts(1, 1)}
    return replace(Anatomy("one", "One", "thesis", {}, {}, 500, 21, 2, commits, steps=steps), **changes)


def test_commit_at_a_distance_is_predicted_from_the_round_trips_to_the_store() -> None:
    def row(rtt: int | None, median: Estimate | None) -> dict[str, Any]:
        return {"system": "One", "rtt": rtt, "commit_p50": median}

    near, far = Estimate(100.0, 90.0, 110.0, 9, unit="ms"), Estimate(250.0, 240.0, 260.0, 9, unit="ms")
    found = of_one(options=IN_STORE)
    measured = [row(None, Estimate(1.0, None, None, 9, unit="ms")), row(0, near), row(20, far), row(70, None)]
    _, _, only = distance_table([of_one(), found, replace(found, title="Two")], measured)
    assert only == "| One | 5 | 0 | 20 ms | 200 ms | 250 ms [240, 260] | −20 % |"
    found.commits[YOUNG]["network"]["round trips in series to SeaweedFS"] = (8, 8)
    found.commits[YOUNG]["network of the catalog's server"]["round trips to SeaweedFS by the catalog's server"] = (3, 3)
    _, _, only = distance_table([found], measured)
    assert only == "| One | 8 | 3 | 20 ms | 260 ms | 250 ms [240, 260] | +4 % |"


FIRST, INNER = Step("Catalog", "POST /v1/tables/trips", 0.0, 10.0, 1, 1), Step("Base", "COMMIT", 2.0, 5.0, 1, 1, SERVER)
LAST = Step("Base", "", 12.0, 3.0, 1, 1)


def test_picture_shows_each_step_with_who_asks_whom() -> None:
    drawing = picture([of_one(FIRST, INNER, LAST)])
    assert picture([of_one(FIRST, INNER, LAST)]) == drawing
    lanes = ("client → Catalog", "catalog's server → Base", "client → Base", "client works, 2.0 ms")
    for text in (
        "One: 3 round trips in 15 ms",
        *lanes,
        "POST trips, 10 ms",
        "COMMIT, 5.0 ms",
        "another message, 3.0 ms",
    ):
        assert f">{text}</text>" in drawing, text
    assert "COMMIT" not in picture([of_one(FIRST, LAST)])


def test_client_works_while_no_request_is_open() -> None:
    overlapping = Step("Base", "", 11.0, 2.0, 1, 1)
    assert own_work([FIRST, INNER, LAST]) == [(10.0, 2.0)]
    assert own_work([FIRST, INNER, overlapping, LAST]) == [(10.0, 1.0)]


def test_system_is_drawn_once_and_one_without_steps_is_named() -> None:
    plain, in_store = of_one(LAST), of_one(FIRST, LAST, options=IN_STORE)
    assert in_sequence([in_store, plain]) == [plain]
    assert in_sequence([in_store, of_one()]) == [in_store]
    shown, _, others = sequence_lines([plain, of_one(system="two", title="Two")])
    assert "commit of One asks" in shown and others.startswith("No server is asked by Two, ")


@pytest.mark.parametrize(
    ("asked", "short"),
    [
        ("", "another message"),
        ("SELECT 1", "SELECT 1"),
        ("SELECT " + "x" * 50, "SELECT " + "x" * 32 + "…"),
        ("GET /v1/namespaces/tidemark_0123456789ab/tables/trips", "GET trips"),
        (
            "content of PUT /b/data/00000-0-01234567-89ab-cdef-0123-456789abcdef.parquet",
            "content of PUT 00000-0-….parquet",
        ),
        ("PUT /b/_delta_log/00000000000000000010.json", "PUT 00000000000000000010.json"),
        ("GET /bucket/?list-type=2&prefix=a", "GET bucket?list-type"),
    ],
)
def test_label_is_short(asked: str, short: str) -> None:
    assert label(asked) == short
