"""Results of the smallest study: one metric, which has a table, a figure and a claim, and a sentence."""

from __future__ import annotations

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import LOWER, Metric, Quantile
from tidemark.results.publication import Publication
from tidemark.studies.assembly import plain_results

from .study import STUDY

TICK = Metric(
    "tick median", "ms", "Median sleep", Quantile("elapsed_ns", 0.5), better=LOWER, key="tick", subjects="Sleeps"
)


def sentences(measures: Measures) -> dict[str, str]:
    (series,) = measures.run_set.select()
    return {"ticks": f"A sleep takes {estimate_text(measures.hot(TICK, series).estimate('ms'))}."}


RESULTS = plain_results(STUDY, [TICK], Publication(key="folklore", origin="Folklore"), sentences)
