"""Results of the study: its metrics, tables, figures, claims, questions and chapter of the paper."""

from __future__ import annotations

from functools import partial

from tidemark.results.reference.run_files import RunFiles, meanings
from tidemark.results.report.summary_table import SystemRuns, of_series, questions_of, with_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.services.engines.spark_events import Stage
from tidemark.studies.assembly import chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.lhbench import paper_tables, published, tables
from tidemark.studies.lhbench.claims import MEASURES, LakeClaimData
from tidemark.studies.lhbench.findings import Writer
from tidemark.studies.lhbench.metrics import LOADING, MERGING, QUANTITIES, QUERIES_AFTER, TOTAL, of_part
from tidemark.studies.lhbench.record import JOBS, DataRecord, Done, LakeRecord, SecondRecord
from tidemark.studies.lhbench.settings import LOAD, REFRESH, settings_of
from tidemark.studies.lhbench.study import STUDY
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


METRICS = {
    "lake-load": (LOADING, LOAD),
    "lake-queries": (TOTAL, LOAD),
    "lake-merge": (MERGING, REFRESH),
    "lake-after": (QUERIES_AFTER, REFRESH),
}


def _largest(part: str, asked: SystemRuns) -> Series:
    """Return the series of a part with the largest scale."""
    return with_runs(of_part(asked.series, part))[-1]


def _scale(part: str, asked: SystemRuns, _mode: str | None) -> str:
    return f"scale factor {settings_of(_largest(part, asked)).size:g}"


QUESTIONS = questions_of(
    __file__,
    {key: of_series(quantity, partial(_largest, part)) for key, (quantity, part) in METRICS.items()},
    {key: partial(_scale, part) for key, (_, part) in METRICS.items()},
)
RESULTS = Results(
    quantities=QUANTITIES,
    publication=published.PUBLICATION,
    tables=tables_of(tables, paper_tables),
    figure_specs=figure_specs_of("tidemark.studies.lhbench.figures"),
    claims=claims_of(STUDY, QUANTITIES, MEASURES, LakeClaimData, set_up_bytes=3.6e9, remarks=(tables.LARGE_SAID,)),
    paper=chapter_of(
        STUDY,
        _values,
        Writer,
        lambda writer: (writer.loads, writer.queries, writer.refreshes, writer.files, writer.oracle),
    ),
    notes=lambda _run_set: (tables.LARGE_SAID,),
    questions=QUESTIONS,
    run_files=RunFiles((Done,), (LakeRecord, SecondRecord, DataRecord), {"stages": JOBS | meanings(Stage)}),
)
