"""Results of the study: its quantities, tables, figures and claims, and its contribution to the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.analysis.text_blocks import or_why
from tidemark.results.paper.paper_section import PaperSection
from tidemark.results.publication import Publication
from tidemark.results.tables.table import Table, TableBuilder
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import Written, claims_of, figure_specs_of
from tidemark.studies.ingest import kyma, published
from tidemark.studies.ingest.claims import MEASURES, IngestClaimData
from tidemark.studies.ingest.concurrent_writers import results as writers
from tidemark.studies.ingest.fault_injection import results as faults
from tidemark.studies.ingest.group_commit import results as group
from tidemark.studies.ingest.maintenance import results as maintenance
from tidemark.studies.ingest.metrics import QUANTITIES as OF_COMMITS
from tidemark.studies.ingest.object_store import results as storage
from tidemark.studies.ingest.open_loop import results as tail
from tidemark.studies.ingest.part import UNEQUAL
from tidemark.studies.ingest.power_failure import results as cut
from tidemark.studies.ingest.pruning import results as pruning
from tidemark.studies.ingest.questions import QUESTIONS
from tidemark.studies.ingest.study import STUDY
from tidemark.studies.study import Results

HERE = Path(__file__).parent
PARTS = (
    writers.RESULTS,
    group.RESULTS,
    tail.RESULTS,
    replace(storage.RESULTS, figures="tidemark.studies.ingest.figures"),  # those of pruning, too
    pruning.RESULTS,
    faults.RESULTS,
    cut.RESULTS,
    maintenance.RESULTS,
)  # in the order of the results
QUANTITIES = replace(
    OF_COMMITS,
    all=(*OF_COMMITS.all, *(quantity for part in PARTS for quantity in part.quantities)),
    code=(*OF_COMMITS.code, *(path for part in PARTS for path in part.code)),
)


def _tables(builder: TableBuilder) -> Iterator[Table]:
    for part in PARTS:
        yield from part.tables(builder)
    yield from kyma.build(builder)


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    own = {"ingest-rows": f"{given['rows']:,}", "ingest-tries": f"{given['tries']:,}"}
    return {**own, **maintenance.values(run_set)}


def _sentences(measures: Measures) -> dict[str, str]:
    own = {name: or_why(write) for part in PARTS for name, write in part.sentences(measures).items()}
    return {**own, "ingest-mistakes": or_why(partial(kyma.mistakes, measures))}


def _findings(measures: Measures) -> tuple[str, ...]:
    own: list[Written] = [write for part in PARTS for write in part.findings(measures)]
    own.append(partial(kyma.mistakes, measures))
    return tuple(or_why(write) for write in own)


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key="kyma-performance",
        origin=published.ORIGIN,
        hardware=published.HARDWARE,
        software=published.SOFTWARE,
    ),
    tables=_tables,
    figure_specs=figure_specs_of(*(part.figures for part in PARTS if part.figures)),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        IngestClaimData,
        set_up_bytes=2.2e9,
        remarks=(
            "kyma is in no registry: its absolute numbers are shown next to Tidemark's and are not judged. Its claims "
            "on one commit a request are tested on the systems here, and its text is checked against its own numbers.",
        ),
    ),
    paper=PaperSection(
        chapter=HERE / "chapter.typ",
        front=HERE / "front.typ",
        values=_values,
        sentences=_sentences,
        findings=_findings,
    ),
    notes=lambda _run_set: (UNEQUAL,),
    questions=QUESTIONS,
    costs=storage.costs,
)
