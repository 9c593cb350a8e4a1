"""PaperSection of a study to the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.analysis.measures import Measures
from tidemark.runs.runset import RunSet


@dataclass(frozen=True, slots=True)
class PaperSection:
    """Functions that compute named texts, ready to print, from the runs; names must be unique across studies.

    `chapter` is the Typst source. `findings` are sentences for the box on the first page. `parts` returns objects that
    the chapter reads in addition to values and sentences, from the measures and from bench.json (None if missing).
    """

    chapter: Path
    values: Callable[[RunSet], Mapping[str, str]]
    sentences: Callable[[Measures], Mapping[str, str]]
    parts: Callable[[Measures, Mapping[str, Any] | None], Mapping[str, Any]] = lambda _measures, _bench: {}
    findings: Callable[[Measures], Sequence[str]] = lambda _measures: ()
    # Title, abstract and the text before and after the chapters, as Typst; used for the first study of a paper.
    front: Path | None = None


@dataclass(frozen=True, slots=True)
class Chapter:
    """One study in the paper: its contribution and the measures of its runs."""

    study: str
    title: str
    brings: PaperSection
    measures: Measures
