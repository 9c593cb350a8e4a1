"""Sentences of the chapter on the part `tail`, computed from runs."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.prose import SentenceWriter
from tidemark.analysis.quantities import Absent
from tidemark.analysis.words import estimate_text, listed, number
from tidemark.runs.runset import Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.columns import NEAR
from tidemark.studies.ingest.tail.quantities import (
    CAPACITY,
    CORRECTED_P99,
    OFFERED,
    RESPONSE_P99,
    UTILISATION,
    WAIT_P99,
)
from tidemark.studies.ingest.tail.settings import ONE, cell_of
from tidemark.studies.ingest.tail.tables import in_order, null_share, overloaded, understated


class Tail(SentenceWriter):
    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        return {
            "ingest-open-responses": self.responses,
            "ingest-open-closed": self.omitted,
            "ingest-open-overloaded": self.overloaded,
            "ingest-open-slower": self.slower,
            "ingest-open-generator": self.generator,
        }

    def _measured(self) -> list[Series]:
        found = [each for each in in_order(self.run_set) if not each.is_harness and each.hot_runs]
        if not found:
            raise Absent("no system was asked by a schedule")
        return found

    def _worked_off(self) -> list[Series]:
        return [each for each in self._measured() if not overloaded(each)]

    def responses(self) -> str:
        """Return the sentence on the p99 of responses at each rate without overload."""
        parts = []
        for series in self._worked_off():
            with suppress(Absent):
                found = self.measures.hot(RESPONSE_P99, series).estimate("ms")
                parts.append(f"{estimate_text(found)} ({_which(series)})")
        if not parts:
            raise Absent("no window by a schedule had requests enough for a 99th percentile")
        return f"Counted from their intended starts, 99 of 100 requests are acknowledged within {listed(parts)}."

    def omitted(self) -> str:
        """Return the sentence on delays that a closed loop misses, and whether the usual correction restores them."""
        parts, ratios, corrected = [], [], []
        for series in self._worked_off():
            with suppress(Absent):
                ratio = understated(self.measures, series).estimate("x")
                ratios.append(ratio)
                parts.append(f"{estimate_text(ratio)} ({_which(series)})")
                own = self.measures.hot(RESPONSE_P99, series).ratio(self.measures.hot(CORRECTED_P99, series))
                corrected.append(own.estimate("x"))
        if not parts:
            raise Absent("no window by a schedule and closed loop before it had requests enough for a 99th percentile")
        above, below = (sum(each.is_above(1) for each in ratios), sum(each.is_below(1) for each in ratios))
        near = sum(bool(each.contains(1)) for each in corrected)
        return (
            "The 99th percentile by a schedule is this multiple of that of the closed loop before it: "
            f"{listed(parts)}. By their intervals, the closed loop's is too low in {above} and too high in {below} of "
            f"{len(ratios)}; with HdrHistogram's correction it cannot be distinguished from the schedule's in {near} "
            f"of {len(corrected)}."
        )

    def overloaded(self) -> str:
        all_series = self._measured()
        found = [_which(each) for each in all_series if overloaded(each)]
        if not found:
            return f"None of the {len(all_series)} rates of these systems was more than was worked off."
        return f"More came than was worked off, so that times are lower bounds: {listed(found)}."

    def slower(self) -> str:
        """Return the sentence on windows with slower commits, where the closed loop's rate understates the load."""
        parts = []
        for series in self._measured():
            with suppress(Absent):
                found = self.measures.hot(UTILISATION, series).estimate("%")
                if found.is_above(cell_of(series.mode)[1]):
                    parts.append(f"{estimate_text(found)} ({_which(series)})")
        if not parts:
            return "In no window commits took longer, by its interval, than in the closed loop before it."
        return (
            "Where commits slow down as their table grows, a share of the closed loop's rate is a larger share of what "
            f"the window allows: offered were {listed(parts)} of it. From all of it on, the queue grows."
        )

    def generator(self) -> str:
        """Return the sentence on the load generator's capacity with one writer, and on its own lateness."""
        all_series = [each for each in in_order(self.run_set) if cell_of(each.mode)[0] == ONE]
        null = next((each for each in all_series if each.is_harness), None)
        if null is None:
            raise Absent("the system that stores nothing was not asked by a schedule")
        rate, most = (self.measures.hot(quantity, null).value for quantity in (OFFERED, CAPACITY))
        late = self.measures.hot(WAIT_P99, null).value
        shares = [(each, null_share(self.measures, all_series, each)) for each in all_series]
        above = [_which(each) for each, share in shares if isinstance(share, float) and share > NEAR]
        near = f"above {NEAR:g} % of the first, and bound by it in part: {listed(above)}" if above else (
            f"all rates of one writer of the others are below {NEAR:g} % of the first")  # fmt: skip
        return (
            f"Where a commit costs nothing, a closed loop asks {number(most, 3)} requests a second, and by a schedule "
            f"of {number(rate, 3)}, 99 of 100 begin within {number(late, 2)} ms of their intended starts; {near}."
        )


def _which(series: Series) -> str:
    target, percent, _ = cell_of(series.mode)
    return f"{series.title} at {percent} %" if target == ONE else f"{series.title}, {target}, at {percent} %"
