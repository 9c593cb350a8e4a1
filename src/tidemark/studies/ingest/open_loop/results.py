"""Results of requests sent by a schedule, and their finding, computed from runs."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.formatting import estimate_text, listed
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.text_blocks import SentenceWriter
from tidemark.runs.runset import Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.open_loop import tables
from tidemark.studies.ingest.open_loop.metrics import CODE, CORRECTED_P99, QUANTITIES, RESPONSE_P99
from tidemark.studies.ingest.open_loop.tables import in_order, overloaded, understated
from tidemark.studies.ingest.part import PartResults
from tidemark.studies.ingest.settings import ONE, TailSettings


class Tail(SentenceWriter):
    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        return {"ingest-open-closed": self.omitted}

    def _worked_off(self) -> list[Series]:
        found = [each for each in in_order(self.run_set) if not each.is_null_baseline and each.hot_runs]
        if not found:
            raise NotAvailable("no system was asked by a schedule")
        return [each for each in found if not overloaded(each)]

    def omitted(self) -> str:
        """Return the sentence on delays that a closed loop misses, and whether the usual correction restores them."""
        parts, ratios, corrected = [], [], []
        for series in self._worked_off():
            with suppress(NotAvailable):
                ratio = understated(self.measures, series).estimate("x")
                ratios.append(ratio)
                parts.append(f"{estimate_text(ratio)} ({_which(series)})")
                own = self.measures.hot(RESPONSE_P99, series).ratio(self.measures.hot(CORRECTED_P99, series))
                corrected.append(own.estimate("x"))
        if not parts:
            raise NotAvailable(
                "no window by a schedule and closed loop before it had requests enough for a 99th percentile"
            )
        above, below = (sum(each.is_above(1) for each in ratios), sum(each.is_below(1) for each in ratios))
        near = sum(bool(each.contains(1)) for each in corrected)
        return (
            "The 99th percentile by a schedule is this multiple of that of the closed loop before it: "
            f"{listed(parts)}. By their intervals, the closed loop's is too low in {above} and too high in {below} of "
            f"{len(ratios)}; with HdrHistogram's correction it cannot be distinguished from the schedule's in {near} "
            f"of {len(corrected)}."
        )


def _which(series: Series) -> str:
    given = TailSettings.of(series)
    return f"{series.title}{'' if given.target == ONE else f', {given.target},'} at {given.percent} %"


RESULTS = PartResults(
    tables=tables.build,
    figures="tidemark.studies.ingest.open_loop.figures",
    sentences=lambda measures: Tail(measures).sentences(),
    findings=lambda measures: (Tail(measures).omitted,),
    quantities=QUANTITIES,
    code=CODE,
)
