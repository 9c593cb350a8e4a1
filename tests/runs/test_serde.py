"""Tests of shapes: one declaration writes and reads them, and invalid values are refused by file and key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tidemark.errors import AnalysisError
from tidemark.runs.serde import Fields, Pairs, pairs, read, to_json, written


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Reason:
    why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    text: str
    whole: int
    number: float
    flag: bool
    maybe: str | None
    parts: tuple[Part, ...]
    part: Part | None
    words: tuple[str, ...]
    numbers: tuple[float, ...]
    counts: Pairs[int]
    named: Pairs[Part]
    sparse: Pairs[int | None]
    anything: Pairs[Any]
    gaps: tuple[int | None, ...]
    either: Pairs[Part | Reason]
    late: int = 7


FULL = Whole(
    text="a",
    whole=1,
    number=2.0,
    flag=True,
    maybe=None,
    parts=(Part("b", 3), Part("c", None)),
    part=Part("d", 4),
    words=("e", "f"),
    numbers=(1.0, 2.5),
    counts=(("z", 1), ("a", 2)),
    named=(("g", Part("h", 5)),),
    sparse=(("i", None), ("j", 6)),
    anything=(("k", [1, {"l": None}]), ("m", True)),
    gaps=(8, None),
    either=(("n", Part("o", 9)), ("p", Reason("q"))),
)


def again(values: dict[str, Any]) -> Whole:
    return read(Whole, Fields("FILE", values))


def test_written_shape_is_read_back_unchanged() -> None:
    text = to_json(FULL)
    assert again(json.loads(text)) == FULL
    assert json.loads(text) == written(FULL)
    assert json.loads(text)["counts"] == {"z": 1, "a": 2} and list(json.loads(text)["counts"]) == ["z", "a"]
    assert pairs({"z": 1, "a": 2}) == FULL.counts


def test_later_fields_may_be_absent_and_unknown_fields_are_ignored() -> None:
    values = written(FULL)
    del values["late"]
    assert again(values | {"unheard": 1}) == FULL


def test_integer_is_accepted_as_a_number() -> None:
    made = again(written(FULL) | {"number": 15})
    assert made.number == 15.0 and type(made.number) is float


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("text", 1, "key 'text': found 1; allowed: a text"),
        ("whole", 1.5, "key 'whole': found 1.5; allowed: a whole number"),
        ("whole", True, "key 'whole': found True; allowed: a whole number"),
        ("number", "1", "key 'number': found '1'; allowed: a number"),
        ("number", False, "key 'number': found False; allowed: a number"),
        ("flag", 0, "key 'flag': found 0; allowed: true or false"),
        ("maybe", 2, "key 'maybe': found 2; allowed: a text"),
        ("text", None, "key 'text': found None; allowed: a text"),
        ("late", None, "key 'late': found None; allowed: a whole number"),
        ("part", [], "key 'part': found []; allowed: an object"),
        ("part", {"name": "x"}, "key 'part.size': found nothing; allowed: a whole number or null"),
        ("parts", {}, "key 'parts': found {}; allowed: a list of objects"),
        ("parts", [{"name": "x", "size": 1}, {"name": 2}], "key 'parts[1].name': found 2; allowed: a text"),
        ("words", "ab", "key 'words': found 'ab'; allowed: a list of texts"),
        ("words", ["a", None], "key 'words': found ['a', None]; allowed: a list of texts"),
        ("numbers", [1, True], "key 'numbers': found [1, True]; allowed: a list of numbers"),
        ("counts", [["z", 1]], "key 'counts': found [['z', 1]]; allowed: an object"),
        ("gaps", [1, "2"], "key 'gaps': found [1, '2']; allowed: a list of whole numbers"),
        ("either", {"n": {"size": 1}}, "key 'either.n.why_not': found nothing; allowed: a text"),
        ("counts", {"z": None}, "key 'counts.z': found None; allowed: a whole number"),
        ("named", {"g": {"name": "h", "size": "5"}}, "key 'named.g.size': found '5'; allowed: a whole number"),
    ],
)
def test_invalid_value_is_refused_by_file_and_key(key: str, value: Any, said: str) -> None:
    with pytest.raises(AnalysisError) as refused:
        again(written(FULL) | {key: value})
    assert str(refused.value) == f"FILE: {said}"


@pytest.mark.parametrize(
    ("key", "allowed"),
    [("text", "a text"), ("maybe", "a text or null"), ("parts", "a list of objects"), ("words", "a list of texts"),
     ("part", "an object or null"), ("counts", "an object")],
)  # fmt: skip
def test_missing_value_is_refused_by_file_and_key(key: str, allowed: str) -> None:
    values = written(FULL)
    del values[key]
    with pytest.raises(AnalysisError) as refused:
        again(values)
    assert str(refused.value) == f"FILE: key '{key}': found nothing; allowed: {allowed}"
