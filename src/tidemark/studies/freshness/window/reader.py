"""Reader that opens the table repeatedly and counts its rows."""

from __future__ import annotations

import threading
import time

from tidemark.errors import SystemFailure
from tidemark.studies.freshness.window.samples import Look
from tidemark.systems.tables import TableSystem

GIVE_UP = 20  # consecutive looks that fail


class Reader:
    """Thread as a context manager. Each look opens the table again, as a query does before it reads rows."""

    def __init__(self, table: TableSystem, look_ms: int) -> None:
        self.looks: list[Look] = []
        self.failed = 0
        self._table, self._pause_s = table, look_ms / 1000
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    @property
    def rows(self) -> int:
        """Rows at the last look. Raises SystemFailure if the table can no longer be read."""
        if self._error is not None:
            raise SystemFailure(f"the table could not be read: {self._error}") from self._error
        return self.looks[-1].rows if self.looks else 0

    def _run(self) -> None:
        in_a_row = 0
        while not self._ended.wait(self._pause_s):
            try:
                rows = self._table.visible_rows()
            except Exception as error:
                self.failed, in_a_row = self.failed + 1, in_a_row + 1
                if in_a_row >= GIVE_UP:
                    self._error = error
                    return
                continue
            in_a_row = 0
            self.looks.append(Look(time.time_ns(), rows))

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
