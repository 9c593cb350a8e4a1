"""Stand-alone program: one writer that commits by a schedule.

    python -m tidemark.studies.ingest.load.scheduled_writer

It reads a writer's `WorkerConfig`, pickled, from standard input, and follows the protocol of `schedule`.
"""

from __future__ import annotations

import pickle
import sys
import time

from tidemark.studies.ingest.load.records import Records
from tidemark.studies.ingest.load.schedule import Due, follow, work_off
from tidemark.studies.ingest.load.writer import WorkerConfig, WriterLoop


class Scheduled(WriterLoop):
    """Writer loop, closed or by a schedule; a request is a batch, with as many tries as in a closed loop."""

    def warm(self) -> None:
        self.count(self._order.uncounted)

    def in_closed_loop(self, end_ns: int, most: int) -> None:
        last, self._end_ns = self._sequence + most, end_ns
        while not self._is_over() and self._sequence < last:
            self._commit()
        self._end_ns = sys.maxsize

    def by_schedule(self, due: Due) -> list[list[int]]:
        return [work_off(due, self._commit, time.perf_counter_ns, time.sleep)]


def main() -> None:
    order: WorkerConfig = pickle.load(sys.stdin.buffer)
    writer = order.client_factory.open()
    follow(Scheduled(order, writer, Records(order.records, order.most)))
    writer.close()


if __name__ == "__main__":
    main()
