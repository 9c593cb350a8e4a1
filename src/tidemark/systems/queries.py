"""What every client of a table can be asked: for the rows of a filter, and, by who never wrote it, for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """`where` is a condition in what SQL and PyIceberg's filters have in common; none means all rows.

    `contains`: a column of text, and what is somewhere in it. Not every client has words for that.
    """

    where: str = ""
    contains: tuple[str, str] | None = None

    @property
    def sql(self) -> str:
        """Both as one condition of SQL."""
        text = [] if self.contains is None else [f"{self.contains[0]} LIKE '%{self.contains[1]}%'"]
        return " AND ".join([*([self.where] if self.where else []), *text]) or "true"


@dataclass(frozen=True, slots=True)
class Answered:
    """Rows that were found, and the data files that were left to be read once the format's statistics were asked."""

    rows: int
    files: int


class Asker(ABC):
    """A client that never wrote to the table, made by `TableSystem.asking`; its first answer finds the table too."""

    @abstractmethod
    def count(self) -> int:
        """How many rows there are: SQL's count(*), answered from whatever the client finds quickest."""

    @abstractmethod
    def add_up(self) -> int:
        """The sum of all ids, once all values of `total_amount` are added up beside it: rows have to be read."""
