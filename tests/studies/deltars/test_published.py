"""Tests of the thesis's appendices as they were typed: they are complete, and contradictions are found."""

from __future__ import annotations

from collections import Counter

import pytest

from tidemark.studies.deltars import published
from tidemark.studies.deltars.published import HOPSFS, LEGACY, LOCAL, MATERIALISE, READ, UPLOAD, WRITE


def test_each_appendix_has_all_of_its_rows() -> None:
    counts = Counter(each.table[0] for each in published.rows())
    assert counts == {"B": 8 * 15, "C": 8 * 15, "D": 4 * 10}


def test_steps_of_the_legacy_path_add_up_to_its_write() -> None:
    for data in published.WORDS:
        for cores in published.CORES:
            steps = [published.seconds(each, LEGACY, data, cores) for each in (UPLOAD, MATERIALISE)]
            assert sum(steps) == pytest.approx(published.seconds(WRITE, LEGACY, data, cores), rel=0.02)


def test_derived_values_follow_from_the_appendices() -> None:
    ratios = [
        published.seconds(WRITE, LEGACY, data) / published.seconds(WRITE, HOPSFS, data) for data in published.WORDS
    ]
    assert [round(each, 1) for each in ratios] == [40.2, 43.5, 12.0, 25.9, 15.3]
    floors = [
        published.seconds(WRITE, HOPSFS, data) - published.seconds(WRITE, LOCAL, data)
        for data in ("supplier_sf1", "supplier_sf10")
    ]
    assert [round(each, 3) for each in floors] == [1.211, 1.216]
    sixty = published.seconds(READ, HOPSFS, "lineitem_sf10") / published.seconds(READ, LEGACY, "lineitem_sf10")
    assert round(100 * (1 - sixty), 1) == 31.8 and round(100 * (1 / sixty - 1), 1) == 46.6


def test_time_per_row_agrees_in_the_largest_tables_if_rows_are_limited() -> None:
    assert {data: round(rows / 1000) for data, rows in published.ROWS.items()} == {
        "supplier_sf1": 10, "supplier_sf10": 100, "supplier_sf100": 1000, "lineitem_sf1": 6001, "lineitem_sf10": 59986
    }  # fmt: skip
    for operation, by_rows in ((MATERIALISE, 9.6), (READ, 9.9)):
        six, sixty = (published.seconds(operation, LEGACY, each) for each in ("lineitem_sf1", "lineitem_sf10"))
        # With all rows, a row of the larger table would take a tenth. With equally many rows, times agree within 5 %.
        assert (six / 6_001_215) / (sixty / 59_986_052) == pytest.approx(by_rows, abs=0.05)
        assert sixty / six == pytest.approx(1, abs=0.05)
    said = published.limited()
    for words in ("44.5 and 4.6 µs", "53.4 and 55.6 µs if 5,000,000 are", "5.6 and 0.6 µs", "6.7 and 6.7 µs"):
        assert words in said
    assert "404 s: 17.6 times as long as by delta-rs, and not 1.47" in said


def test_exactly_the_known_misprints_are_found() -> None:
    found = published.misprints()
    assert len(found) == 5
    assert found[0].startswith("Table B.5, hopsfs 100K: 7.30843 k rows/s are printed")
    assert "Table B.7, hopsfs 10K" in found[1] and "Table D.4, legacy 60M" in found[2]
    assert found[3].startswith("Tables D.1 to D.4: ") and found[4].startswith("Section 3.2.4: lineitem_sf1")
