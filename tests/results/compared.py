"""Comparison of two folders or archives of the streams study."""

from __future__ import annotations

from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.results.archive.compare import Comparison, Side, compare
from tidemark.results.archive.unpack import opened
from tidemark.studies.streams.metrics import QUANTITIES


def both(a: Path, b: Path) -> Comparison:
    with opened(a) as first, opened(b) as second:
        return compare(*(Side(str(place), Measures(of, QUANTITIES)) for place, of in ((a, first), (b, second))))
