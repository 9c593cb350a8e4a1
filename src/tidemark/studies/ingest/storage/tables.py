"""Table ingest-storage of one writer with files in an S3 server, and the chapter's sentences on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from tidemark.analysis.prose import SentenceWriter
from tidemark.analysis.quantities import Absent
from tidemark.analysis.words import Cell, attempt, estimate_text, listed
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.runset import Series
from tidemark.studies.ingest.columns import VERDICT, column_of, hot_cell, verdict_of
from tidemark.studies.ingest.quantities import COMMITS, FILES, P50, P99
from tidemark.studies.ingest.storage.distance import far, local, round_trips
from tidemark.studies.ingest.storage.settings import rtt_of

ASKED = (P50, P99, COMMITS, FILES)
NOTES = (
    "Hot runs, one writer in a closed loop. The S3 server (SeaweedFS) is on loopback behind a proxy that adds the "
    "round trip to each exchange, of clients and of the catalog server of Iceberg; databases stay. Bandwidth is not "
    "limited. An acknowledged object is not on the disk: SeaweedFS answers before.",
    "Serial round trips a commit: the slope of the median commit against the round trip (Theil-Sen; with two "
    "distances it is the difference). It predicts a commit's cost at another distance, as far as only waiting changes.",
)


def build(workshop: Workshop) -> Iterator[Table]:
    rows: list[list[Cell]] = []
    runs = []
    for system, series in far(workshop.measures).items():
        trips = attempt("", partial(round_trips, workshop.measures, series))
        near: Series | None = local(workshop.measures, system)
        for each in ([near] if near else []) + series:
            rtt = None if each is near else rtt_of(each.mode)
            row: list[Cell] = [each.title, "local disk" if each is near else "S3 server", rtt, verdict_of(each)]
            row += [hot_cell(workshop, quantity, each) for quantity in ASKED]
            rows.append([*row, None if each is near else trips])
            runs += list(each.hot_runs)
    columns = (
        SYSTEM, Column("files", "Files"), Column("rtt", "Round trip", "ms"), VERDICT,
        *(column_of(quantity) for quantity in ASKED),
        Column("trips", "Serial round trips a commit", interval=True),
    )  # fmt: skip
    title = "Files in an S3 server: a commit by its distance"
    yield workshop.table("ingest-storage", title, columns, rows, runs, NOTES)


class Storage(SentenceWriter):
    def trips(self) -> str:
        """Return the sentence on the number of waits of a commit for the store, by system, the fewest first."""
        parts = []
        for series in far(self.measures).values():
            with suppress(Absent):
                slope = round_trips(self.measures, series).estimate("")
                parts.append((slope.value, f"{series[0].title} {estimate_text(slope)}"))
        if not parts:
            raise Absent("no system was measured at two distances of an object store")
        return (
            "For each millisecond that the object store is farther away, the median commit takes this many "
            f"milliseconds longer, which is its number of serial waits for the store: "
            f"{listed([said for _, said in sorted(parts)])}."
        )

    def against_local(self) -> str:
        """Return the sentence on the cost of a store without delay, compared with files on the local disk."""
        parts = []
        for system, series in far(self.measures).items():
            with suppress(Absent):
                if rtt_of(series[0].mode) == 0:
                    ratio = self.measures.ratio(P50, series[0], local(self.measures, system)).estimate("x")
                    parts.append(f"{series[0].title} {estimate_text(ratio)}")
        if not parts:
            raise Absent("no system was measured with its files near in an object store, and on the local disk")
        return (
            "With the store on the same machine and no delay, the median commit takes this multiple of the time with "
            f"files on the local disk: {listed(parts)}."
        )
