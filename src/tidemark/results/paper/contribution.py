"""What a study brings to the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.analysis.measures import Measures
from tidemark.runs.runset import RunSet


@dataclass(frozen=True, slots=True)
class Contribution:
    """Functions from the runs to texts by name, ready to print; no two studies may use one name.

    `chapter` is its text, as Typst. `findings` are sentences for the box on the first page. `parts` gives the objects
    that the chapter reads beside values and sentences, from the measures and from bench.json, which may be missing.
    `ways` are its modes as a sentence may begin with them.
    """

    chapter: Path
    values: Callable[[RunSet], Mapping[str, str]]
    sentences: Callable[[Measures], Mapping[str, str]]
    ways: Mapping[str, str] = field(default_factory=dict)
    parts: Callable[[Measures, Mapping[str, Any] | None], Mapping[str, Any]] = lambda _measures, _bench: {}
    findings: Callable[[Measures], Sequence[str]] = lambda _measures: ()
    # Title, abstract and what stands before and after the chapters, as Typst, where it is the first study of a paper.
    front: Path | None = None


@dataclass(frozen=True, slots=True)
class Chapter:
    """One study in the paper: what it brings, and the measures of its runs."""

    study: str
    title: str
    brings: Contribution
    measures: Measures
