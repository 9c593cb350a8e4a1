"""Queries that a table's clients answer: filters, and full scans by a client that never wrote to the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter on rows; `where` is a condition in the common subset of SQL and PyIceberg's filters, empty for all rows.

    `contains`: a text column and a substring of its values. Not every client can express such a filter.
    """

    where: str = ""
    contains: tuple[str, str] | None = None

    @property
    def sql(self) -> str:
        """Both conditions as one SQL condition."""
        text = [] if self.contains is None else [f"{self.contains[0]} LIKE '%{self.contains[1]}%'"]
        return " AND ".join([*([self.where] if self.where else []), *text]) or "true"


@dataclass(frozen=True, slots=True)
class PruningResult:
    """Number of matching rows, and of data files left to read after pruning by the format's statistics."""

    rows: int
    files: int


class ReadClient(ABC):
    """Client that never wrote to the table (see `TableSystem.open_reader`); its first query also opens the table."""

    @abstractmethod
    def count(self) -> int:
        """Return the row count by SQL's count(*), which the client may answer by its fastest means."""

    @abstractmethod
    def sum_ids(self) -> int:
        """Return the sum of all ids; the query also sums `total_amount`, so that it has to read rows."""
