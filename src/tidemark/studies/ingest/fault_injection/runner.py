"""Measurement window with kills: one table, writers that outlive their servers, and the kills of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed
from tidemark.runs.serde import written
from tidemark.studies.ingest.fault_injection.faults import BACK_S, Faults, Look
from tidemark.studies.ingest.fault_injection.loss_accounting import account
from tidemark.studies.ingest.fault_injection.reconnecting_writers import ReconnectingWriters, show_factory, surviving
from tidemark.studies.ingest.fault_injection.settings import FaultSettings
from tidemark.studies.ingest.fault_injection.unsynced_data import commits_at_risk
from tidemark.studies.ingest.record import AtRisk, DurabilityRecord, Excused, FaultsRecord, Losses
from tidemark.studies.ingest.window.runner import WriteRunner, fresh_table
from tidemark.studies.ingest.window.samples import IngestWindow
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    from tidemark.studies.ingest.gateway_crash.crew import RestartingGateway

TABLE = "table"


class KilledRunner(WriteRunner):
    """Window on one table with writers and kills; a subclass defines the victims."""

    _losses: Losses

    def __init__(
        self,
        test_bed: TestBed,
        directory: Path,
        table: TableSystem,
        crew: ReconnectingWriters | RestartingGateway,
        faults: Faults,
    ) -> None:
        super().__init__(test_bed, directory, [table], crew)
        self._crew, self._table, self._faults = crew, table, faults

    def execute(self, window: IngestWindow, until_seconds: float) -> None:
        start = self._crew.go()
        self._faults.play(start, until_seconds)
        if self._faults.is_cancelled:
            return
        window.elapsed_ns = self._crew.end() - start
        self._started = start

    def cancel(self) -> None:
        self._faults.cancel()

    def check(self, window: IngestWindow, last: bool, show: ProgressCallback) -> CheckResult:
        findings = super().check(window, last, show)
        assert self._started is not None
        faults, rows = self._faults, self._settings.rows
        before = (faults.undisturbed_ns, faults.undisturbed)
        self._losses = account(self._records, self._started, before, faults.kills, Look.at(self._table), rows)
        return findings

    def describe(self, window: IngestWindow) -> RunMetadata:
        described = super().describe(window)
        # A catalog that was killed has forgotten how many commits it refused.
        return replace(described, found={**described.found, "refused": None, **written(FaultsRecord(self._losses))})


class FaultRunner(KilledRunner):
    """Window in which writers and servers are killed; made by `open_window`."""

    _durability: AtRisk | Excused

    def check(self, window: IngestWindow, last: bool, show: ProgressCallback) -> CheckResult:
        findings = super().check(window, last, show)
        show("what is on the disk at the acknowledgement")
        settings, folder = self._settings, self.directory / TABLE
        assert isinstance(settings, FaultSettings)
        self._durability, _ = commits_at_risk(self._test_bed, self._table, folder, settings.watch_seconds)
        return findings

    def describe(self, window: IngestWindow) -> RunMetadata:
        described = super().describe(window)
        return replace(described, found={**described.found, **written(DurabilityRecord(self._durability))})


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[FaultRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, waiting writers, and the kills of them."""
    settings = FaultSettings.of(test_bed.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making the table")
        table = fresh_table(test_bed, directory / TABLE, stack, settings.rows)
        show("starting the writers")
        longest = seconds + settings.kills * (1 + len(test_bed.servers.ours())) * BACK_S
        crew = surviving(test_bed, table, directory, settings, longest, stack, settings.retry)

        def reconnect() -> None:
            table.reconnect()
            show_factory(table, directory)

        seed = f"{test_bed.spec.seed} {test_bed.spec.repeat} {test_bed.spec.name} kills"
        faults = Faults(crew, table, test_bed.servers.ours(), reconnect, settings.kills, seed)
        yield FaultRunner(test_bed, directory, table, crew, faults)
