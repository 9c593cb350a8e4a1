"""Results of the smallest study: one quantity, one table, one figure, one claim and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tidemark.analysis.formatting import attempt, estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import LOWER, Metric, MetricSet, Quantile
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.claims.claims import ClaimSet
from tidemark.results.claims.measures import GENERAL
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.paper.paper_section import PaperSection
from tidemark.results.publication import Publication
from tidemark.results.tables.table import Column, Table, TableBuilder
from tidemark.studies.study import Results

HERE = Path(__file__).parent
TICK = Metric(
    "tick median", "ms", "Median sleep", Quantile("elapsed_ns", 0.5), better=LOWER, key="tick", subjects="Sleeps",
    words=("longer", "shorter"),
)  # fmt: skip
QUANTITIES = MetricSet((TICK,), (TICK,), ("studies/ticks",))


def tables(builder: TableBuilder) -> Iterator[Table]:
    rows = [
        [series.title, attempt("ms", partial(builder.measures.hot, TICK, series))]
        for series in builder.run_set.select()
    ]
    columns = (Column("system", "System"), Column("tick", "Median sleep", "ms", interval=True))
    yield builder.table("tick-times", "How long a sleep takes", columns, rows, builder.run_set.runs)


def draw(context: FigureContext) -> DrawnFigure:
    from tidemark.results.figures import plots

    all_series = context.run_set.select()
    rows = [(each.title, [(context.measures.hot(TICK, each).estimate("ms"), each, True)]) for each in all_series]
    return context.finish(plots.dots(context, rows, "ms"), "How long a sleep takes", [], all_series[0].hot_runs)


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("tick-picture", "How long a sleep takes", draw)


def sentences(measures: Measures) -> dict[str, str]:
    (series,) = measures.run_set.select()
    return {"ticks": f"A sleep takes {estimate_text(measures.hot(TICK, series).estimate('ms'))}."}


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(key="folklore", origin="Folklore"),
    tables=tables,
    figure_specs=figure_specs,
    claims=ClaimSet("ticks", "Sleeps", HERE / "claims.yaml", QUANTITIES, GENERAL, ClaimData, {"ticks": 1.0}),
    paper=PaperSection(HERE / "chapter.typ", lambda _run_set: {}, sentences),
    notes=lambda _run_set: (),
)
