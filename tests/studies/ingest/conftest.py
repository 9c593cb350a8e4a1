"""Fixtures: a small table of delta-rs, trips, and a `ClientFactory` whose clients acknowledge before they commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.systems.base import Context
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.writers import ClientFactory

ROWS = 2


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    path = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"id": pa.array(range(7), pa.int64()), "fare": [float(n) for n in range(7)]}), path)
    return path


@pytest.fixture
def table(tmp_path: Path, trips: Path) -> Iterator[DeltaRs]:
    folder = tmp_path / "table"
    folder.mkdir()
    system = DeltaRs(Context(folder, {}, ROWS), DeltaRs.Options())
    system.create(pq.read_schema(trips))
    yield system
    system.close()


# A client that acknowledges at once and commits a little later.
EARLY = """
import queue, threading, time
from dataclasses import dataclass
from tidemark.systems.writers import ClientFactory, TableWriter

@dataclass(frozen=True)
class EarlyClientFactory(ClientFactory):
    inner: ClientFactory

    def open(self):
        return Early(self.inner.open())

class Early(TableWriter):
    def __init__(self, inner):
        self._inner, self._rows = inner, queue.Queue()
        threading.Thread(target=self._commit, daemon=True).start()

    def _commit(self):
        while True:
            acknowledged, rows = self._rows.get()
            time.sleep(max(0, acknowledged + 0.5 - time.monotonic()))
            self._inner.write(rows)
            self._rows.task_done()

    def write(self, rows):
        time.sleep(0.1)
        self._rows.put((time.monotonic(), rows))

    def commit_status(self, error):
        return self._inner.commit_status(error)

    def close(self):
        self._rows.join()
"""


@pytest.fixture
def early_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[ClientFactory], ClientFactory]:
    """Return a function that wraps a `ClientFactory`; programs in the folder of the trips can import it."""
    (tmp_path / "planted_early.py").write_text(EARLY)
    monkeypatch.syspath_prepend(tmp_path)
    import planted_early  # type: ignore[import-not-found]

    def around(client_factory: ClientFactory) -> ClientFactory:
        made: ClientFactory = planted_early.EarlyClientFactory(client_factory)
        return made

    return around
