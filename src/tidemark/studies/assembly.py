"""Functions that build the parts of a study's results.py from the files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, MetricSet
from tidemark.analysis.text_blocks import SentenceWriter, or_why
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.claims.claims import ClaimSet
from tidemark.results.claims.measures import GENERAL, Measure
from tidemark.results.publication import PaperSection, Publication
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Table, TableBuilder
from tidemark.runs.runset import RunSet
from tidemark.studies.study import Results, Study

if TYPE_CHECKING:
    from tidemark.results.figures.context import FigureSpec

Written = Callable[[], str]  # returns a sentence; raises NotAvailable if the runs do not support it


class Tables(Protocol):
    """Module that builds tables."""

    def build(self, builder: TableBuilder) -> Iterator[Table]: ...


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


def chapter_of[W: SentenceWriter](
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


def plain_results(
    study: Study,
    metrics: Sequence[Metric],
    publication: Publication,
    sentences: Callable[[Measures], Mapping[str, str]],
) -> Results:
    """Return the results of a study that needs no tables and figures of its own.

    It has a table STUDY-metrics of all metrics by system, a figure STUDY-METRIC of each, the claims of claims.yaml by
    the general measures, and the study's chapter.typ with these `sentences`. Verdicts use the first metric, which
    therefore names its `subjects`.
    """
    quantities = MetricSet((metrics[0],), tuple(metrics), (f"studies/{study.name}",))

    def tables(builder: TableBuilder) -> Iterator[Table]:
        columns = [SYSTEM_OF_SERIES, *(builder.metric(each.key, each) for each in metrics)]
        every = builder.run_set.select()
        yield builder.computed_table(f"{study.name}-metrics", study.question, columns, every, builder.run_set.runs)

    def figure_specs() -> Iterator[FigureSpec]:
        from tidemark.results.figures.plots import metric_figure

        for each in metrics:
            yield metric_figure(f"{study.name}-{each.key}", each)

    return Results(
        quantities=quantities,
        publication=publication,
        tables=tables,
        figure_specs=figure_specs,
        claims=claims_of(study, quantities, GENERAL, ClaimData, remarks=(), set_up_bytes=2e9),
        paper=PaperSection(_folder(study) / "chapter.typ", lambda _run_set: {}, sentences),
        notes=lambda _run_set: (),
    )


def _folder(study: Study) -> Path:
    return Path(__file__).parent / study.name
