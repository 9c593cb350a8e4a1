"""Logger of `tidemark all`: the part of Snakemake's output that is shown; Snakemake finds this package by its name.

All of it goes into results/logs/snakemake.log. A terminal shows a line for the step under way, in the place where the
step draws its own; without a terminal each job that is done is a line. Errors and warnings come through, short. Series
tell themselves how far they are and how they ended. With --quiet only errors and warnings are shown, with --verbose
all of Snakemake's output.

Every Snakemake imports this package to see what it is, also while a run is cold: nothing large is imported here.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from logging import ERROR, WARNING, LogRecord
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from tidemark.paths import Workspace
from tidemark.pipeline.failure import Failure, note
from tidemark.progress import is_quiet, is_verbose

LOG = Path("results", "logs", "snakemake.log")
SERIES = "series_"  # how the names of their rules begin
TARGET = "all"  # the rule that has nothing to do
LINES = 6  # of an error; the log has all of it
# Lines of Snakemake around a failed step, which is reported in other words here.
AROUND = ("CalledProcessError in file", "Exiting because a job execution failed", "At least one job did not complete")
NOTHING = "Nothing to be done"
CANCELLING = ("Terminating processes on user request", "Cancelling snakemake")


class LogHandler(LogHandlerBase):
    """Snakemake's own formatter writes the log; what is shown follows from the events."""

    def __post_init__(self) -> None:
        LOG.parent.mkdir(parents=True, exist_ok=True)
        self._file = LOG.open("a", buffering=1)
        self._terminal = sys.stderr.isatty()
        self._quiet, self._verbose = is_quiet(), is_verbose()
        self._rules: dict[int, str] = {}
        self._done = self._total = 0
        self._failed: set[str] = set()  # rules
        self._cancelled = self._drawn = False

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False  # Snakemake would take the file for its own, and us for no stream

    @property
    def has_filter(self) -> bool:
        return True

    @property
    def has_formatter(self) -> bool:
        return False

    @property
    def needs_rulegraph(self) -> bool:
        return False

    def emit(self, record: LogRecord) -> None:
        try:
            text = self.format(record).strip()
            if text not in ("", "None"):
                with suppress(OSError):  # a full disk must not hide what failed
                    self._file.write(f"{text}\n")
                if self._verbose:
                    sys.stderr.write(f"{text}\n")
            self._show(record, text)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[J")
        with suppress(OSError):
            self._file.close()
        super().close()

    def _show(self, record: LogRecord, text: str) -> None:
        event = getattr(record, "event", None)
        if text.startswith(CANCELLING):
            self._cancelled = True  # steps that fail after an interruption are not reported
        elif event == LogEvent.RUN_INFO:
            self._total = record.stats["total"]  # type: ignore[attr-defined]
        elif event == LogEvent.JOB_INFO:
            self._begins(record.jobid, record.rule_name)  # type: ignore[attr-defined]
        elif event == LogEvent.JOB_FINISHED:
            self._ends(self._rules.get(record.job_id, ""))  # type: ignore[attr-defined]
        elif event == LogEvent.JOB_ERROR:
            self._fails(record.rule_name, list(record.log))  # type: ignore[attr-defined]
        elif record.levelno >= ERROR:
            self._complains(text)
        elif record.levelno >= WARNING or (text.startswith(NOTHING) and not self._quiet):
            self._say(_short(text))

    def _begins(self, job: int, rule: str) -> None:
        self._rules[job] = rule
        if self._terminal and not (self._quiet or self._verbose or rule == TARGET or rule.startswith(SERIES)):
            sys.stderr.write(f"\r\x1b[J{rule} (step {self._done + 1} of {self._total})\r")
            sys.stderr.flush()
            self._drawn = True

    def _ends(self, rule: str) -> None:
        self._done += 1
        if not (self._terminal or self._quiet or rule == TARGET or rule.startswith(SERIES)):
            self._say(f"{rule}: done")

    def _fails(self, rule: str, logs: list[str]) -> None:
        """A step that could has told why already; one that was killed has not. Snakemake says it twice."""
        if self._cancelled or rule in self._failed:
            return
        self._failed.add(rule)
        log = logs[0] if logs else None
        note(Workspace(Path.cwd()), Failure(rule, "it ended without saying why; was it killed?", log, 1))
        self._say(f"{rule}: failed" + (f"; its log is {log}" if log else ""))

    def _complains(self, text: str) -> None:
        if self._cancelled or any(words in text for words in AROUND):
            return
        note(Workspace(Path.cwd()), Failure("Snakemake", _short(text), str(LOG), 1))
        self._say(_short(text))

    def _say(self, what: str) -> None:
        if self._verbose:
            return  # all of it was shown
        sys.stderr.write(f"{'\r\x1b[J' if self._terminal else ''}tidemark: {what}\n")
        sys.stderr.flush()
        self._drawn = False


def _short(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    more = f"\n({LOG} has the rest)" if len(lines) > LINES else ""
    return "\n".join(lines[:LINES]) + more
