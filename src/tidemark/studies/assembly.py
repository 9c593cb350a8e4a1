"""Functions that build the parts of a study's results.py from the files in its folder."""

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

Written = Callable[[], str]  # returns a sentence; raises Absent if the runs do not support it


class Tables(Protocol):
    """Module that builds tables."""

    def build(self, workshop: Workshop) -> Iterator[Table]: ...


class Sentences(Protocol):
    """Writer of a study's sentences."""

    def sentences(self) -> Mapping[str, str]:
        """Return all sentences by their names in the study's chapter."""


def tables_of(*modules: Tables) -> Callable[[Workshop], Iterator[Table]]:
    """Return a function that yields the tables of all `modules`, in this order."""

    def build(workshop: Workshop) -> Iterator[Table]:
        for module in modules:
            yield from module.build(workshop)

    return build


def sketches_of(*modules: str) -> Callable[[], Iterator[Sketch]]:
    """Return a function that yields the sketches of all modules of these names, in this order.

    The modules are imported on that call: Matplotlib takes half a second to import, and no other command needs it.
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
    """Return the claims of the study's claims.yaml."""
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
    """Return the contribution of the study's chapter.typ and, if it exists, front.typ, with sentences by `writer`."""
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
