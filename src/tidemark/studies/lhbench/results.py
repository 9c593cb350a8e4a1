"""Results of the study: its metrics, tables, figures, claims, questions and chapter of the paper."""

from __future__ import annotations

from tidemark.analysis.metrics import Metric
from tidemark.results.reference.run_files import RunFiles, meanings
from tidemark.results.report.summary_table import SummaryMetric, SystemRuns, of_series, with_runs
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


def _question(
    key: str, title: str, quantity: Metric, part: str, hint: str, asks: str | None = None, *, usual: bool = True
) -> SummaryMetric:
    """Return a question about the series of a part with the largest scale, which is a remark on the answer."""

    def largest(asked: SystemRuns) -> Series:
        return with_runs(of_part(asked.series, part))[-1]

    def scale(asked: SystemRuns, _mode: str | None) -> str:
        return f"scale factor {settings_of(largest(asked)).size:g}"

    return SummaryMetric(key, title, "s", of_series(quantity, largest), hint, usual=usual, note=scale, asks=asks)


QUESTIONS = (
    _question("lake-load", "Load", LOADING, LOAD, "Tables of TPC-DS made of Parquet files, all together.",
              "Fastest load of TPC-DS"),
    _question("lake-queries", "Queries", TOTAL, LOAD, "The sum over queries of the median of each.",
              "Fastest queries of TPC-DS"),
    _question("lake-merge", "A refresh", MERGING, REFRESH,
              "MERGE of a refresh set into fact tables, the median over refreshes.", "Fastest refresh by MERGE"),
    _question("lake-after", "Queries after merges", QUERIES_AFTER, REFRESH,
              "The sum over queries of the median of each, after all refreshes and before compaction.", usual=False),
)  # fmt: skip
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
