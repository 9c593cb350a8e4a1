"""Results of the smallest study: one quantity, one table, one figure, one claim and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import LOWER, Quantile, Quantities, Quantity
from tidemark.analysis.words import attempt, estimate_text
from tidemark.results.claims.claims import ClaimBook
from tidemark.results.claims.evidence import Evidence
from tidemark.results.claims.measures import GENERAL
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.results.paper.contribution import Contribution
from tidemark.results.publication import Publication
from tidemark.results.tables.table import Column, Table, Workshop
from tidemark.studies.study import Results

HERE = Path(__file__).parent
TICK = Quantity(
    "tick median", "ms", "Median sleep", Quantile("elapsed_ns", 0.5), better=LOWER, key="tick", subjects="Sleeps",
    words=("longer", "shorter"),
)  # fmt: skip
QUANTITIES = Quantities((TICK,), (TICK,), ("studies/ticks",))


def tables(workshop: Workshop) -> Iterator[Table]:
    rows = [
        [series.title, attempt("ms", partial(workshop.measures.hot, TICK, series))]
        for series in workshop.run_set.select()
    ]
    columns = (Column("system", "System"), Column("tick", "Median sleep", "ms", interval=True))
    yield workshop.table("tick-times", "How long a sleep takes", columns, rows, workshop.run_set.runs)


def draw(studio: Studio) -> Drawn:
    from tidemark.results.figures import plots

    all_series = studio.run_set.select()
    rows = [(each.title, [(studio.measures.hot(TICK, each).estimate("ms"), each, True)]) for each in all_series]
    return studio.finish(plots.dots(studio, rows, "ms"), "How long a sleep takes", [], all_series[0].hot_runs)


def sketches() -> Iterator[Sketch]:
    yield Sketch("tick-picture", "How long a sleep takes", draw)


def sentences(measures: Measures) -> dict[str, str]:
    (series,) = measures.run_set.select()
    return {"ticks": f"A sleep takes {estimate_text(measures.hot(TICK, series).estimate('ms'))}."}


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(key="folklore", origin="Folklore"),
    tables=tables,
    sketches=sketches,
    claims=ClaimBook("ticks", "Sleeps", HERE / "claims.yaml", QUANTITIES, GENERAL, Evidence, {"ticks": 1.0}),
    paper=Contribution(HERE / "chapter.typ", lambda _run_set: {}, sentences),
    notes=lambda _run_set: (),
)
