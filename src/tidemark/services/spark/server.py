"""Apache Spark in one process: a JVM that is driver and executor, and holds one session for SQL and streams.

with Spark(workspace, directory, {"spark.eventLog.enabled": "true"}) as spark:
    answer = spark.sql("SELECT count(*) FROM range(10)", name="a count")      its rows, plans and times
    spark.run("copy", stream)                                                 a query that never ends, one at a time
    ...
    spark.cancel("copy")

SparkServer.java runs them. All that listens is on loopback: it itself, the driver, and the server of blocks; Spark's
own pages are off. A path in a setting may be relative to the server's directory. A format of tables brings its jars,
and what a session must be told of them, in a subclass of its own (formats.py).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.asked.program import REQUEST_S, JavaProgram
from tidemark.services.kafka_properties import LOGGING
from tidemark.services.programs.process import give
from tidemark.services.spark.events import Job, read_jobs

SETTINGS_FILE = "session.json"
NOTHING: Mapping[str, str] = MappingProxyType({})
# The same for every session: where it listens, where it keeps what, and what a clock shows in it.
HERE = {
    "spark.app.name": "tidemark",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.local.dir": "tmp",
    "spark.sql.warehouse.dir": "data/warehouse",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement was answered with, and how long that took in the session."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]  # numbers and truth values as such, decimals and all else as text
    submitted_ms: int  # since 1970
    planned_ns: int  # until the plan of execution was there; a command has done its work by then
    elapsed_ns: int  # until all rows were
    optimized: str  # the plans, the latter as it was once all had been executed
    executed: str


@dataclass(frozen=True, slots=True)
class Stream:
    """A query without an end over the messages of Kafka."""

    source: Mapping[str, str]  # options of Spark's source for Kafka
    query: str  # of SQL, over the view `events` of its messages
    format: str
    options: Mapping[str, str]  # of the format's sink
    table: str | None  # in a catalog; None: one of `options` says where
    every_ms: int  # from the start of one batch to that of the next, where none takes longer
    settings: Mapping[str, str] = field(default_factory=dict)  # of the session, which can be told while it runs


class Spark(JavaProgram):
    """Spark 3.5 with its SQL and its source for Kafka, on all processors; `settings` are told to it at each start."""

    name: ClassVar[str] = "spark"
    title: ClassVar[str] = "Spark"
    locks: ClassVar[tuple[str, ...]] = ("spark",)
    source: ClassVar[Path] = Path(__file__).with_name("SparkServer.java")
    heap_mb: ClassVar[int] = 2048
    logging: ClassVar[str] = LOGGING.replace("INFO", "WARN")  # it tells of each task otherwise
    # What Spark's own start scripts open to it of a JVM since 17.
    opened: ClassVar[tuple[str, ...]] = (
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "jdk.internal.ref",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
        "sun.util.calendar",
    )
    java_options: ClassVar[tuple[str, ...]] = ("-Djdk.reflect.useDirectMethodHandle=false",)
    # For what it finds out by itself before it reads a setting.
    environment: ClassVar[Mapping[str, str]] = {"SPARK_LOCAL_IP": "127.0.0.1"}
    session: ClassVar[Mapping[str, str]] = NOTHING  # what a format needs

    def __init__(self, workspace: Workspace, directory: Path, settings: Mapping[str, str] = NOTHING) -> None:
        super().__init__(workspace, directory)
        self._settings = settings

    def sql(self, text: str, name: str = "", timeout_s: float = REQUEST_S) -> Answer:
        """Run one statement and fetch all its rows; `name` is the description of its jobs.

        ServiceError, with Spark's reason, where it is refused or fails, and where it takes longer than `timeout_s`.
        """
        told = json.loads(self._ask("POST", "sql", json.dumps({"text": text, "name": name}), timeout_s))
        columns, rows = tuple(told.pop("columns")), tuple(map(tuple, told.pop("rows")))
        return Answer(columns, rows, **told)

    def log_events(self, folder: Path) -> None:
        """Have all that happens from now on written into the empty `folder`, as Spark's history server reads it."""
        self._ask("POST", "events", json.dumps({"folder": str(give(folder))}))

    def logged(self, folder: Path) -> tuple[Job, ...]:
        """The jobs that the log in `folder` has, which ends with this; none where none was begun."""
        self._ask("DELETE", "events", "")
        return tuple(job for path in sorted(folder.iterdir()) for job in read_jobs(path))

    def run(self, job: str, stream: Stream) -> None:
        """Start the stream, which goes on from what one of the name `job` has kept; ServiceError where it does not."""
        kept = {"checkpointLocation": f"data/{job}"}
        self._ask("POST", "stream", json.dumps({**asdict(stream), "options": {**stream.options, **kept}}))
        self.check_job()

    def check_job(self) -> None:
        """ServiceError, with the reason, where the stream has ended."""
        self.check()
        state = self._ask("GET", "stream")
        if state != "RUNNING":
            raise ServiceError(f"the stream of {self.title} has ended, {state}; its log is {self.log_path}.")

    def cancel(self, job: str) -> None:
        """End the stream, and remove what it keeps outside of its table."""
        if self._child is not None and not self.has_ended():
            self._ask("DELETE", "stream")
        shutil.rmtree(self.data_directory / job, ignore_errors=True)

    def _arguments(self) -> tuple[str, ...]:
        cores = os.cpu_count() or 1
        sizes = {"spark.master": f"local[{cores}]", "spark.sql.shuffle.partitions": str(2 * cores)}
        told = {**HERE, **sizes, **self.session, **self._settings}
        (self.directory / SETTINGS_FILE).write_text(json.dumps(told))
        return (SETTINGS_FILE,)
