"""Window of filtered queries on a table, in rounds over all predicates: rows and files that a client reads for each."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.errors import SystemFailure
from tidemark.measure.describe import system_part
from tidemark.measure.done import DoneWindow
from tidemark.measure.workload import Description, Findings, Rig, Show, Stage
from tidemark.paths import private_directory
from tidemark.runs.proofs import Oracle
from tidemark.studies.ingest.settings import PruningSettings
from tidemark.systems.pruning_dataset import PREDICATES, rows_of, schema
from tidemark.systems.tables import TableSystem


@dataclass(slots=True)
class Asked:
    """One query with its result."""

    predicate: str
    start_ns: int
    elapsed_ns: int
    rows: int
    files: int


@dataclass(slots=True)
class AskingWindow(DoneWindow[Asked]):
    """Window of queries; `elapsed_ns` ends with a complete round of all queries."""

    def budget(self) -> dict[str, int]:
        inside = int(self.elapsed().sum())
        return {"queries": inside, "rest": self.elapsed_ns - inside}


class AskingStage(Stage[AskingWindow]):
    """Stage of an `AskingWindow`, created by `staged`."""

    def __init__(self, rig: Rig, directory: Path, table: TableSystem, files: int, rows: int) -> None:
        self.directory = directory
        self._rig, self._table, self._files, self._rows = rig, table, files, rows
        self._abandoned = False
        self._wrong: list[str] = []

    def new_window(self) -> AskingWindow:
        return AskingWindow()

    def stretches(self, window: AskingWindow, until_seconds: float) -> Iterator[None]:
        del window, until_seconds
        yield
        self._rig.servers.check()

    def advance(self, window: AskingWindow, until_seconds: float) -> None:
        clock = time.perf_counter_ns
        start = clock()
        while not self._abandoned:
            for each in PREDICATES:
                began = clock()
                found = self._table.answer(each.asked)
                window.done.append(Asked(each.name, began - start, clock() - began, found.rows, found.files))
            if clock() - start >= until_seconds * 1e9:
                break
        window.elapsed_ns = clock() - start

    def abandon(self) -> None:
        self._abandoned = True

    def finish(self, window: AskingWindow) -> None:
        self._rig.servers.check()
        if not window.done:
            raise SystemFailure("the window was abandoned before a query was answered")

    def check(self, window: AskingWindow, last: bool, show: Show) -> Findings:
        """Check that each query found all matching rows, and that the table holds each written row once."""
        del last
        show("oracle")
        began = time.perf_counter()
        files, rows = self._files, self._rows
        wanted = {each.name: rows * each.files(files) for each in PREDICATES}
        wrong = {each.predicate: each.rows for each in window.done if each.rows != wanted[each.predicate]}
        self._wrong = [f"'{name}' found {count:,} rows of {wanted[name]:,}" for name, count in wrong.items()]
        ids = np.bincount(self._table.ids().to_numpy(), minlength=files * rows)
        missing, doubled = int((ids[: files * rows] == 0).sum()), int((ids > 1).sum())
        unexpected = int((ids[files * rows :] > 0).sum())
        verdict = not (wrong or missing or doubled or unexpected)
        counts = (files * rows, int(ids.sum()), missing, doubled, unexpected)
        oracle = Oracle(verdict, True, *counts, self._table.reader, time.perf_counter() - began)
        return Findings(oracle, self._table.footprint())

    def describe(self, window: AskingWindow) -> Description:
        del window
        found: dict[str, Any] = {
            "oracle": {"words": "; ".join(self._wrong) or "exact"},
            "referenced_files": len(self._table.data_files()),
        }
        return Description(
            system=system_part(self._rig.variant, self._table, schema()),
            versions={"PyArrow": pa.__version__, "Python": platform.python_version()},
            marks=tuple(self._wrong),
            found=found,
        )


@contextmanager
def staged(rig: Rig, name: str, seconds: float, show: Show) -> Iterator[AskingStage]:
    """Create the table in the folder `name`, with a commit for each of its files, and yield its stage."""
    del seconds
    settings = PruningSettings.of(rig.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(rig.folder(name))
        show("making the table")
        folder = private_directory(directory / "table-1")
        table = rig.variant.open_as(TableSystem, rig.context(folder, settings.rows))
        stack.callback(table.close)
        table.create(schema())
        for file in range(settings.files):
            table.write(rows_of(file, settings.rows))
        yield AskingStage(rig, directory, table, settings.files, settings.rows)
