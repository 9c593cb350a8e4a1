"""What ended a step of the pipeline, left where the pipeline around it finds it: Snakemake passes on no reason."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tidemark.paths import Workspace

LOCKED = "TIDEMARK_LOCKED"  # set for children of a pipeline that holds the lock already
TARGETS = "targets"  # the step of a failure that Snakemake was asked for what no rule makes
QUOTING = ", ends with:"  # before the lines of a log
PIPELINE = "TIDEMARK_PIPELINE"  # the process that runs the steps, for them to end with


@dataclass(frozen=True, slots=True)
class Failure:
    """The first step that failed: its name, what happened, the log that has more, and the exit code to end with."""

    step: str
    reason: str
    log: str | None
    exit_code: int

    def __str__(self) -> str:
        """One line for whoever typed the command: what happened, then the log; what a log says is in `details`."""
        whole = f"{self.step}: failed: {_ended(self.reason.splitlines()[0].removesuffix(QUOTING))}"
        return f"{whole} Its log is {self.log}." if self.log else whole

    @property
    def details(self) -> tuple[str, ...]:
        """The further lines of the reason: the end of a server's log."""
        return tuple(self.reason.splitlines()[1:])


def _ended(sentence: str) -> str:
    return sentence if sentence.rstrip().endswith((".", "!", "?")) else f"{sentence.rstrip()}."


def place(workspace: Workspace) -> Path:
    return workspace.private / "failed-step"


def note(workspace: Workspace, failure: Failure) -> None:
    """For the pipeline around this step, if there is one; the first failure counts."""
    if os.environ.get(LOCKED) == "1":
        with contextlib.suppress(OSError), place(workspace).open("x") as file:
            json.dump(asdict(failure), file)


def noted(workspace: Workspace) -> Failure | None:
    """The first failure since `forget`; None where no step noted one."""
    try:
        return Failure(**json.loads(place(workspace).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def forget(workspace: Workspace) -> None:
    place(workspace).unlink(missing_ok=True)
