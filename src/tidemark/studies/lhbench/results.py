"""Results of the study: its quantities, tables, figures, claims, questions and chapter of the paper."""

from __future__ import annotations

from tidemark.results.publication import Publication
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import chapter_of, claims_of, sketches_of, tables_of
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.measures import MEASURES, LhbenchEvidence
from tidemark.studies.lhbench.quantities import QUANTITIES
from tidemark.studies.lhbench.questions import QUESTIONS
from tidemark.studies.lhbench.second import table
from tidemark.studies.lhbench.sentences import Writer
from tidemark.studies.lhbench.study import STUDY
from tidemark.studies.lhbench.tables import engine, measured, paper
from tidemark.studies.study import Results


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    sizes = given["protocols"][given["protocol"]]
    return {
        "lhbench-scale": f"{max(sizes['load']['scales']):g}",
        "lhbench-refresh-scale": f"{sizes['refresh']['scale']:g}",
        "lhbench-refreshes": f"{sizes['refresh']['refreshes']}",
        "lhbench-share": f"{100 * sizes['refresh']['share']:g}",
        "lhbench-merge-rows": f"{sizes['merge']['rows']:,}",
        "lhbench-merge-files": f"{sizes['merge']['files']:,}",
        "lhbench-file-rows": f"{sizes['files']['rows']:,}",
        "lhbench-their-scale": f"{published.SCALE:,}",
    }


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key=published.KEY, origin=published.ORIGIN, hardware=published.HARDWARE, software=published.SOFTWARE
    ),
    tables=tables_of(measured, engine, table, paper),
    sketches=sketches_of("tidemark.studies.lhbench.figures.panels"),
    claims=claims_of(STUDY, QUANTITIES, MEASURES, LhbenchEvidence, set_up_bytes=3.6e9, remarks=(measured.LARGE_SAID,)),
    paper=chapter_of(
        STUDY,
        _values,
        Writer,
        lambda writer: (writer.loads, writer.queries, writer.refreshes, writer.files, writer.oracle),
    ),
    notes=lambda _run_set: (measured.LARGE_SAID,),
    questions=QUESTIONS,
)
