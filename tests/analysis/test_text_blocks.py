"""Tests of generated sentences: the majority's finding comes first, then the exceptions, all of them by name."""

from __future__ import annotations

import pytest

from tidemark.analysis.text_blocks import conclusion, lowest_and_highest, sentence


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"grows": ["A", "B", "C"], "falls": []}, "the time grows for every system"),
        ({"grows": ["A"], "falls": []}, "the time grows for A"),
        ({"grows": [], "shows no trend": ["A", "B"]}, "the time shows no trend for any system"),
        ({"grows": ["A"], "falls": ["B", "C", "D"]}, "the time falls for 3 of 4 systems; it grows for A"),
        ({"grows": ["A"], "falls": ["B"]}, "the time grows for A; it falls for B"),
        ({"grows": ["A", "B"], "falls": ["C"]}, "the time grows for A and B; it falls for C"),
        (
            {"grows": ["A", "B"], "falls": ["C"], "stays": ["D"]},
            "the time grows for A and B; it falls for C and stays for D",
        ),
        ({"grows": []}, ""),
    ],
)
def test_the_largest_group_comes_first(groups: dict[str, list[str]], said: str) -> None:
    assert conclusion("the time", "it", groups) == said


def test_sentence_is_capitalised_and_ends_with_a_full_stop() -> None:
    assert sentence("it grows for DuckLake") == "It grows for DuckLake."
    assert sentence("") == ""


def test_extremes_need_two_systems() -> None:
    assert lowest_and_highest("Load", [(2.0, "B"), (1.0, "A")]) == "Load is lowest for A and highest for B."
    assert lowest_and_highest("Load", [(2.0, "B")]) == ""
