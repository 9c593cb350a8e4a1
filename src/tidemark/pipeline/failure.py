"""Record of the step that failed, in a file for the enclosing pipeline: Snakemake does not pass on the reason."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tidemark.paths import Workspace

LOCKED = "TIDEMARK_LOCKED"  # set for children of a pipeline that holds the lock already
TARGETS = "targets"  # the step of a failure if Snakemake was given a target that no rule makes
QUOTING = ", ends with:"  # precedes the quoted lines of a log
PIPELINE = "TIDEMARK_PIPELINE"  # id of the process that runs the steps, which end with it


@dataclass(frozen=True, slots=True)
class Failure:
    """First step that failed: its name, the reason, the log with details, and the exit code to return."""

    step: str
    reason: str
    log: str | None
    exit_code: int

    def __str__(self) -> str:
        """Return one line for the user: the reason, then the log; quoted lines of a log are in `details`."""
        whole = f"{self.step}: failed: {_ended(self.reason.splitlines()[0].removesuffix(QUOTING))}"
        return f"{whole} Its log is {self.log}." if self.log else whole

    @property
    def details(self) -> tuple[str, ...]:
        """Further lines of the reason: the end of a server's log."""
        return tuple(self.reason.splitlines()[1:])


def _ended(sentence: str) -> str:
    return sentence if sentence.rstrip().endswith((".", "!", "?")) else f"{sentence.rstrip()}."


def place(workspace: Workspace) -> Path:
    return workspace.private / "failed-step"


def note(workspace: Workspace, failure: Failure) -> None:
    """Record a failure for the enclosing pipeline, if there is one; only the first failure is kept."""
    if os.environ.get(LOCKED) == "1":
        with contextlib.suppress(OSError), place(workspace).open("x") as file:
            json.dump(asdict(failure), file)


def noted(workspace: Workspace) -> Failure | None:
    """Return the first failure since `forget`; None if no step recorded one."""
    try:
        return Failure(**json.loads(place(workspace).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget(workspace: Workspace) -> None:
    place(workspace).unlink(missing_ok=True)
