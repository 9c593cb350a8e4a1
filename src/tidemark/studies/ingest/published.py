"""Ingest numbers printed on kyma's page (kyma.csv, typed from it), with its machine and its software.

Printed rates are rounded: a rate lies anywhere between `lowest` and `highest`. Each cell lasted 10 seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemark.results.publication import Publication, printed_rows

PUBLICATION = Publication.read(__file__)
SECONDS = 10
THRESHOLD_ROWS = 8_000  # rows in the buffer, above which it is flushed
KILLS = 2  # hard kills in its crash test; none lost anything
TWO_NODES_REQUESTS, TWO_NODES_CONFLICTS = 100, 207
TWO_NODES_AT_ONCE = 20  # of these requests, concurrent; from its script test-a-two-nodes.sh, not on the page
BEHIND = (500_000, 1_000_000)  # rows/s of the systems that it is "~10× behind"


@dataclass(frozen=True, slots=True)
class Printed:
    """One cell of the page's tables; values that it does not print are None."""

    table: int  # number of the table on the page, from 1
    policy: str
    rows: int  # per request
    workers: int
    rows_per_s: float
    lowest: float
    highest: float
    p99_ms: float | None
    files: int | None
    least_files: int | None  # set if it prints a lower bound, as in "1300+ extents"
    errors: int | None

    @property
    def shape(self) -> str:
        return f"{self.rows} x {self.workers}"

    @property
    def requests_per_s(self) -> float:
        return self.rows_per_s / self.rows

    @property
    def requests_per_file(self) -> float | None:
        return None if self.files is None else self.requests_per_s * SECONDS / self.files


@cache
def cells() -> tuple[Printed, ...]:
    """Return all cells, in the order of the page."""
    return printed_rows(Path(__file__).with_name("kyma.csv"), Printed)


def cell(table: int, policy: str, rows: int, workers: int) -> Printed:
    """Return one cell; raise KeyError if the page has no such cell."""
    for each in cells():
        if (each.table, each.policy, each.rows, each.workers) == (table, policy, rows, workers):
            return each
    raise KeyError(f"table {table}: {policy} {rows} x {workers}")
