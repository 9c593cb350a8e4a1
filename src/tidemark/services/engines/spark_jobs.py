"""Spark under a cluster manager: applications that are started on request and end with their work.

An application (SparkJob.java) writes one table on HDFS. run_applications.py starts it and serves HTTP at `address`:
/job for a separate application, /session for one that is kept. Each table format adds its jars in a subclass.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.engines.java_program import LOOPBACK
from tidemark.services.engines.spark import Spark
from tidemark.services.engines.spark_formats import SparkDelta, SparkHudi
from tidemark.services.hdfs import USER
from tidemark.services.programs.java import compiled
from tidemark.services.programs.process import Child, server_environment
from tidemark.services.programs.provision import jar_lock, provision, read_jar_lock

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

    @classmethod
    def address_in(cls, config: ServicesConfig) -> str | None:
        del config
        return None

    def _environment(self) -> Mapping[str, str]:
        return {**super()._environment(), "HADOOP_USER_NAME": USER}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

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
