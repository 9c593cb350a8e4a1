"""Functions that build the parts of a study's results.py from the files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import MetricSet
from tidemark.analysis.text_blocks import or_why
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.claims.claims import ClaimSet
from tidemark.results.claims.measures import Measure
from tidemark.results.paper.paper_section import PaperSection
from tidemark.results.tables.table import Table, TableBuilder
from tidemark.runs.runset import RunSet
from tidemark.studies.study import Study

if TYPE_CHECKING:
    from tidemark.results.figures.context import FigureSpec

Written = Callable[[], str]  # returns a sentence; raises NotAvailable if the runs do not support it


class Tables(Protocol):
    """Module that builds tables."""

    def build(self, builder: TableBuilder) -> Iterator[Table]: ...


class Sentences(Protocol):
    """Writer of a study's sentences."""

    def sentences(self) -> Mapping[str, str]:
        """Return all sentences by their names in the study's chapter."""


def tables_of(*modules: Tables) -> Callable[[TableBuilder], Iterator[Table]]:
    """Return a function that yields the tables of all `modules`, in this order."""

    def build(builder: TableBuilder) -> Iterator[Table]:
        for module in modules:
            yield from module.build(builder)

    return build


def figure_specs_of(*modules: str) -> Callable[[], Iterator[FigureSpec]]:
    """Return a function that yields the figures of all modules of these names, in this order.

    The modules are imported on that call: Matplotlib takes half a second to import, and no other command needs it.
    """

    def figure_specs() -> Iterator[FigureSpec]:
        for name in modules:
            yield from import_module(name).figure_specs()

    return figure_specs


def claims_of(
    study: Study,
    quantities: MetricSet,
    measures: Mapping[str, Measure],
    claim_data: type[ClaimData],
    *,
    remarks: tuple[str, ...],
    rates: Mapping[str, float] = MappingProxyType({}),
    set_up_bytes: float,
) -> ClaimSet:
    """Return the claims of the study's claims.yaml."""
    return ClaimSet(
        study=study.name,
        title=study.title,
        path=_folder(study) / "claims.yaml",
        quantities=quantities,
        measures=measures,
        claim_data=claim_data,
        rates=rates,
        remarks=remarks,
        set_up_bytes=set_up_bytes,
    )


def chapter_of[W: Sentences](
    study: Study,
    values: Callable[[RunSet], Mapping[str, str]],
    writer: Callable[[Measures], W],
    findings: Callable[[W], Sequence[Written]],
) -> PaperSection:
    """Return the contribution of the study's chapter.typ and, if it exists, front.typ, with sentences by `writer`."""
    front = _folder(study) / "front.typ"
    return PaperSection(
        chapter=_folder(study) / "chapter.typ",
        front=front if front.is_file() else None,
        values=values,
        sentences=lambda measures: writer(measures).sentences(),
        findings=lambda measures: tuple(or_why(write) for write in findings(writer(measures))),
    )


def _folder(study: Study) -> Path:
    return Path(__file__).parent / study.name
