"""Lock that allows one measurement at a time on the machine, from any folder or account."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# An abstract socket name: no file can be left behind, and the kernel releases the name when its holder ends.
NAME = "\0tidemark-measures"
LOOK_SECONDS = 0.2


@contextmanager
def hold_machine(show: Callable[[str], None] = lambda _what: None) -> Iterator[None]:
    """Hold the machine's measurement lock, waiting for it if necessary; released however this process ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        waiting = False
        while True:
            try:
                holder.bind(NAME)
                break
            except OSError:
                if not waiting:
                    show("waiting for another measurement on this machine to end")
                waiting = True
                time.sleep(LOOK_SECONDS)
        yield
