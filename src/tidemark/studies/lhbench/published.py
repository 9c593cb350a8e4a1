"""Numbers that LHBench's paper prints: its four figures (published.csv), its machines and its software.

A number is printed on its bar (`printed`) or was read off the figure (`read off`): merges to 5 s, slowdowns to 5 %,
totals of figure 4 to 10 %. The paper measured loads and merges once and reports no variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemark.results.publication import printed_rows

ORIGIN = "LHBench"
KEY = "lhbench"
DELTA, HUDI, ICEBERG = "Delta", "Hudi", "Iceberg"
COPY, IN_READ = "Iceberg CoW 1.1.0", "Iceberg MoR 1.1.0"  # lines of figure 3
PRINTED = "printed"
SCALE = 3000  # scale factor of load and queries; the paper shows the total and four queries
FILES = 1_000  # files of the table in figure 3
LABELLED = 100  # factor by which the labels of figure 3 are suspected to be too large
HARDWARE = {
    "CPU": "16 workers of 8 vCPU (EC2 i3.2xlarge)",
    "Memory": "61 GiB each",
    "Disk": "Amazon S3",
}
SOFTWARE = {
    "Spark": "3.3.0 (EMR 6.9.0)",
    "Delta Lake": "2.2.0",
    "Hudi": "0.12.0",
    "Iceberg": "1.1.0, and 0.14.0",
}


@dataclass(frozen=True, slots=True)
class Printed:
    """One number of a figure; `x` is its position on the axis, or None if the figure has no axis."""

    figure: int
    panel: str
    system: str
    x: int | None
    value: float
    unit: str
    tag: str


@cache
def numbers() -> tuple[Printed, ...]:
    """Return all printed numbers, figure by figure."""
    return printed_rows(Path(__file__).with_name("published.csv"), Printed)


def number(figure: int, panel: str, system: str, x: int | None = None) -> float:
    """Return one printed number; KeyError if the paper has none."""
    for each in numbers():
        if (each.figure, each.panel, each.system, each.x) == (figure, panel, system, x):
            return each.value
    raise KeyError(f"figure {figure}: {panel} of {system} at {x}")


def along(figure: int, panel: str, system: str) -> list[tuple[int, float]]:
    """Return the (x, value) pairs of a system along the axis of a figure."""
    found = [each for each in numbers() if (each.figure, each.panel, each.system) == (figure, panel, system)]
    return [(each.x, each.value) for each in found if each.x is not None]
