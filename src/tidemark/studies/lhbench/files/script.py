"""Windows of the part `files`: four queries of one table whose files exist beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.studies.lhbench.data import many
from tidemark.studies.lhbench.data.store import Store
from tidemark.studies.lhbench.files.answers import QUERIES, Closed
from tidemark.studies.lhbench.files.settings import FilesSettings
from tidemark.studies.lhbench.window.script import QUERIED, QUERY, WARM, Held, Phase, Step
from tidemark.systems.spark_sql.base import SqlEngineTable

TABLE = "many_files"
# Warm-up of a session as in LHBench's program: five times, with a hundredth of its rows and a tenth of its tasks.
WARMING = "SELECT sum(id % 97) FROM range(0, 1000000, 1, 100)"
WARMINGS = 5
# Up to this many files, a reader without the engine checks all rows. Opening more would take it longer than a part.
READ_FILES = 20_000


def script(system: SqlEngineTable, settings: FilesSettings, store: Store) -> Sequence[Phase]:
    system.register(TABLE, store.written(settings))
    warm = tuple(Step(WARM, "tasks", number, (WARMING,)) for number in range(1, WARMINGS + 1))
    asked = tuple(
        Step(QUERY, query, number, (text.format(table=TABLE),), closed=Closed.of(query, settings))
        for number in range(1, settings.iterations + 1)
        for query, text in QUERIES.items()
    )
    held = Held(TABLE, (many.ITEM,), many.base(settings.files, settings.rows))
    return (
        Phase(WARM, warm, counts=False),
        Phase(QUERIED, asked, (held,), judged=True, read=settings.files <= READ_FILES),
    )
