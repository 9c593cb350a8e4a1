"""What a study brings to the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.analysis.measures import Measures
from tidemark.runs.runset import RunSet


@dataclass(frozen=True, slots=True)
class Contribution:
    """Functions from the runs to texts by name, ready to print; no two studies may use one name.

    `chapter` is its text, as Typst. `parts` gives the objects that it reads beside values and sentences, from the
    measures and from bench.json, which may not be there. `ways` are its modes as a sentence may begin with them.
    """

    chapter: Path
    ways: Mapping[str, str]
    values: Callable[[RunSet], Mapping[str, str]]
    sentences: Callable[[Measures], Mapping[str, str]]
    parts: Callable[[Measures, Mapping[str, Any] | None], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One study in the paper: what it brings, and the measures of its runs."""

    study: str
    title: str
    brings: Contribution
    measures: Measures
