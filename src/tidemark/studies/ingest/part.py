"""Contribution of a part to the study's results, and the selection of a part's runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Quantity
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import Tables, Written
from tidemark.studies.ingest.parts import part_name


@dataclass(frozen=True, slots=True)
class PartResults:
    """Results of a part: `tables` are modules with tables, and `figures` names its module of figures, if it has one.

    `sentences` are those of the chapter, by name; `findings` are those that open the paper and the report.
    `quantities` are those that no other part has; `code` lists the files of the package that compute them.
    """

    tables: tuple[Tables, ...]
    sentences: Callable[[Measures], Mapping[str, Written]]
    findings: Callable[[Measures], tuple[Written, ...]] = lambda _measures: ()
    figures: str | None = None
    quantities: tuple[Quantity, ...] = ()
    code: tuple[str, ...] = ()


def of_part(run_set: RunSet, part: str) -> RunSet:
    """Return `run_set` with only the series that belong to `part`."""
    return replace(run_set, series=tuple(each for each in run_set.series if part_name(each) == part))
