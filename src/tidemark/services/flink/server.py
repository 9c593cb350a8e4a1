"""Apache Flink in one process: a JVM that runs one job of SQL at a time on a cluster within itself.

FlinkServer.java takes jobs. All that listens is on loopback: it itself, and of a job's cluster the REST interface and
the server of large objects; within one process no task manager has a port.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import private_directory
from tidemark.services.asked.program import REQUEST_S, JavaProgram
from tidemark.services.programs.process import give

LOOK_S = 0.1
# Where the cluster in the JVM listens, and what it keeps beside checkpoints, which is lost with it.
HERE = {
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "taskmanager.host": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "rest.bind-port": "0",
    "io.tmp.dirs": "tmp",
}


class Flink(JavaProgram):
    """Flink 2.1 with its connector to Kafka and Iceberg's sink."""

    name: ClassVar[str] = "flink"
    title: ClassVar[str] = "Flink"
    locks: ClassVar[tuple[str, ...]] = ("flink",)
    source: ClassVar[Path] = Path(__file__).with_name("FlinkServer.java")
    heap_mb: ClassVar[int] = 1024
    # What Flink's own start scripts open to it of a JVM since 17, where the module is there.
    opened: ClassVar[tuple[str, ...]] = (
        "java.lang",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.text",
        "java.time",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "java.util.concurrent.locks",
        "sun.nio.ch",
    )

    def run(self, job: str, statements: Sequence[str], settings: Mapping[str, str]) -> None:
        """Start the job `job` and return once it runs; ServiceError, with why, where it does not.

        The last of `statements` starts it, with `settings` of Flink's beside what is the same for all jobs. It goes on
        from the last checkpoint that a job of this name completed.
        """
        folder = self._folder(job)
        kept = give(private_directory(folder / "checkpoints"))
        last = last_checkpoint(kept)
        # Flink takes a path after the scheme as it is, without escapes.
        told = {**HERE, **settings, "execution.checkpointing.dir": f"file://{kept}"}
        if last is not None:
            told["execution.state-recovery.path"] = f"file://{last}"
        lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items()]
        _write(folder / "config.yaml", "\n".join(lines))
        _write(folder / "job.sql", "".join(f"{statement};\n" for statement in statements))
        self._ask("POST", "job", str(folder))
        deadline = time.monotonic() + REQUEST_S
        while (state := self._state()) != "RUNNING":
            if time.monotonic() > deadline:
                raise ServiceError(f"the job {job} of {self.title} is {state}; its log is {self.log_path}.")
            time.sleep(LOOK_S)

    def check_job(self) -> None:
        """ServiceError where the job has ended; one that Flink itself starts again counts as running."""
        self.check()
        self._state()

    def cancel(self, job: str) -> None:
        """End the job, and remove what it keeps outside of its table."""
        if self._child is not None and not self.has_ended():
            self._ask("DELETE", "job")
        shutil.rmtree(self._folder(job), ignore_errors=True)

    def _folder(self, job: str) -> Path:
        return give(private_directory(self.data_directory / job))

    def _state(self) -> str:
        state = self._ask("GET", "job")
        if state.startswith(("FAILED", "FINISHED")):
            raise ServiceError(f"the job of {self.title} has ended, {state}; its log is {self.log_path}.")
        return state


def last_checkpoint(folder: Path) -> Path | None:
    """The last that was completed below `folder`, whichever start of a job completed it; None where there is none.

    Each start has a folder of its own and counts on from the checkpoint that it began with; what tells that one is
    complete is a file that Flink puts there last, by a rename.
    """
    complete = [path.parent for path in folder.glob("*/chk-*/_metadata")]
    return max(complete, key=lambda path: int(path.name.partition("-")[2]), default=None)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
    give(path)
