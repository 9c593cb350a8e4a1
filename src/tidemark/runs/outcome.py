"""Outcome of a series: its final status, every attempt, and every run that was measured again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tidemark.errors import AnalysisError, RebootNeeded, TidemarkError
from tidemark.paths import Workspace, write_atomically
from tidemark.runs.serde import Fields, read, to_json, written
from tidemark.runs.spec import SeriesSpec

LEFT_OUT = "left-out"  # of a round: what had been measured before was enough
STATUSES = ("complete", "failed", "not-run", LEFT_OUT)
KILLED = "killed"
INTERRUPTED = 130  # the exit code
ATTEMPTS, OUTCOME = "attempts.json", "outcome.json"
DISTURBED = "disturbed"  # folder of runs that were measured again


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at measuring a series; the end, reason and exit code of a killed one are None."""

    number: int  # from 1
    started_at: str  # date and time with zone
    ended_at: str | None  # date and time with zone; null if it was killed
    status: str  # complete | failed | interrupted | killed
    reason: str | None  # why it failed
    exit_code: int | None  # exit code of the error


@dataclass(frozen=True, slots=True)
class Disturbed:
    """Run that was measured again because of interference; its files are kept in `directory`."""

    run: int  # number of the run
    attempt: int  # at measuring this run, from 1
    directory: str  # relative to the folder of the series
    reasons: tuple[str, ...]  # what disturbed it


@dataclass(frozen=True, slots=True)
class Outcome:
    """Final status of a series; the pipeline continues either way, and the tables show the reason."""

    status: str  # complete, failed, not-run or left-out
    reason: str | None  # why it is not complete
    exit_code: int  # exit code of the error; 0 without one
    runs: tuple[int, ...]  # numbers of the finished runs
    attempts: tuple[Attempt, ...] = ()  # oldest first; none in run files of version 1
    disturbed: tuple[Disturbed, ...] = ()  # runs that were measured again

    def write(self, path: Path) -> None:
        write_atomically(path, to_json(self))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        """Read the outcome at `path`; raise AnalysisError, naming file and key, if it is invalid."""
        outcome = read(cls, Fields.read(path))
        if outcome.status not in STATUSES:
            allowed = ", ".join(STATUSES)
            raise AnalysisError(f"{path}: key 'status': found '{outcome.status}'; allowed: {allowed}")
        if outcome.status == "complete" and not outcome.runs:
            raise AnalysisError(f"{path}: the series is complete, but 'runs' names none")
        return outcome


def outcome_path(workspace: Workspace, spec: SeriesSpec) -> Path:
    return workspace.root / spec.directory / OUTCOME


@dataclass(frozen=True, slots=True)
class SeriesRecord:
    """Folder of a series: its finished runs, its attempts, the runs that were measured again, and its outcome."""

    directory: Path

    def finished(self) -> list[int]:
        """Return the numbers of the runs whose files are complete, in ascending order."""
        return sorted(int(path.parent.name.removeprefix("run-")) for path in self.directory.glob("run-*/run.json"))

    def missing(self, numbers: Iterable[int]) -> list[int]:
        """Return those of the `numbers` of runs that are not finished."""
        finished = self.finished()
        return [number for number in numbers if number not in finished]

    def set_aside(self, trips_sha256: str) -> None:
        """Move runs on other trips aside (the dataset was acquired again from another source): kept, not counted."""
        for path in self.directory.glob("run-*/run.json"):
            if json.loads(path.read_text())["dataset"]["sha256"] != trips_sha256:
                number = 1
                while (self.directory / f"superseded-{number}").exists():
                    number += 1
                (self.directory / f"superseded-{number}").mkdir()
                for run in self.directory.glob("run-*"):
                    run.rename(self.directory / f"superseded-{number}" / run.name)
                return

    def disturbed(self) -> tuple[Disturbed, ...]:
        """Return the runs that were measured again, oldest first."""
        found = []
        for path in sorted(self.directory.glob(f"{DISTURBED}/run-*/run.json")):
            number, attempt = map(int, path.parent.name.removeprefix("run-").split("-"))
            reasons = Fields.read(path).part("interference").texts("disturbed")
            found.append(Disturbed(number, attempt, f"{DISTURBED}/{path.parent.name}", reasons))
        return tuple(found)

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the attempts, oldest first; empty before the first one."""
        path = self.directory / ATTEMPTS
        return tuple(read(Attempt, each) for each in Fields.read_list(path)) if path.exists() else ()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Record the start of an attempt and its end; an attempt whose process is killed stays `killed`.

        Waiting for a restart of the machine does not count as an attempt.
        """
        before = self.attempts()
        this = Attempt(len(before) + 1, _now(), None, KILLED, None, None)
        self._write(*before, this)
        try:
            yield
        except RebootNeeded:
            self._write(*before)
            raise
        except KeyboardInterrupt:
            self._write(*before, replace(this, ended_at=_now(), status="interrupted", exit_code=INTERRUPTED))
            raise
        except TidemarkError as error:
            failed = replace(this, ended_at=_now(), status="failed", reason=str(error), exit_code=error.exit_code)
            with suppress(OSError):  # a full disk must not hide why the series failed
                self._write(*before, failed)
            raise
        self._write(*before, replace(this, ended_at=_now(), status="complete", exit_code=0))

    def end(self, status: str, reason: str | None = None, exit_code: int = 0) -> Outcome:
        """Write outcome.json, with the runs and attempts so far, and return it."""
        runs = () if status in ("not-run", LEFT_OUT) else tuple(self.finished())
        outcome = Outcome(status, reason, exit_code, runs, self.attempts(), self.disturbed())
        outcome.write(self.directory / OUTCOME)
        return outcome

    def _write(self, *attempts: Attempt) -> None:
        content = json.dumps([written(each) for each in attempts], indent=1)
        write_atomically(self.directory / ATTEMPTS, content + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
