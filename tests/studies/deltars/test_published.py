"""The thesis's appendices, as they were taken from it: whole, and told apart from what contradicts them."""

from __future__ import annotations

from collections import Counter

import pytest

from tidemark.studies.deltars import published
from tidemark.studies.deltars.published import HOPSFS, LEGACY, LOCAL, MATERIALISE, READ, UPLOAD, WRITE


def test_each_appendix_has_all_of_its_rows() -> None:
    counts = Counter(each.table[0] for each in published.rows())
    assert counts == {"B": 8 * 15, "C": 8 * 15, "D": 4 * 10}


def test_the_steps_of_the_legacy_path_make_its_write() -> None:
    for data in published.WORDS:
        for cores in published.CORES:
            steps = [published.seconds(each, LEGACY, data, cores) for each in (UPLOAD, MATERIALISE)]
            assert sum(steps) == pytest.approx(published.seconds(WRITE, LEGACY, data, cores), rel=0.02)


def test_what_the_specification_derives_follows_from_them() -> None:
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


def test_misprints_are_found_and_are_those_that_are_known() -> None:
    found = published.misprints()
    assert len(found) == 3
    assert found[0].startswith("Table B.5, hopsfs 100K: 7.30843 k rows/s are printed")
    assert "Table B.7, hopsfs 10K" in found[1] and "Table D.4, legacy 60M" in found[2]
