"""Sentences of the chapter on the part `group`, computed from runs."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.prose import SentenceWriter
from tidemark.analysis.quantities import Absent
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import estimate_text, listed, number
from tidemark.ingest.policies import BUNDLED, DIRECT, STAGED
from tidemark.runs.runset import Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.columns import NEAR
from tidemark.studies.ingest.group.settings import GROUP, shape_of
from tidemark.studies.ingest.group.tables import gains, in_order, null_share
from tidemark.studies.ingest.part import of_part
from tidemark.studies.ingest.quantities import ERRORS, REQUESTS, REQUESTS_A_FILE


class Gathering(SentenceWriter):
    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        return {
            f"ingest-group-{name}": write
            for name, write in (
                ("staged", self.staged),
                ("bundled", self.bundled),
                ("files", self.files),
                ("oracle", self.oracle),
                ("generator", self.generator),
            )
        }

    def staged(self) -> str:
        return self._gained(STAGED, "Gathered in a buffer that is one commit (staged)")

    def bundled(self) -> str:
        return self._gained(BUNDLED, "With the files of several buffers in one commit (bundled)")

    def _gained(self, policy: str, how: str) -> str:
        """Return the sentence on rows per second and p99 of `policy` over those of one commit per request."""
        found = gains(self.measures, policy)
        if not found:
            raise Absent(f"no requests were {policy} and committed one by one as well")
        parts = [
            f"{_which(series)}: {estimate_text(rate)}" + (f" (p99 {estimate_text(tail)})" if tail else "")
            for series, rate, tail in found
        ]
        rates, tails = [rate for _, rate, _ in found], [tail for _, _, tail in found if tail]
        said = (
            f"{how}, requests are taken in at this multiple of the rows a second of one commit a request: "
            f"{'; '.join(parts)}. By their intervals, the rate is higher in {_count(rates, above=True)} and lower in "
            f"{_count(rates, above=False)} of {len(rates)}"
        )
        if tails:
            said += (
                f", and the 99th percentile of requests shorter in {_count(tails, above=False)} and longer in "
                f"{_count(tails, above=True)} of {len(tails)}"
            )
        return f"{said}."

    def files(self) -> str:
        """Return the sentence on requests per data file."""
        parts = []
        for series in in_order(self.run_set):
            if shape_of(series.mode)[0] != DIRECT and not series.is_harness:
                with suppress(Absent):
                    held = self.measures.hot(REQUESTS_A_FILE, series).estimate("")
                    policy = shape_of(series.mode)[0]
                    parts.append(f"{number(held.value, 3)} ({_which(series)}, {policy})")
        if not parts:
            raise Absent("no gathered requests left files")
        return f"A data file holds this many requests, where each would have been a file: {listed(parts)}."

    def oracle(self) -> str:
        """Return the sentence on whether rows acknowledged through the front are present, and on errors."""
        part = of_part(self.run_set, GROUP)
        checked = [run for run in part.runs if run.manifest.oracle.applicable]
        if not checked:
            raise Absent("no run behind a front could be checked")
        exact = sum(run.manifest.oracle.verdict for run in checked)
        errors = [0.0]
        for series in part.select(harness=False):
            with suppress(Absent):
                errors.append(self.measures.hot(ERRORS, series).value)
        return (
            f"Behind the front, {exact:,} of {len(checked):,} runs hold every acknowledged row once, and no other. The "
            f"largest share of requests that ended in an error is {number(100 * max(errors), 2)} %."
        )

    def generator(self) -> str:
        """Return the sentence on the request rates without commits, and on the series whose rates come near them."""
        all_series = in_order(self.run_set)
        parts, above, others = [], [], 0
        for series in all_series:
            if series.is_harness and shape_of(series.mode)[0] == DIRECT:
                with suppress(Absent):
                    rate = self.measures.hot(REQUESTS, series).value
                    parts.append(f"{number(rate, 3)} with {_shape(series)}")
            share = null_share(self.measures, all_series, series)
            if isinstance(share, float):
                others += 1
                above += [f"{_which(series)}, {shape_of(series.mode)[0]}"] if share > NEAR else []
        if not parts:
            raise Absent("the system that stores nothing was not put behind a front")
        near = f"above {NEAR:g} % of that, and bound by it in part: {listed(above)}" if above else (
            f"all {others} series of other systems are below {NEAR:g} % of it")  # fmt: skip
        return f"Where a commit costs nothing, the requests answered a second are {listed(parts)}; {near}."


def _shape(series: Series) -> str:
    _, rows, clients = shape_of(series.mode)
    return f"{rows:,} x {clients}"


def _which(series: Series) -> str:
    return f"{series.title} {_shape(series)}"


def _count(estimates: list[Estimate], *, above: bool) -> int:
    return sum(each.is_above(1) if above else each.is_below(1) for each in estimates)
