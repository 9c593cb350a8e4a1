"""Values printed in the report: its appendix's two tables (report.csv, typed from it), its machine and software."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemark.results.publication import printed_rows

ORIGIN = "Report"
SEQUENTIAL, CONCURRENT = "sequential", "concurrent"
USERS = 50  # at most, in its concurrent series
RAMP_USERS = 17  # at most, creating namespaces: from its program (pingtimeout/polaris, 39582664), not from the report
RELATIONAL, DOCUMENT = "EclipseLink-PG", "Persistence-Mongo"
HARDWARE = {
    "CPU": "8 vCPU (EC2 m5d.2xlarge)",
    "Memory": "32 GiB",
    "Disk": "300 GB NVMe",
}
SOFTWARE = {
    "Apache Polaris": "6a345913, and pull request 1189",
    "PostgreSQL": "not stated, serializable isolation",
    "MongoDB": "not stated",
    "Gatling": "not stated",
}


@dataclass(frozen=True, slots=True)
class Printed:
    """Row of the appendix; times in milliseconds."""

    mode: str
    case: str
    system: str
    query: str
    requests: int
    succeeded: int
    failed: int
    mean_ms: float
    minimum_ms: float
    median_ms: float
    maximum_ms: float

    @property
    def key(self) -> str:
        return f"{self.mode} {self.case} {self.query}"


def users_of(query: str) -> int:
    """Return the largest number of users behind a creation in the concurrent series."""
    return RAMP_USERS if query == "Create Namespace" else USERS


@cache
def rows() -> tuple[Printed, ...]:
    """Return all rows, in the order of the appendix."""
    return printed_rows(Path(__file__).with_name("report.csv"), Printed)


def row(mode: str, case: str, system: str, query: str) -> Printed:
    """Return the row whose case begins with `case`. Raises KeyError if the appendix has none."""
    for each in rows():
        if each.case.startswith(case) and (each.mode, each.system, each.query) == (mode, system, query):
            return each
    raise KeyError(f"{mode} {case} {system} {query}")
