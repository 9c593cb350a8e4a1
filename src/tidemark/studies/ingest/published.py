"""What kyma's page prints of ingest (kyma.csv, typed from it), its machine and its software.

A rate is anywhere between `lowest` and `highest`, as it was rounded. Its cells lasted 10 seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemark.results.publication import printed_rows

ORIGIN = "kyma"
SECONDS = 10
DIRECT, STAGED, BUNDLED = "direct", "staged", "bundled"
THRESHOLD_ROWS = 8_000  # of the buffer, above which it is flushed
KILLS = 2  # of its test of crashes; none lost anything
TWO_NODES_REQUESTS, TWO_NODES_CONFLICTS = 100, 207
TWO_NODES_AT_ONCE = 20  # of these requests; by its script test-a-two-nodes.sh, the page has no such number
BEHIND = (500_000, 1_000_000)  # rows a second of those that it is "~10× behind"
HARDWARE = {"CPU": "not told (one laptop)", "Memory": "not told", "Disk": "not told"}
SOFTWARE = {"kyma": "development build of 2026-04-19", "PostgreSQL": "not told, in Docker", "MinIO": "not told"}


@dataclass(frozen=True, slots=True)
class Printed:
    """One cell of its tables; what it does not print is None."""

    table: int  # in the order of the page
    policy: str
    rows: int  # of a request
    workers: int
    rows_per_s: float
    lowest: float
    highest: float
    p99_ms: float | None
    files: int | None
    least_files: int | None  # where it prints a bound, as in "1300+ extents"
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
    """All of them, in the order of the page."""
    return printed_rows(Path(__file__).with_name("kyma.csv"), Printed)


def cell(table: int, policy: str, rows: int, workers: int) -> Printed:
    """One of them; KeyError where the page has none."""
    for each in cells():
        if (each.table, each.policy, each.rows, each.workers) == (table, policy, rows, workers):
            return each
    raise KeyError(f"table {table}: {policy} {rows} x {workers}")
