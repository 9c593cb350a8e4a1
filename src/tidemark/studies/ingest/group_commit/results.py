"""Results of requests that a front gathers, and their findings, computed from runs."""

from __future__ import annotations

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.text_blocks import SentenceWriter
from tidemark.runs.runset import Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.gateway.policies import BUNDLED, STAGED
from tidemark.studies.ingest.group_commit import tables
from tidemark.studies.ingest.group_commit.tables import gains, shape
from tidemark.studies.ingest.part import PartResults


class Gathering(SentenceWriter):
    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        return {"ingest-group-staged": self.staged, "ingest-group-bundled": self.bundled}

    def staged(self) -> str:
        return self._gained(STAGED, "Gathered in a buffer that is one commit (staged)")

    def bundled(self) -> str:
        return self._gained(BUNDLED, "With the files of several buffers in one commit (bundled)")

    def _gained(self, policy: str, how: str) -> str:
        """Return the sentence on rows per second and p99 of `policy` over those of one commit per request."""
        found = gains(self.measures, policy)
        if not found:
            raise NotAvailable(f"no requests were {policy} and committed one by one as well")
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


def _which(series: Series) -> str:
    rows, clients = shape(series)
    return f"{series.title} {rows:,} x {clients}"


def _count(estimates: list[Estimate], *, above: bool) -> int:
    return sum(each.is_above(1) if above else each.is_below(1) for each in estimates)


def _findings(measures: Measures) -> tuple[Written, ...]:
    gathering = Gathering(measures)
    return (gathering.staged, gathering.bundled)


RESULTS = PartResults(
    tables=tables.build,
    figures="tidemark.studies.ingest.group_commit.figures",
    sentences=lambda measures: Gathering(measures).sentences(),
    findings=_findings,
)
