"""No process of ours outlives the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidemark.errors import MachineError

PR_SET_PDEATHSIG = 1
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: the terminal was closed

_interruptions: list[int] = []  # signals that asked this process to end
_heirs: list[int] = []  # a child that is told instead, while this process waits for it


def heed_interruptions(once: bool = False) -> None:
    """Have Ctrl-C, SIGTERM and the end of the terminal raise KeyboardInterrupt, and be remembered.

    What is ignored stays so: under nohup, the end of the terminal.

    With `once` only the first of them does: a child that tidies up may be told by the terminal and by its parent.
    A library may turn that exception into one of its own (DuckDB: "Query interrupted"), which must not pass for
    a failure of what is measured.
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
    """While this lasts, interruptions are passed on to `child`, and raise nothing here: it is to end first."""
    _heirs.append(child)
    try:
        yield
    finally:
        _heirs.remove(child)


def was_interrupted() -> bool:
    return bool(_interruptions)


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to send this process `how` when the thread that started it ends.

    `parent` is the process id that the caller takes for its parent: if it is gone already, we go at once.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(how), 0, 0, 0) != 0:
        raise MachineError(f"the kernel refused a parent-death signal: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        os.kill(os.getpid(), how)


def say(words: str) -> None:
    """Print a line to the terminal, which may be gone: that is what interrupts, then."""
    with suppress(OSError):
        print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    # python -m tidemark.lifetime PARENT COMMAND...: become COMMAND, but never outlive the process PARENT.
    die_with_parent(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
