"""What a window with kills happens on: one table, writers that outlive their servers, and who kills both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.measure.workload import Description, Findings, Rig, Show
from tidemark.paths import private_directory
from tidemark.services.postgres import Postgres
from tidemark.studies.ingest.faults.at_risk import look, why_not
from tidemark.studies.ingest.faults.faults import BACK_S, Faults, Look
from tidemark.studies.ingest.faults.losses import account, plain
from tidemark.studies.ingest.faults.settings import FaultSettings
from tidemark.studies.ingest.faults.survivor import LastingOrder, leave_door
from tidemark.studies.ingest.faults.survivors import Survivors
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.window.oracle import OF_TABLE
from tidemark.studies.ingest.window.samples import IngestWindow
from tidemark.studies.ingest.window.stage import WrittenStage
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    from tidemark.studies.ingest.front.crew import LastingFront
    from tidemark.studies.ingest.workload import Ingest

MOST_A_SECOND = 10_000  # attempts of one writer, for which there is room
TABLE, DOOR = "table", ".door"


class KilledStage(WrittenStage):
    """One table, whoever writes to it, and kills; a subclass says of whom."""

    def __init__(
        self,
        ingest: Ingest,
        rig: Rig,
        directory: Path,
        table: TableSystem,
        crew: Survivors | LastingFront,
        faults: Faults,
    ) -> None:
        super().__init__(ingest, rig, directory, [table], crew)
        self._crew, self._table, self._faults = crew, table, faults
        self._account: dict[str, Any] = {}

    def advance(self, window: IngestWindow, until_seconds: float) -> None:
        start = self._crew.go()
        self._faults.play(start, until_seconds)
        if self._faults.is_abandoned:
            return
        window.elapsed_ns = self._crew.end() - start
        self._started = start

    def abandon(self) -> None:
        self._faults.abandon()

    def check(self, window: IngestWindow, last: bool, show: Show) -> Findings:
        findings = super().check(window, last, show)
        assert self._started is not None
        faults, rows = self._faults, self._ingest.settings.rows
        before = (faults.undisturbed_ns, faults.undisturbed)
        found = account(self._records, self._started, before, faults.kills, Look.at(self._table), rows)
        self._account = plain(*found)
        return findings

    def describe(self, window: IngestWindow) -> Description:
        described = super().describe(window)
        # A catalog that was killed has forgotten how many commits it refused.
        return replace(described, found={**described.found, "refused": None, "faults": self._account})


class FaultStage(KilledStage):
    """Writers and servers are killed; `staged` makes it."""

    _durability: dict[str, Any]

    def check(self, window: IngestWindow, last: bool, show: Show) -> Findings:
        findings = super().check(window, last, show)
        show("what is on the disk at the acknowledgement")
        self._durability = self._look_at_commits()
        return findings

    def _look_at_commits(self) -> dict[str, Any]:
        """What of a commit is on the disk when it is acknowledged; `excused` where nobody can tell."""
        servers, folder = self._rig.servers.by_class, self.directory / TABLE
        settings = self._ingest.settings
        assert isinstance(settings, FaultSettings)
        reason = why_not(folder, servers.values())
        if reason is not None:
            return {"excused": reason}
        batch = batches(self._ingest.trips, settings.rows, OF_TABLE)
        postgres = servers.get(Postgres)
        assert postgres is None or isinstance(postgres, Postgres)
        found = look(self._table, lambda number: batch(1 + number), folder, postgres, settings.watch_seconds)
        return {"excused": found} if isinstance(found, str) else found.plain()

    def describe(self, window: IngestWindow) -> Description:
        described = super().describe(window)
        return replace(described, found={**described.found, "durability": self._durability})


@contextmanager
def staged(
    ingest: Ingest, rig: Rig, name: str, seconds: float, show: Show, settings: FaultSettings
) -> Iterator[FaultStage]:
    """A table in the folder `name` with a first commit, and writers' processes, waiting, with who kills them."""
    with ExitStack() as stack:
        directory = stack.enter_context(rig.folder(name))
        show("making the table")
        folder = private_directory(directory / TABLE)
        table = rig.variant.open_as(TableSystem, rig.context(folder, settings.rows))
        stack.callback(table.close)
        table.create(ingest.schema)
        table.write(batches(ingest.trips, settings.rows, OF_TABLE)(0))
        place = directory / DOOR
        leave_door(table.door(), place)
        longest = seconds + settings.kills * (1 + len(rig.servers.ours())) * BACK_S

        def order(number: int) -> LastingOrder:
            return LastingOrder(
                door=table.door(),
                number=number,
                trips=ingest.trips,
                rows=settings.rows,
                tries=settings.tries,
                uncounted=0,
                seed=rig.spec.seed,
                records=directory / f".records-{number}",
                most=math.ceil(longest * MOST_A_SECOND),
                place=place,
                retry=settings.retry,
            )

        show("starting the writers")
        crew = stack.enter_context(Survivors(order, settings.writers, directory))
        stack.enter_context(ingest.working(crew))

        def reconnect() -> None:
            table.reconnect()
            leave_door(table.door(), place)

        seed = f"{rig.spec.seed} {rig.spec.repeat} {rig.spec.name} kills"
        faults = Faults(crew, table, rig.servers.ours(), reconnect, settings.kills, seed)
        yield FaultStage(ingest, rig, directory, table, crew, faults)
