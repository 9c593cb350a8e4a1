"""Apache Spark: a JVM with one session for SQL and streams; runs locally, or as the driver of a cluster.

with Spark(workspace, directory, {"spark.eventLog.enabled": "true"}) as spark:
    answer = spark.sql("SELECT count(*) FROM range(10)", name="a count")      returns rows, plans and times
    spark.run("copy", stream)                                                 a streaming query, one at a time
    ...
    spark.cancel("copy")

SparkServer.java runs them. All listeners are on loopback: SparkServer, the driver, and the block server; Spark's web
UI is off. Paths in settings may be relative to the server's directory. Each table format adds its jars and session
settings in a separate subclass (spark_formats.py).

With the address of an external cluster (spark://host:port) the JVM is its driver, and sends executors the jars that
Spark's own distribution lacks. The executors connect to the driver, which listens on the address that routes to the
master, and write tables by path: the server's directory must be on a shared file system, which is checked at the
start. The cluster keeps no state of an application whose driver has ended.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.engines.java_program import REQUEST_S, JavaProgram
from tidemark.services.engines.spark_events import Job, read_jobs
from tidemark.services.programs.java import LOGGING
from tidemark.services.programs.process import Child, give

SETTINGS_FILE = "session.json"
NOTHING: Mapping[str, str] = MappingProxyType({})
CLUSTER = "spark://"  # prefix of a master's address
LOOPBACK_HOST = "127.0.0.1"
# Name prefixes of jars in the lock 'spark' that executors of Spark's own distribution lack.
SENT = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
TRY_ROWS, TRY_S = 8, 90.0
# Settings common to all sessions: storage locations and time zone.
HERE = {
    "spark.app.name": "tidemark",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.local.dir": "tmp",
    "spark.sql.warehouse.dir": "data/warehouse",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a statement, and its times in the session."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]  # numbers and booleans as such, decimals and all other values as text
    submitted_ms: int  # since 1970
    planned_ns: int  # until the execution plan was ready; a command has already done its work by then
    elapsed_ns: int  # until all rows were ready
    optimized: str  # the plans; `executed` is the final plan after execution
    executed: str


@dataclass(frozen=True, slots=True)
class Stream:
    """A streaming query over Kafka messages."""

    source: Mapping[str, str]  # options of Spark's Kafka source
    query: str  # SQL over the view `events` of its messages
    format: str
    options: Mapping[str, str]  # of the format's sink
    table: str | None  # name in a catalog; None: one of `options` gives the path
    every_ms: int  # interval between batch starts, if no batch takes longer
    settings: Mapping[str, str] = field(default_factory=dict)  # session settings that can be changed while it runs


def literal(value: object) -> str:
    """Return `value` as a Spark SQL string literal."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


class Spark(JavaProgram):
    """Spark 3.5 with SQL and its Kafka source; `settings` are applied at each start.

    `master`: None for all processors of this machine, local[N] for N threads, or the spark:// address of a cluster.
    """

    name: ClassVar[str] = "spark"
    title: ClassVar[str] = "Spark"
    locks: ClassVar[tuple[str, ...]] = ("spark",)
    address_key: ClassVar[str | None] = "spark_master"
    has_client: ClassVar[bool] = True
    visits: ClassVar[bool] = True
    source: ClassVar[Path] = Path(__file__).with_name("SparkServer.java")
    heap_mb: ClassVar[int] = 2048
    logging: ClassVar[str] = LOGGING.replace("INFO", "WARN")  # the default logs every task
    # Packages that Spark's start scripts open on JVM 17 and later.
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
    session: ClassVar[Mapping[str, str]] = NOTHING  # settings that a table format requires

    def __init__(
        self, workspace: Workspace, directory: Path, settings: Mapping[str, str] = NOTHING, master: str | None = None
    ) -> None:
        super().__init__(workspace, directory)
        self._settings = settings
        self.master = master or f"local[{os.cpu_count() or 1}]"
        self._tried = False

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory, master=around.config.spark_master)

    @classmethod
    def address_in(cls, config: ServicesConfig) -> str | None:
        """Return the address of an external cluster; None if the setting is a number of threads."""
        master = config.spark_master
        return master if master is not None and master.startswith(CLUSTER) else None

    @property
    def is_elsewhere(self) -> bool:
        return self.master.startswith(CLUSTER)

    def sql(self, text: str, name: str = "", timeout_s: float = REQUEST_S) -> Answer:
        """Run one statement and fetch all its rows; `name` is the description of its jobs.

        Raise ServiceError, with Spark's reason, if it is refused, fails, or takes longer than `timeout_s`.
        """
        answer = json.loads(self._ask("POST", "sql", json.dumps({"text": text, "name": name}), timeout_s))
        columns, rows = tuple(answer.pop("columns")), tuple(map(tuple, answer.pop("rows")))
        return Answer(columns, rows, **answer)

    def log_events(self, folder: Path) -> None:
        """Write all further events into the empty `folder`, in the format of Spark's history server."""
        self._ask("POST", "events", json.dumps({"folder": str(give(folder))}))

    def logged(self, folder: Path) -> tuple[Job, ...]:
        """End the event log in `folder` and return its jobs; empty if no log was begun."""
        self._ask("DELETE", "events", "")
        return tuple(job for path in sorted(folder.iterdir()) for job in read_jobs(path))

    def run(self, job: str, stream: Stream) -> None:
        """Start the stream, resuming from the state kept under the name `job`; raise ServiceError on failure."""
        kept = {"checkpointLocation": f"data/{job}"}
        self._ask("POST", "stream", json.dumps({**asdict(stream), "options": {**stream.options, **kept}}))
        self.check_job()

    def check_job(self) -> None:
        """Raise ServiceError, with the reason, if the stream has ended."""
        self.check()
        state = self._ask("GET", "stream")
        if state != "RUNNING":
            raise ServiceError(f"the stream of {self.title} has ended, {state}; its log is {self.log_path}.")

    def cancel(self, job: str) -> None:
        """Stop the stream, and remove the state that it keeps outside its table."""
        if self._child is not None and not self.has_ended():
            self._ask("DELETE", "stream")
        shutil.rmtree(self.data_directory / job, ignore_errors=True)

    def _arguments(self) -> tuple[str, ...]:
        conf = {**HERE, **self._place(), **self.session, **self._settings}
        (self.directory / SETTINGS_FILE).write_text(json.dumps(conf))
        return (SETTINGS_FILE,)

    def _environment(self) -> Mapping[str, str]:
        """Return the variables that Spark reads before its settings."""
        return {"SPARK_LOCAL_IP": self._host()}

    def _host(self) -> str:
        """Return the address to listen on: the interface that routes to the master, or loopback."""
        if not self.is_elsewhere:
            return LOOPBACK_HOST
        first = urlsplit(self.master.split(",")[0])
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
                towards.connect((first.hostname, first.port or 7077))  # sends nothing
                return str(towards.getsockname()[0])
        except OSError as error:
            raise ServiceError(f"{self.master} cannot be reached: {error}. Check services.spark_master.") from error

    def _place(self) -> dict[str, str]:
        """Return the settings for where its tasks run and where it listens for them."""
        host = self._host()
        conf = {"spark.master": self.master, "spark.driver.host": host, "spark.driver.bindAddress": host}
        if self.is_elsewhere:
            formats = [jar for jar in self._jars if jar.parent.name != self.locks[0] or jar.name.startswith(SENT)]
            sent = {"spark.jars": ",".join(map(str, formats)), "spark.executor.memory": f"{self.heap_mb}m"}
            return {**conf, **sent}
        threads = re.fullmatch(r"local\[(\d+)\]", self.master)
        cores = 1 if self.master == "local" else int(threads[1]) if threads else os.cpu_count() or 1
        return {**conf, "spark.sql.shuffle.partitions": str(2 * cores)}

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        super()._wait_until_ready(child, log_start)
        if self.is_elsewhere and not self._tried:
            self._try()
            self._tried = True

    def _try(self) -> None:
        """Raise ServiceError if the cluster provides no executor or executors do not share this server's folder."""
        folder = self.data_directory / "tried"
        query = (
            f"INSERT OVERWRITE DIRECTORY {literal(folder.absolute())} USING parquet SELECT id FROM range({TRY_ROWS})"
        )
        try:
            self.sql(query, "can executors write here?", TRY_S)
        except ServiceError as error:
            raise ServiceError(
                f"the Spark cluster at {self.master} did not run a first statement, which writes to {folder}: {error}. "
                f"It needs a worker of Spark {self.version()} with a free core and {self.heap_mb} MiB, which sees this "
                "folder at the same path and whose account may write there."
            ) from error
        if not list(folder.glob("*.parquet")):
            raise ServiceError(
                f"what the executors of {self.master} wrote to {folder} is not there: they do not share this file "
                "system. Put the workspace on one that they see at the same path."
            )
        shutil.rmtree(folder, ignore_errors=True)
