"""Kills of a client whose commit is a file on this machine: right before that file appears, or right after."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tidemark.machine import strace
from tidemark.services.fault_proxy import AFTER, BEFORE, COMMITTED, CommitFaults, Hit

LINKS, REMOVALS = ("link", "linkat"), ("unlink", "unlinkat")
KILLED = "killed by SIGKILL"  # in a recording of strace


class CommitKills(CommitFaults):
    """Kills of a client's process, which commits by a link to a file, and then removes the file's first name.

    BEFORE: as it calls for the link, which is not made. AFTER: as it calls for the removal: the commit is there, which
    the client's caller does not learn.
    """

    faults = (AFTER, BEFORE)

    def __init__(self, folder: Path) -> None:
        """Set up kills of no client yet; `folder` is for the recordings."""
        super().__init__()
        self._client = 0
        self._record, self._tracer = folder / ".commit.strace", ExitStack()

    def of(self, client: int) -> None:
        """Have all later kills be of the process `client`."""
        self._client = client

    def hit_next(self, fault: str) -> None:
        super().hit_next(fault)
        fatal = LINKS if fault == BEFORE else REMOVALS
        self._tracer.enter_context(strace.killing(self._client, fatal, {*LINKS, *REMOVALS}, self._record))

    def take(self) -> list[Hit]:
        self._tracer.close()
        lines = self._record.read_text(errors="replace").splitlines() if (fault := self.due()) else []
        if any(KILLED in line for line in lines):
            linked = [call.text for call in strace.completed(lines) if call.name in LINKS]
            self.note(fault, " ".join(linked), *(COMMITTED for _ in linked))
        return super().take()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tracer.close()
