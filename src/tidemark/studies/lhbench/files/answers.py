"""The four queries of the part `files`, and their expected answers, by arithmetic alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tidemark.studies.lhbench.data import many
from tidemark.studies.lhbench.files.settings import FilesSettings

LIMIT, COUNT, PARTITION, VALUE = "limit", "count", "partition", "value"
QUERIES = {
    LIMIT: "SELECT * FROM {table} LIMIT 1",
    COUNT: "SELECT count(*) FROM {table}",
    PARTITION: f"SELECT sum({many.QUANTITY}) FROM {{table}} WHERE {many.DATE} = {many.SOUGHT}",
    VALUE: f"SELECT sum({many.QUANTITY}) FROM {{table}} WHERE {many.ITEM} = {many.SOUGHT}",
}
SELECTIVE = (LIMIT, PARTITION, VALUE)  # queries that the paper shows in figures


@dataclass(frozen=True, slots=True)
class Closed:
    """Expected answer to one of the queries."""

    query: str
    files: int
    rows: int

    @classmethod
    def of(cls, query: str, settings: FilesSettings) -> Closed:
        return cls(query, settings.files, settings.rows)

    def difference(self, found: Sequence[Sequence[Any]]) -> str:
        """Return how an answer differs, in words; empty if it does not."""
        if len(found) != 1:
            return f"{len(found)} rows of 1"
        if self.query == LIMIT:
            return self._of_a_row(found[0])
        wanted = self.number
        return "" if [int(str(value)) for value in found[0]] == [wanted] else f"{found[0][0]} in place of {wanted}"

    @property
    def number(self) -> int:
        """The single number that the query returns."""
        if self.query == COUNT:
            return self.files * self.rows
        if self.query == VALUE:
            return many.quantities(range(many.SOUGHT, many.SOUGHT + 1))
        return many.quantities(range(many.SOUGHT * self.rows, (many.SOUGHT + 1) * self.rows))

    def _of_a_row(self, found: Sequence[Any]) -> str:
        """Return how `found` differs from the table's row with its item; any row of the table is correct."""
        number = int(str(found[list(many.COLUMNS).index(many.ITEM)]))
        if not 0 <= number < self.files * self.rows:
            return f"item {number}, of which the table has no row"
        wanted = many.row(number, self.rows)
        pairs = zip(many.COLUMNS, wanted, found, strict=True)
        wrong = [name for name, value, other in pairs if Decimal(str(other)) != value]
        return f"other values in {', '.join(wrong)}" if wrong else ""
