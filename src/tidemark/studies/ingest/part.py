"""What a part of the study brings to its results, and which runs are of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Quantity
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import Tables, Written
from tidemark.studies.ingest.parts import part_of


@dataclass(frozen=True, slots=True)
class PartResults:
    """`tables` are modules with tables, and `figures` names the one that has its figures.

    `sentences` are the chapter's by their names there, `findings` those that the paper and the report begin with.
    `quantities` are those that no other part has, `code` the files of the package that compute them.
    """

    tables: tuple[Tables, ...]
    sentences: Callable[[Measures], Mapping[str, Written]]
    findings: Callable[[Measures], tuple[Written, ...]] = lambda _measures: ()
    figures: str | None = None
    quantities: tuple[Quantity, ...] = ()
    code: tuple[str, ...] = ()


def of_part(run_set: RunSet, part: str) -> RunSet:
    """The series of the study that belong to `part`."""
    return replace(run_set, series=tuple(each for each in run_set.series if part_of(each.mode) == part))
