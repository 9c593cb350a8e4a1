"""Tests of the judges of scripts that compare times and languages: cases that show the finding, and that do not."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from tidemark.results.reference.findings import SCRIPTS

OWN = ("batch_as_collected", "ducklake_language", "ducklake_client", "postgres_server", "postgres_proxy")


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in OWN:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(request.param)


@pytest.mark.parametrize("script", ["batch_as_collected"], indirect=True)
@pytest.mark.parametrize(
    ("collected", "combined", "is_seen"),
    [
        ((60, 61, 62), (11, 12, 13), True),
        ((10, 11, 12), (11, 12, 13), False),  # a writer to which chunks make no difference
        ((20, 25, 26), (11, 12, 13), False),  # less than three times
        ((60, 61, 62), (61, 62, 63), False),  # combining the chunks does not help
    ],
)
def test_chunked_batch_is_slow_only_if_each_writer_shows_it(
    script: Any, collected: tuple[int, ...], combined: tuple[int, ...], is_seen: bool
) -> None:
    clear = {script.AS_COLLECTED: [90, 91, 92], script.COMBINED: [12, 13, 14], script.ONE_CHUNK: [9, 10, 11]}
    one = {script.AS_COLLECTED: collected, script.COMBINED: combined, script.ONE_CHUNK: [9, 10, 11]}
    assert script.is_seen({script.PROCESSOR: {"first": clear, "second": one}}) is is_seen


@pytest.mark.parametrize("script", ["batch_as_collected"], indirect=True)
def test_chunked_and_combined_batches_have_the_same_rows(script: Any) -> None:
    collected, whole = script.batches()
    assert collected.combine_chunks().equals(whole.combine_chunks())
    assert {column.num_chunks for column in collected.columns} == {script.ROWS}
    assert {column.num_chunks for column in whole.columns} == {1}


@pytest.mark.parametrize("script", ["ducklake_language"], indirect=True)
@pytest.mark.parametrize(
    ("english", "russian", "right", "is_seen"),
    [(0, 9, True, True), (0, 0, True, False), (2, 9, True, False), (0, 9, False, False)],
)
def test_language_is_blamed_only_if_english_has_no_errors_and_rows_are_right(
    script: Any, english: int, russian: int, right: bool, is_seen: bool
) -> None:
    found = {
        "English": {"refused": english, "rows are those acknowledged": True},
        "Russian": {"refused": russian, "rows are those acknowledged": right},
    }
    assert script.is_seen(found) is is_seen
