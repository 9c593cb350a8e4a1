"""Work spread over the cores of this machine, by processes that end with the one that they work for."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

FEWEST = 8  # pieces of work that are worth the start of other processes


@contextmanager
def spread[Item, Result](
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    prepare: Callable[..., None],
    given: tuple[object, ...],
    modules: Sequence[str],
) -> Iterator[Iterator[Result]]:
    """What `work` makes of each of `items`, in their order, by as many processes as there are cores for us.

    `prepare(*given)` is called once in each of them, before any work; `modules` are imported once for all. With one
    core, or with few items, all happens in this process.
    """
    cores = len(os.sched_getaffinity(0))
    if cores < 2 or len(items) < FEWEST:
        prepare(*given)
        yield map(work, items)
        return
    # Not by a plain fork: libraries that are loaded here have threads, and locks that these may hold.
    context = get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    pool = ProcessPoolExecutor(cores, mp_context=context, initializer=_begin, initargs=(prepare, given))
    try:
        yield pool.map(work, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(prepare: Callable[..., None], given: tuple[object, ...]) -> None:
    """Ctrl-C reaches all processes of a terminal; the one that we work for heeds it for us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_ours, name="lifetime", daemon=True).start()
    prepare(*given)


def _end_with_ours() -> None:
    """End when the process that we work for does, which no signal tells: what forks us is another one.

    That one, and what clears up semaphores, wait for the last of the processes here.
    """
    ours = parent_process()
    assert ours is not None
    ours.join()
    os.kill(os.getpid(), signal.SIGKILL)
