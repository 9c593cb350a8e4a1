"""Printed numbers of a study's publication, its machine and its software, for comparison with Tidemark's results.

Also the section of the study in the paper that Tidemark makes.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.statistics import BootstrapEstimate, generator

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures
    from tidemark.runs.runset import RunSet


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication: `hardware` by part, named as in tables, and `software` versions by program name.

    `optional` are programs that configurations may omit; they are still listed, as not used.
    """

    key: str  # name of its columns in CSV and JSON, and of the stack with its versions
    origin: str  # heading of its columns
    hardware: Mapping[str, str] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    @classmethod
    def read(cls, module: str) -> Publication:
        """Return what publication.yaml describes, in the folder of the file `module`."""
        return msgspec.yaml.decode(Path(module).with_name("publication.yaml").read_bytes(), type=cls)


def printed_rows[Row](file: Path, row: type[Row]) -> tuple[Row, ...]:
    """Return a publication's printed numbers from a CSV with one column per field of the dataclass `row`, in order.

    Fields are str, int or float; an empty cell is None, which the field must allow. Raise ValueError, with file and
    line, for an invalid number or a missing column.
    """
    made = []
    with file.open() as opened:
        reader = csv.DictReader(opened)
        for each in reader:
            values = {name: text or None for name, text in each.items()}
            try:
                made.append(msgspec.convert(values, row, strict=False))
            except msgspec.ValidationError as problem:
                raise ValueError(f"{file.name}, line {reader.line_num}: {problem}") from None
    return tuple(made)


def the_row[Row](rows: Iterable[Row], /, **wanted: object) -> Row:
    """Return the first row whose fields have the `wanted` values; raise KeyError if there is none."""
    for row in rows:
        if all(getattr(row, name) == value for name, value in wanted.items()):
            return row
    raise KeyError(wanted)


def printed_number(value: float, low: float, high: float, *names: object, n: int = 1) -> BootstrapEstimate:
    """Return a printed number with replicates, uniform from `low` to `high`, of the generator of `names`."""
    draws = generator(*names).uniform(low, high, REPLICATES)
    return BootstrapEstimate(math.log(value), np.log(draws), n)


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
