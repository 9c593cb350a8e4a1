"""Apache Flink: a JVM that runs one SQL job at a time, on an embedded cluster or on an external one.

FlinkServer.java takes the jobs. All listeners are on loopback: FlinkServer itself, and the job cluster's REST
interface and blob server; within one process a task manager has no port.

Given the address of a session cluster, the JVM is its client: it plans the job, submits it with the jars that Flink's
own distribution lacks, and polls the job's state. The job is recorded before it is submitted, and cancelled at the end.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.http import fetch
from tidemark.services.own import REQUEST_S, JavaProgram
from tidemark.services.programs.process import Child, give, write_private

LOOK_S = 0.1
# Addresses of the embedded cluster, and its local state other than checkpoints, which is lost when it ends.
HERE = {
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "taskmanager.host": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "rest.bind-port": "0",
    "io.tmp.dirs": "tmp",
}
# Name prefixes of jars that jobs use and Flink's distribution lacks; they are sent with each job.
SENT = (
    "flink-connector-base",
    "flink-connector-kafka",
    "kafka-clients",
    "iceberg-flink-runtime",
    "hadoop-client-api",
    "hadoop-client-runtime",
)
ENDED = ("FINISHED", "CANCELED", "FAILED")  # states of a job on a cluster


class Flink(JavaProgram):
    """Flink 2.1 with its Kafka connector and Iceberg's sink; `cluster`: http address of an external one, or None."""

    name: ClassVar[str] = "flink"
    title: ClassVar[str] = "Flink"
    locks: ClassVar[tuple[str, ...]] = ("flink",)
    address_key: ClassVar[str | None] = "flink_address"
    has_client: ClassVar[bool] = True
    visits: ClassVar[bool] = True
    source: ClassVar[Path] = Path(__file__).with_name("FlinkServer.java")
    heap_mb: ClassVar[int] = 1024
    opened: ClassVar[tuple[str, ...]] = (*JavaProgram.opened, "java.text", "java.time", "java.util.concurrent.locks")

    def __init__(self, workspace: Workspace, directory: Path, cluster: str | None = None) -> None:
        super().__init__(workspace, directory)
        self.cluster = None if cluster is None else cluster.rstrip("/")

    @property
    def is_elsewhere(self) -> bool:
        return self.cluster is not None

    def address_outside(self) -> dict[str, str | None]:
        return {"flink_address": self.cluster}

    def version(self) -> str:
        """Return the cluster's version; the client is of the same minor release."""
        return super().version() if self.cluster is None else self._version_there()

    def run(self, job: str, statements: Sequence[str], settings: Mapping[str, str]) -> None:
        """Start the job `job` and return once it runs; raise ServiceError, with the reason, if it does not.

        The last of `statements` starts it; `settings` are Flink settings added to those common to all jobs. The job
        resumes from the last checkpoint that a job of this name completed.
        """
        folder = self._folder(job)
        options = {**(self._here(folder) if self.cluster is None else self._there(job)), **settings}
        self._note(job)
        lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in options.items()]
        write_private(folder / "config.yaml", "\n".join(lines))
        write_private(folder / "job.sql", "".join(f"{statement};\n" for statement in statements))
        self._ask("POST", "job", str(folder))
        deadline = time.monotonic() + REQUEST_S
        while (state := self._state()) != "RUNNING":
            if time.monotonic() > deadline:
                raise ServiceError(f"the job {job} of {self.title} is {state}; its log is {self.log_path}.")
            time.sleep(LOOK_S)

    def check_job(self) -> None:
        """Raise ServiceError if the job has ended; a job that Flink is restarting counts as running."""
        self.check()
        self._state()

    def cancel(self, job: str) -> None:
        """Cancel the job, and remove the state that it keeps outside its table."""
        if self.cluster is not None:
            self.drop(job)
        elif self._child is not None and not self.has_ended():
            self._ask("DELETE", "job")
        shutil.rmtree(self._folder(job), ignore_errors=True)

    def drop(self, name: str) -> None:
        """Cancel the cluster's jobs of this name, and return once they have ended."""
        deadline = time.monotonic() + REQUEST_S
        while left := [each for each in self._jobs() if each["name"] == name and each["state"] not in ENDED]:
            if time.monotonic() > deadline:
                raise ServiceError(f"the job {name} is still {left[0]['state']} at {self.cluster}, though cancelled.")
            for each in left:
                with suppress(ServiceError):  # it may have ended in the meantime
                    self._cluster("PATCH", f"jobs/{each['jid']}?mode=cancel")
            time.sleep(LOOK_S)
        self._strike(name)

    def checkpoint_storage(self, job: str) -> str | None:
        """Return the checkpoint storage that the cluster reports for the job; None if embedded or not reported."""
        found = [each["jid"] for each in self._jobs() if each["name"] == job] if self.cluster else []
        return self._cluster("GET", f"jobs/{found[0]}/checkpoints/config").get("checkpoint_storage") if found else None

    def _here(self, folder: Path) -> dict[str, str]:
        """Return the settings of a job in this JVM that resumes from the last checkpoint in `folder`."""
        kept = give(private_directory(folder / "checkpoints"))
        last = last_checkpoint(kept)
        # Flink uses the path after the scheme literally, without unescaping it.
        options = {**HERE, "execution.checkpointing.dir": f"file://{kept}"}
        return options if last is None else {**options, "execution.state-recovery.path": f"file://{last}"}

    def _there(self, job: str) -> dict[str, str]:
        """Return the settings of a job on the external cluster, which stores checkpoints in its configured place."""
        place = urlsplit(self.cluster or "")
        jars = [jar.resolve().as_uri() for jar in self._jars if jar.name.startswith(SENT)]
        return {
            "execution.target": "remote",
            "rest.address": str(place.hostname),
            "rest.port": str(place.port),
            "pipeline.jars": ";".join(jars),
            "pipeline.name": job,
        }

    def _jobs(self) -> list[dict[str, Any]]:
        return list(self._cluster("GET", "jobs/overview")["jobs"])

    def _version_there(self) -> str:
        return str(self._cluster("GET", "config")["flink-version"])

    def _launch(self) -> Child:
        if self.cluster is not None:
            self._version_there()  # fail before starting a client that has no cluster
        return super()._launch()

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        super()._wait_until_ready(child, log_start)
        if self.cluster is None:
            return
        ours, theirs = super().version(), self._version_there()
        if ours.split(".")[:2] != theirs.split(".")[:2]:
            raise ServiceError(
                f"the cluster at {self.cluster} is Flink {theirs}, and the client here {ours}; a job goes from one to "
                "the other within a minor release alone. Give services.flink_address one of this release, or null."
            )

    def _cluster(self, method: str, what: str) -> dict[str, Any]:
        """Return the response of the cluster's REST interface; raise ServiceError if it does not answer."""
        request = urllib.request.Request(f"{self.cluster}/{what}", method=method)
        try:
            return dict(json.loads(fetch(request, REQUEST_S) or b"{}"))
        except (OSError, ValueError) as error:
            raise ServiceError(
                f"the Flink cluster at {self.cluster} did not answer {method} /{what}: {error}. Check "
                "services.flink_address, which is that of its REST interface."
            ) from error

    def _folder(self, job: str) -> Path:
        return give(private_directory(self.data_directory / job))

    def _state(self) -> str:
        state = self._ask("GET", "job")
        if state.startswith(("FAILED", "FINISHED")):
            raise ServiceError(f"the job of {self.title} has ended, {state}; its log is {self.log_path}.")
        return state


def last_checkpoint(folder: Path) -> Path | None:
    """Return the last completed checkpoint below `folder`, from any start of the job; None if there is none.

    Each start has a separate folder and continues the numbering from the checkpoint that it restored. A checkpoint is
    complete if it has `_metadata`, which Flink writes last, by a rename.
    """
    complete = [path.parent for path in folder.glob("*/chk-*/_metadata")]
    return max(complete, key=lambda path: int(path.name.partition("-")[2]), default=None)
