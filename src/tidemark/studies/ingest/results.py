"""Results of the study: its quantities, tables, figures and claims, and its contribution to the paper."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tidemark.analysis.measures import Measures
from tidemark.analysis.text_blocks import SentenceWriter, or_why
from tidemark.results.publication import Publication
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import Written, chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.ingest import kyma, published
from tidemark.studies.ingest.claims import MEASURES, IngestClaimData
from tidemark.studies.ingest.columns import UNEQUAL
from tidemark.studies.ingest.concurrent_writers import results as writers
from tidemark.studies.ingest.fault_injection import results as faults
from tidemark.studies.ingest.gateway.policies import BUNDLED, STAGED
from tidemark.studies.ingest.group_commit import results as group
from tidemark.studies.ingest.maintenance import results as maintenance
from tidemark.studies.ingest.metrics import QUANTITIES as OF_COMMITS
from tidemark.studies.ingest.object_store import results as storage
from tidemark.studies.ingest.open_loop import metrics as of_schedules
from tidemark.studies.ingest.open_loop import results as tail
from tidemark.studies.ingest.power_failure import results as cut
from tidemark.studies.ingest.pruning import results as pruning
from tidemark.studies.ingest.questions import QUESTIONS
from tidemark.studies.ingest.study import STUDY
from tidemark.studies.study import Results

QUANTITIES = replace(
    OF_COMMITS,
    all=(*OF_COMMITS.all, *of_schedules.QUANTITIES, *pruning.QUANTITIES),
    code=(
        *OF_COMMITS.code,
        "studies/ingest/open_loop/metrics.py",
        "studies/ingest/pruning/results.py",
        "systems/pruning_dataset.py",
    ),
)

FINDINGS = (
    "scaling", "conflicts", "lost", "retrying", "group-staged", "group-bundled", "open-closed", "trips", "killed",
    "power-cut", "maintenance-held", "mistakes",
)  # fmt: skip


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    own = {"ingest-rows": f"{given['rows']:,}", "ingest-tries": f"{given['tries']:,}"}
    return {**own, **maintenance.values(run_set)}


class Writer(SentenceWriter):
    """Sentences of all parts."""

    def __init__(self, measures: Measures) -> None:
        super().__init__(measures)
        of_writers = writers.Writer(measures)
        self.written: dict[str, Written] = {
            "ingest-scaling": of_writers.scaling,
            "ingest-conflicts": of_writers.conflicts,
            "ingest-retrying": of_writers.retrying,
            "ingest-lost": of_writers.lost,
            "ingest-group-staged": partial(
                group.gained, measures, STAGED, "Gathered in a buffer that is one commit (staged)"
            ),
            "ingest-group-bundled": partial(
                group.gained, measures, BUNDLED, "With the files of several buffers in one commit (bundled)"
            ),
            "ingest-open-closed": partial(tail.omitted, measures),
            "ingest-trips": partial(storage.trips_sentence, measures),
            "ingest-killed": partial(faults.kept_sentence, measures.run_set),
            "ingest-power-cut": partial(cut.cut_sentence, measures.run_set),
            "ingest-maintenance-held": partial(maintenance.held_sentence, measures.run_set),
            "ingest-mistakes": partial(kyma.mistakes, measures),
        }

    def sentences(self) -> dict[str, str]:
        """Return all sentences by name."""
        return {name: or_why(write) for name, write in self.written.items()}


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key="kyma-performance",
        origin=published.ORIGIN,
        hardware=published.HARDWARE,
        software=published.SOFTWARE,
    ),
    tables=tables_of(writers, group, tail, storage, pruning, faults, cut, maintenance, kyma),
    figure_specs=figure_specs_of(
        "tidemark.studies.ingest.concurrent_writers.figures",
        "tidemark.studies.ingest.group_commit.figures",
        "tidemark.studies.ingest.open_loop.figures",
        "tidemark.studies.ingest.figures",
        "tidemark.studies.ingest.fault_injection.figures",
        "tidemark.studies.ingest.maintenance.figures",
    ),
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
    paper=chapter_of(STUDY, _values, Writer, lambda writer: [writer.written[f"ingest-{name}"] for name in FINDINGS]),
    notes=lambda _run_set: (UNEQUAL,),
    questions=QUESTIONS,
    costs=storage.costs,
)
