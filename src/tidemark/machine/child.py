"""Execution of work in a child process, so that this process never has the work's libraries in memory."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from tidemark.errors import TidemarkError
from tidemark.process_lifetime import INTERRUPTIONS, die_with_parent, heed_interruptions, tell_instead, was_interrupted


def in_a_child(work: Callable[[], None]) -> None:
    """Run `work` in a child process; raise the TidemarkError or KeyboardInterrupt that ended it.

    The child cannot outlive this process, and is sent its interruptions and awaited: it may have servers to stop.
    """
    parent = os.getpid()
    reader, writer = os.pipe()
    sys.stderr.flush()
    sys.stdout.flush()
    # Block interruptions until both processes have set up their handling.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work(work, parent, writer, before)
    os.close(writer)
    with tell_instead(child), os.fdopen(reader, "rb") as pipe:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        said = pipe.read()
        _, status = os.waitpid(child, 0)
    if was_interrupted():
        raise KeyboardInterrupt
    if not said:
        how = how_ended(os.waitstatus_to_exitcode(status))
        raise TidemarkError(f"the process that measures ended without a word ({how})")
    error = pickle.loads(said)
    if error is not None:
        raise error


def _work(work: Callable[[], None], parent: int, writer: int, mask: set[int]) -> None:
    """Run `work` in the child and exit without returning: the callers on the stack belong to the parent."""
    error: BaseException | None = None
    try:
        die_with_parent(parent)
        heed_interruptions(once=True)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        work()
    except BaseException as failure:
        if was_interrupted() or isinstance(failure, KeyboardInterrupt):
            error = KeyboardInterrupt()
        elif isinstance(failure, TidemarkError):
            error = TidemarkError(str(failure))
            error.exit_code = failure.exit_code  # type: ignore[misc]
        else:
            error = TidemarkError(f"{type(failure).__name__}: {failure}")
    finally:
        try:
            with suppress(OSError):  # a full disk or a closed pipe
                sys.stderr.flush()
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(error, pipe)
        finally:
            os._exit(0)


def how_ended(status: int) -> str:
    """Return in words the exit status of a process, which is negative if a signal killed it."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
