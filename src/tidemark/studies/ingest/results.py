"""Results of the study: its tables, figures, claims, chapter, and the columns of the report's first table."""

from __future__ import annotations

from functools import partial

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import require
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.analysis.text_blocks import SentenceWriter, or_why
from tidemark.results.claims.claim_data import LossClaimData
from tidemark.results.reference.run_files import RunFiles
from tidemark.results.report.summary_table import SystemRuns, hot_of, questions_of, with_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import Written, chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.ingest import published
from tidemark.studies.ingest.claims import MEASURES
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, STAGED
from tidemark.studies.ingest.load.records import BLIND, COLUMNS
from tidemark.studies.ingest.metrics import COMMITS, CONFLICTS, FAIRNESS, LOST, P50, P99, QUANTITIES, ROWS
from tidemark.studies.ingest.parts import CUT, FAULTS, CutSettings, part_name
from tidemark.studies.ingest.record import RECORDS
from tidemark.studies.ingest.settings import GROUP, ONE, WRITERS, GroupSettings, WritersSettings
from tidemark.studies.ingest.study import STUDY
from tidemark.studies.ingest.tables import ambiguity, faults, maintenance, requests, storage, writers
from tidemark.studies.ingest.window.ambiguity import Attempted
from tidemark.studies.ingest.window.one_client import Added, Asked, AtAge
from tidemark.studies.study import Results
from tidemark.systems.base import FULL

PERCENT = 100.0


def _shared(asked: SystemRuns) -> list[Series]:
    """Return the series with one table for all writers, by number of writers; raise NotAvailable if none has runs."""
    own = [each for each in asked.series if part_name(each) == WRITERS and WritersSettings.of(each).tables == ONE]
    return sorted(with_runs(own), key=lambda each: WritersSettings.of(each).writers)


def _alone(asked: SystemRuns) -> Series:
    first = _shared(asked)[0]
    require(WritersSettings.of(first).writers == 1, "not measured with one writer")
    return first


def _most(asked: SystemRuns) -> Series:
    """Return the series with the most writers."""
    return _shared(asked)[-1]


def _gathered(asked: SystemRuns) -> Series:
    """Return the series of staged requests with the most clients; raise NotAvailable if none has runs."""
    own = [each for each in asked.series if part_name(each) == GROUP and GroupSettings.of(each).policy == STAGED]
    return max(with_runs(own, "no requests were gathered in front of it"), key=lambda each: requests.shape(each)[::-1])


def _with_kills(asked: SystemRuns) -> Series:
    return asked.first(lambda each: part_name(each) == FAULTS and faults.retry_of(each) != BLIND, "nothing was killed")


def _with_cuts(asked: SystemRuns) -> Series:
    """Return the power-cut series with the configured durability, not the one with full durability."""
    return asked.first(
        lambda each: part_name(each) == CUT and CutSettings.of(each).durability != FULL, "its power was not cut"
    )


def _wrong_maintained(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
    found = asked.first(maintenance.is_maintained, "nothing was maintained while it was written to")
    return maintenance.wrong(maintenance.kept_of(found)).scaled(PERCENT)


def _writers(asked: SystemRuns, _mode: str | None) -> str:
    return f"{WritersSettings.of(_most(asked)).writers:,} writers"


def _kills(asked: SystemRuns, _mode: str | None) -> str:
    return f"{sum(len(killed.each) for killed in faults.killed_of(_with_kills(asked))):,} kills"


def _cuts(asked: SystemRuns, _mode: str | None) -> str:
    cuts = faults.Cuts.of(_with_cuts(asked))
    return f"{len(cuts.each):,} cut{'s' if len(cuts.each) > 1 else ''}" + (", unreadable" if cuts.unread else "")


def _shape(asked: SystemRuns, _mode: str | None) -> str:
    rows, clients = requests.shape(_gathered(asked))
    return f"{rows:,} rows a request, {clients:,} clients"


QUESTIONS = questions_of(
    __file__,
    {
        "commits-alone": hot_of(COMMITS, _alone),
        "commits-many": hot_of(COMMITS, _most),
        "commit-alone": hot_of(P50, _alone),
        "commit-p99-many": hot_of(P99, _most),
        "conflicts-many": hot_of(CONFLICTS, _most, PERCENT),
        "fairness-many": hot_of(FAIRNESS, _most),
        "rows-gathered": hot_of(ROWS, _gathered),
        "p99-gathered": hot_of(P99, _gathered),
        "lost-many": hot_of(LOST, _most, PERCENT),
        "lost-killed": lambda asked, _mode: faults.costly(_with_kills(asked)).scaled(PERCENT),
        "wrong-maintained": _wrong_maintained,
        "lost-cut": lambda asked, _mode: faults.costly_cuts(_with_cuts(asked)).scaled(PERCENT),
    },
    {
        **dict.fromkeys(("commits-many", "commit-p99-many", "conflicts-many", "fairness-many", "lost-many"), _writers),
        **dict.fromkeys(("rows-gathered", "p99-gathered"), _shape),
        "lost-killed": _kills,
        "lost-cut": _cuts,
    },
)


FINDINGS = (
    "scaling", "conflicts", "paced", "lost", "retrying", "group-staged", "group-bundled", "open-closed", "trips",
    "evolution", "ages", "killed", "harmed", "safe", "power-cut", "maintenance-held", "mistakes",
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
            "ingest-paced": partial(requests.refused_sentence, measures),
            "ingest-retrying": of_writers.retrying,
            "ingest-lost": of_writers.lost,
            "ingest-group-staged": partial(requests.gained, measures, STAGED),
            "ingest-group-bundled": partial(requests.gained, measures, BUNDLED),
            "ingest-open-closed": partial(requests.omitted, measures),
            "ingest-trips": partial(storage.trips_sentence, measures),
            "ingest-evolution": partial(storage.change_sentence, measures),
            "ingest-ages": partial(storage.aged_sentence, measures.run_set),
            "ingest-killed": partial(faults.kept_sentence, measures.run_set),
            "ingest-harmed": partial(ambiguity.harmed_sentence, measures.run_set),
            "ingest-cuts": partial(ambiguity.cuts_sentence, measures.run_set),
            "ingest-safe": partial(ambiguity.safe_sentence, measures.run_set),
            "ingest-power-cut": partial(faults.cut_sentence, measures.run_set),
            "ingest-maintenance-held": partial(maintenance.held_sentence, measures.run_set),
            "ingest-mistakes": partial(published.mistakes, measures),
        }

    def sentences(self) -> dict[str, str]:
        """Return all sentences by name."""
        return {name: or_why(write) for name, write in self.written.items()}


RESULTS = Results(
    quantities=QUANTITIES,
    publication=published.PUBLICATION,
    tables=tables_of(writers, requests, storage, faults, ambiguity, maintenance, published),
    figure_specs=figure_specs_of("tidemark.studies.ingest.figures", "tidemark.studies.ingest.disturbed_figures"),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        LossClaimData,
        # Of a table of 10,000 commits, whose earlier metadata is kept.
        rates={"ages-1-100-1000-10000": 10_500.0},
        set_up_bytes=2.2e9,
        remarks=(
            "kyma is in no registry: its absolute numbers are shown next to Tidemark's and are not judged. Its claims "
            "on one commit a request are tested on the systems here, and its text is checked against its own numbers.",
        ),
    ),
    paper=chapter_of(STUDY, _values, Writer, lambda writer: [writer.written[f"ingest-{name}"] for name in FINDINGS]),
    notes=lambda _run_set: (writers.UNEQUAL,),
    questions=QUESTIONS,
    costs=storage.costs,
    run_files=RunFiles((COLUMNS, Asked, Added, AtAge, Attempted), RECORDS),
)
