"""Parallel map over the cores of this machine, with worker processes that exit with their parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

FEWEST = 8  # items for which starting worker processes pays off


@contextmanager
def spread[Item, Result](
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    prepare: Callable[..., None],
    given: tuple[object, ...],
    modules: Sequence[str],
) -> Iterator[Iterator[Result]]:
    """Yield the results of `work` on each of `items`, in order, from one worker process per available core.

    `prepare(*given)` is called once in each worker before any item; `modules` are imported once, in the fork server.
    With one core, or with fewer than FEWEST items, everything runs in this process.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < 2 or len(items) < FEWEST:
        prepare(*given)
        yield map(work, items)
        return
    # Not a plain fork: libraries loaded here have threads, which may hold locks at the time of the fork.
    context = get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    pool = ProcessPoolExecutor(cores, mp_context=context, initializer=_begin, initargs=(prepare, given))
    try:
        yield pool.map(work, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(prepare: Callable[..., None], given: tuple[object, ...]) -> None:
    """Initialise a worker. Ctrl-C reaches all processes of a terminal; only the parent process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_ours, name="lifetime", daemon=True).start()
    prepare(*given)


def _end_with_ours() -> None:
    """Exit when the parent process exits. No signal reports that, because the fork server forks the workers.

    The fork server and the semaphore tracker stay until the last worker has exited.
    """
    ours = parent_process()
    assert ours is not None
    ours.join()
    os.kill(os.getpid(), signal.SIGKILL)
