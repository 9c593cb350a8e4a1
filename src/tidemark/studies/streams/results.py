"""Results of the study: its quantities, tables, figures, claims and contribution to the paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.planner.cost_model import Cell, Cost, rtt_of
from tidemark.results.publication import PaperSection, Publication
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, MAIN, SINGLE
from tidemark.studies.assembly import claims_of, figure_specs_of, tables_of
from tidemark.studies.streams import paper, published
from tidemark.studies.streams.claims import MEASURES, StreamClaimData
from tidemark.studies.streams.findings import findings
from tidemark.studies.streams.metrics import FILES_PER_COMMIT, GROWTH, QUANTITIES, SYSTEM_RATE
from tidemark.studies.streams.questions import QUESTIONS
from tidemark.studies.streams.study import STUDY
from tidemark.studies.streams.tables import age, inlining, performance, storage
from tidemark.studies.streams.tables import published as of_thesis
from tidemark.studies.study import Results

HERE = Path(__file__).parent

# Views of the metrics database, one row per run.
VIEWS = """
CREATE VIEW throughput AS
SELECT r.run_id, s.system, s.mode, s.batch_size, s.stack, s.sweep, r.run, r.cold, r.events,
       r.events / (r.elapsed_ns / 1e9) AS harness_events_per_s,
       r.events / (o.write_ns / 1e9) AS system_events_per_s
FROM runs r
JOIN series s USING (series_id)
JOIN (SELECT run_id, sum(write_ns) AS write_ns FROM operations GROUP BY run_id) o USING (run_id);

CREATE VIEW write_times AS
SELECT r.run_id, s.system, s.mode, s.batch_size, s.stack, s.sweep, r.run, r.cold, count(*) AS operations,
       quantile_cont(o.write_ns, 0.5) / 1e6 AS median_ms,
       (quantile_cont(o.write_ns, 0.75) - quantile_cont(o.write_ns, 0.25)) / 1e6 AS iqr_ms,
       quantile_cont(o.write_ns, 0.9) / 1e6 AS p90_ms,
       quantile_cont(o.write_ns, 0.99) / 1e6 AS p99_ms,
       quantile_cont(o.write_ns, 0.999) / 1e6 AS p999_ms,
       max(o.write_ns) / 1e6 AS max_ms
FROM operations o
JOIN runs r USING (run_id)
JOIN series s USING (series_id)
GROUP BY ALL;
"""


def _costs(measures: Measures) -> Iterator[Cost]:
    """Yield mean write costs of the main series and of batch-size sweeps: from hot runs, or from a sweep's only run."""
    for series in measures.run_set.series:
        varied = series.sweep == MAIN or measures.run_set.axis_of(series.sweep) == "batch_size"
        if varied and series.runs and not series.is_null_baseline:
            yield _cost(measures, series)


def _cost(measures: Measures, series: Series) -> Cost:
    runs = series.hot_runs or series.runs
    growth = files = None
    with suppress(NotAvailable):
        slope = measures.value(GROWTH, series)
        growth = slope.value if slope.estimate("").is_above(0) else 0.0
    with suppress(NotAvailable):
        files = measures.value(FILES_PER_COMMIT, series).value
    return Cost(
        system=series.system,
        title=series.title,
        stack=series.stack,
        promise=runs[0].manifest.system.durability,
        cell=Cell(series.batch_size, rtt_ms=rtt_of(runs[0])),
        commit_ms=1000 * series.batch_size / measures.value(SYSTEM_RATE, series).value,
        commits=sum(run.manifest.operations for run in runs) / len(runs) / 2,
        growth_ms=growth,
        files=files,
    )


RESULTS = Results(
    quantities=QUANTITIES,
    views=VIEWS,
    publication=Publication(
        key="thesis",
        origin=published.ORIGIN,
        hardware=published.HARDWARE,
        software=published.SOFTWARE,
        optional=("Polaris",),
    ),
    tables=tables_of(of_thesis, performance, storage, inlining, age),
    figure_specs=figure_specs_of(
        "tidemark.studies.streams.figures.components",
        "tidemark.studies.streams.figures.published",
        "tidemark.studies.streams.figures.performance",
    ),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        StreamClaimData,
        rates={SINGLE: 2_000.0, BATCH: 80_000.0},
        set_up_bytes=2.0e9,
        remarks=(
            "Claims on cold runs are tested on cold starts: the thesis restarted the machine, then started servers, "
            "filled topics and measured. Claims on reading single events are tested only in runs that read one at a "
            "time, as the thesis did.",
        ),
    ),
    paper=PaperSection(
        chapter=HERE / "chapter.typ",
        front=HERE / "front.typ",
        values=paper.values,
        sentences=paper.sentences,
        parts=paper.parts,
        findings=findings,
    ),
    notes=lambda run_set: performance.reading_notes(run_set.series),
    questions=QUESTIONS,
    costs=_costs,
    first_figure="figure-5.1",
)
