"""Cost of the distance to the database, in time and round trips, from series that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.catalogs.quantities import APPENDED, CREATING, HOT, MEDIAN, READ, UPDATE
from tidemark.studies.catalogs.settings import users_of
from tidemark.studies.catalogs.tables.beyond import statements

RTT = "database_rtt_ms"
SORTS = (*CREATING, READ, UPDATE, HOT, APPENDED)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two series of one system and number of users, the nearest and the farthest from their database."""

    near: Series
    far: Series
    near_ms: int
    far_ms: int

    @property
    def users(self) -> int:
        return users_of(self.near.mode)

    def round_trips(self, measures: Measures, quantity: Quantity) -> Replicates:
        """Return the growth in ms of `quantity`, a time in ms, per ms of additional round-trip time."""
        grown = measures.hot(quantity, self.far).difference(measures.hot(quantity, self.near))
        return grown.scaled(1 / (self.far_ms - self.near_ms))


def pairs(run_set: RunSet) -> Iterator[Pair]:
    """Yield a pair for each system, number of users and stack with two distances and all other options equal."""
    placed = []
    for series in run_set.select(harness=False):
        if series.hot_runs:
            system = series.hot_runs[0].manifest.system
            options = dict(system.options)
            if (rtt_ms := options.pop(RTT, None)) is not None:
                key = str((system.base, sorted(options.items()), users_of(series.mode), series.stack))
                placed.append((key, rtt_ms, series))
    placed.sort(key=lambda each: each[:2])
    for _, group in groupby(placed, key=lambda each: each[0]):
        of_one = list(group)
        (_, near, first), (_, far, last) = of_one[0], of_one[-1]
        if far > near:
            yield Pair(first, last, near, far)


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield table catalog-distance."""
    measures = workshop.measures
    rows: list[list[Cell]] = []
    runs = []
    for pair in pairs(workshop.run_set):
        runs += [*pair.near.runs, *pair.far.runs]
        for sort in SORTS:
            median = MEDIAN[sort.name]
            row: list[Cell] = [pair.near.title, pair.users, sort.title, pair.near_ms, pair.far_ms]
            row += [attempt("ms", partial(measures.hot, median, series)) for series in (pair.near, pair.far)]
            row.append(attempt("", partial(pair.round_trips, measures, median)))
            rows.append([*row, statements(measures, pair.near, sort.name)])
    if not rows:
        rows.append([*[None] * 7, Missing(f"no system over PostgreSQL was measured at two distances ({RTT})"), None])
    columns = (
        SYSTEM, Column("users", "Users"), Column("request", "Request"),
        Column("near_rtt", "Round trip, near", "ms"), Column("far_rtt", "Round trip, far", "ms"),
        Column("near", "Median, near", "ms", interval=True), Column("far", "Median, far", "ms", interval=True),
        Column("round_trips", "Round trips a request", interval=True), Column("statements", "SQL statements"),
    )  # fmt: skip
    notes = [
        "A proxy puts the database at a distance: it delays each byte by half a round trip in either direction and "
        "takes some 0.2 ms itself; at 0 ms there is none. Round trips: growth of the median for each millisecond of a "
        "round trip. With several users, it includes waiting for one of the server's connections.",
    ]
    yield workshop.table("catalog-distance", "What the distance to the database costs", columns, rows, runs, notes)
