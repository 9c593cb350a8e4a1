"""Lifetime of processes: none outlives the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tidemark.errors import MachineError

PR_SET_PDEATHSIG = 1
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: the terminal was closed

_interruptions: list[int] = []  # received signals that ask this process to end
_heirs: list[int] = []  # children that get the signals instead, while this process waits for them


def heed_interruptions(once: bool = False) -> None:
    """Make SIGINT (Ctrl-C), SIGTERM and SIGHUP (terminal closed) raise KeyboardInterrupt, and record them.

    An ignored SIGHUP stays ignored, as under nohup.

    With `once` only the first of them raises: a child that cleans up may get signals from terminal and parent.
    A library may convert that exception to its own (DuckDB: "Query interrupted"), which must not count as a
    failure of the system under test; see `was_interrupted`.
    """

    def interrupt(number: int, _frame: object) -> None:
        _interruptions.append(number)
        for child in _heirs:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        if not _heirs and (not once or len(_interruptions) == 1):
            raise KeyboardInterrupt

    for number in INTERRUPTIONS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


@contextmanager
def tell_instead(child: int) -> Iterator[None]:
    """Pass interruptions on to `child` within the context, and raise nothing here, as the child must end first."""
    _heirs.append(child)
    try:
        yield
    finally:
        _heirs.remove(child)


def run_guarded(command: Sequence[str], **options: Any) -> int | None:
    """Run `command` as a child that cannot outlive this process, and return its status; None if it was interrupted.

    The first Ctrl-C interrupts it, a second kills it. It has a separate process group, so that each Ctrl-C reaches it
    and its children once, through this process. `options` go to Popen.
    """
    guard = [sys.executable, "-m", "tidemark.process_lifetime", str(os.getpid()), *command]
    process = subprocess.Popen(guard, process_group=0, **options)
    how: signal.Signals | None = None
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            how = signal.SIGINT if how is None else signal.SIGKILL
            with suppress(ProcessLookupError):
                os.killpg(process.pid, how)
        else:
            return status if how is None else None


def was_interrupted() -> bool:
    return bool(_interruptions)


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process the signal `how` when the thread that started it ends.

    `parent` is the process id of the expected parent: if that has ended already, the signal is sent at once.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(how), 0, 0, 0) != 0:
        raise MachineError(f"the kernel refused a parent-death signal: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        os.kill(os.getpid(), how)


def say(words: str) -> None:
    """Print a line to stderr; errors are ignored, as a closed terminal may be the cause of the interruption."""
    with suppress(OSError):
        print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    # python -m tidemark.process_lifetime PARENT COMMAND...: execute COMMAND here; it cannot outlive PARENT.
    die_with_parent(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
