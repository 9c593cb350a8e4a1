"""What results.py of a study is put together with, of what its folder holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from tidemark.analysis.measures import Measures
from tidemark.analysis.prose import or_why
from tidemark.analysis.quantities import Quantities
from tidemark.results.claims.claims import ClaimBook
from tidemark.results.claims.evidence import Evidence
from tidemark.results.claims.measures import Measure
from tidemark.results.paper.contribution import Contribution
from tidemark.results.tables.table import Table, Workshop
from tidemark.runs.runset import RunSet
from tidemark.studies.study import Study

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

Written = Callable[[], str]  # a sentence; Absent where the runs do not have it


class Tables(Protocol):
    """A module with tables."""

    def build(self, workshop: Workshop) -> Iterator[Table]: ...


class Sentences(Protocol):
    """Who writes the sentences of a study."""

    def sentences(self) -> Mapping[str, str]:
        """All of them, by their names in its chapter."""


def tables_of(*modules: Tables) -> Callable[[Workshop], Iterator[Table]]:
    """Those of all `modules`, in this order."""

    def build(workshop: Workshop) -> Iterator[Table]:
        for module in modules:
            yield from module.build(workshop)

    return build


def sketches_of(*modules: str) -> Callable[[], Iterator[Sketch]]:
    """Those of all modules of these names, in this order.

    They are imported when they are asked for: Matplotlib takes half a second, which no other command has to wait for.
    """

    def sketches() -> Iterator[Sketch]:
        for name in modules:
            yield from import_module(name).sketches()

    return sketches


def claims_of(
    study: Study,
    quantities: Quantities,
    measures: Mapping[str, Measure],
    evidence: type[Evidence],
    *,
    remarks: tuple[str, ...],
    rates: Mapping[str, float] = MappingProxyType({}),
    set_up_bytes: float,
) -> ClaimBook:
    """Those of the study's claims.yaml."""
    return ClaimBook(
        study=study.name,
        title=study.title,
        path=_folder(study) / "claims.yaml",
        quantities=quantities,
        measures=measures,
        evidence=evidence,
        rates=rates,
        remarks=remarks,
        set_up_bytes=set_up_bytes,
    )


def chapter_of[W: Sentences](
    study: Study,
    values: Callable[[RunSet], Mapping[str, str]],
    writer: Callable[[Measures], W],
    findings: Callable[[W], Sequence[Written]],
) -> Contribution:
    """The study's chapter.typ, and its front.typ where it has one, with what a `writer` says."""
    front = _folder(study) / "front.typ"
    return Contribution(
        chapter=_folder(study) / "chapter.typ",
        front=front if front.is_file() else None,
        values=values,
        sentences=lambda measures: writer(measures).sentences(),
        findings=lambda measures: tuple(or_why(write) for write in findings(writer(measures))),
    )


def _folder(study: Study) -> Path:
    return Path(__file__).parent / study.name
