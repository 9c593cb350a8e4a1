"""Files and bytes of a table over time, sampled in a thread while writers write to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tidemark.runs.manifest import Footprint
from tidemark.systems.tables import TableSystem


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a table's folder and catalog at one moment, including files that no snapshot needs any more."""

    moment_ns: int  # of the clock that all processes share
    footprint: Footprint

    def plain(self) -> dict[str, int | None]:
        names = ("data_files", "data_bytes", "metadata_files", "metadata_bytes", "catalog_bytes")
        return {name: getattr(self.footprint, name) for name in names}


class Growth:
    """Sampler of a table: `sizes` in time order; a look that failed, as a file vanished meanwhile, is only counted."""

    def __init__(self, table: TableSystem, every_s: float) -> None:
        self._table, self._every_s = table, every_s
        self._over = threading.Event()
        self.sizes: list[Size] = []
        self.failed = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample the size every `every_s` seconds while the context is active."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.look()
            self._over.wait(self._every_s)

    def look(self) -> None:
        try:
            found = self._table.footprint()
        except Exception:
            self.failed += 1
        else:
            self.sizes.append(Size(time.perf_counter_ns(), found))
