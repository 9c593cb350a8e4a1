"""One measurement at a time on the whole machine, whichever folder or account it is started from."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A name in the kernel's table of local sockets, where no file can be left behind: it is free again with its holder.
NAME = "\0tidemark-measures"
LOOK_SECONDS = 0.2


@contextmanager
def alone(show: Callable[[str], None] = lambda _what: None) -> Iterator[None]:
    """Wait until nobody else measures on this machine, and keep others waiting; released however we end."""
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
