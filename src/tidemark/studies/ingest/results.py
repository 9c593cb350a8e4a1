"""Results of the study: its quantities, tables, figures and claims, and its contribution to the paper."""

from __future__ import annotations

from functools import partial

from tidemark.analysis.measures import Measures
from tidemark.analysis.text_blocks import SentenceWriter, or_why
from tidemark.results.publication import Publication
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import Written, chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.ingest import published
from tidemark.studies.ingest.claims import MEASURES, IngestClaimData
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, STAGED
from tidemark.studies.ingest.metrics import QUANTITIES
from tidemark.studies.ingest.questions import QUESTIONS
from tidemark.studies.ingest.study import STUDY
from tidemark.studies.ingest.tables import faults, kyma, maintenance, requests, storage, writers
from tidemark.studies.ingest.tables.columns import UNEQUAL
from tidemark.studies.study import Results

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
                requests.gained, measures, STAGED, "Gathered in a buffer that is one commit (staged)"
            ),
            "ingest-group-bundled": partial(
                requests.gained, measures, BUNDLED, "With the files of several buffers in one commit (bundled)"
            ),
            "ingest-open-closed": partial(requests.omitted, measures),
            "ingest-trips": partial(storage.trips_sentence, measures),
            "ingest-killed": partial(faults.kept_sentence, measures.run_set),
            "ingest-power-cut": partial(faults.cut_sentence, measures.run_set),
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
    tables=tables_of(writers, requests, storage, faults, maintenance, kyma),
    figure_specs=figure_specs_of("tidemark.studies.ingest.figures"),
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
