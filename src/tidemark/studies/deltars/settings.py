"""Settings of a series: the table that is written and read, and the processors of its client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tidemark.runs.spec import WorkloadSettings

DATA = re.compile(r"(?P<table>supplier|lineitem)_sf(?P<scale>0\.\d*[1-9]|[1-9]\d*)")
ROWS = {"supplier": 10_000, "lineitem": 6_000_000}  # about as many at scale factor 1


@dataclass(frozen=True, slots=True)
class DeltarsSettings(WorkloadSettings):
    """Settings that identify a series, in addition to the system and its options."""

    data: str  # table that is written and read, such as supplier_sf10
    cores: int  # processors of the client
    repetitions: int
    timeout_seconds: float  # per write or read
    checked_rows: int  # larger tables are compared by value only in the first and last repetition
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<data>.+)-(?P<cores>\d+)")

    @property
    def cell(self) -> tuple[str, int]:
        """Table and processors."""
        return self.data, self.cores

    @property
    def rows(self) -> float:
        """Rows of the table, within 1 %."""
        found = DATA.fullmatch(self.data)
        return ROWS[found["table"]] * float(found["scale"]) if found else 0.0


def processors_text(cores: int) -> str:
    """Return `1 processor` or `2 processors`."""
    return f"{cores} processor{'s' if cores > 1 else ''}"
