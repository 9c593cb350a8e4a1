"""Results of the study: its tables, figures, claims, chapter, and the columns of the report's first table."""

from __future__ import annotations

from tidemark.analysis.metrics import require
from tidemark.results.reference.run_files import RunFiles
from tidemark.results.report.summary_table import SystemRuns, of_series, questions_of, with_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.deltars import published, tables
from tidemark.studies.deltars.claims import MEASURES, DeltarsClaimData
from tidemark.studies.deltars.findings import Writer
from tidemark.studies.deltars.metrics import BYTES, QUANTITIES, READ_MEDIAN, WRITE_MEDIAN, most_common
from tidemark.studies.deltars.samples import DeltarsSettings, Done, TablesRecord, processors_text
from tidemark.studies.deltars.study import STUDY
from tidemark.studies.study import Results


def _alike(asked: SystemRuns) -> Series:
    """Return the system's series with the table and processors used for the comparison.

    Raise NotAvailable if there is none.
    """
    ran = with_runs(asked.series)
    data, cores = most_common(asked.measures.run_set, ran[0].stack)
    found = [each for each in ran if DeltarsSettings.of(each).cell == (data, cores)]
    require(found, f"not measured with {data}, {processors_text(cores)}")
    return found[0]


def _note(asked: SystemRuns, _mode: str | None) -> str:
    data, cores = DeltarsSettings.of(_alike(asked)).cell
    return f"{data}, {processors_text(cores)}"


METRICS = {"whole-write": WRITE_MEDIAN, "whole-read": READ_MEDIAN, "whole-bytes": BYTES}
QUESTIONS = questions_of(
    __file__, {key: of_series(quantity, _alike) for key, quantity in METRICS.items()}, dict.fromkeys(METRICS, _note)
)


def _values(run_set: RunSet) -> dict[str, str]:
    return {
        "deltars-repetitions": f"{published.REPETITIONS}",
        "deltars-checked": f"{run_set.config.values['checked_rows']:,}",
    }


RESULTS = Results(
    quantities=QUANTITIES,
    publication=published.PUBLICATION,
    tables=tables_of(tables),
    figure_specs=figure_specs_of("tidemark.studies.deltars.figures"),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        DeltarsClaimData,
        set_up_bytes=2.7e9,
        remarks=(
            "HDFS stands in for HopsFS, and its servers share the client's machine: ratios and shapes are judged, and "
            "one value in seconds, the minute that a legacy write takes. The legacy path is rebuilt from its public "
            "parts. The thesis's sentences are also judged by its own tables (printed-...).",
        ),
    ),
    paper=chapter_of(
        STUDY, _values, Writer, lambda writer: (writer.writes, writer.legacy, writer.floor, writer.oracle)
    ),
    notes=lambda _run_set: tuple(tables.NOTES("deltars")),
    questions=QUESTIONS,
    run_files=RunFiles((Done,), (TablesRecord,)),
)
