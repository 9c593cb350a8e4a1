"""Fixtures for complete pipelines, each in a separate workspace; none of their processes outlives the test.

Pipelines of one machine wait for each other, by a name that is one in a network. Those of different test processes run
at the same time: each has a network of its own, where root may make one. No test here looks at times.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from .sandbox import Sandbox

MakeSandbox = Callable[..., Sandbox]
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1  # of a network interface


@pytest.fixture(scope="module", autouse=True)
def separate_network() -> Iterator[None]:
    """Give this process, and those that it starts, a network with nothing but its loopback interface, if possible."""
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        os.unshare(os.CLONE_NEWNET)
    except OSError:  # not root, or a container that may not
        os.close(before)
        yield
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        flags = struct.unpack("16sH", fcntl.ioctl(control, GET_FLAGS, struct.pack("16sH", b"lo", 0)))[1]
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH", b"lo", flags | UP))
    yield
    os.setns(before, os.CLONE_NEWNET)
    os.close(before)


@pytest.fixture(scope="module")
def make_sandbox(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[MakeSandbox]:
    """Yield a function that makes a workspace with a configuration; processes left in it are killed at the end."""
    made: list[Sandbox] = []

    def make(config: dict[str, Any], jars: Path = cache) -> Sandbox:
        made.append(Sandbox(tmp_path_factory.mktemp("pipeline"), jars, config))
        return made[-1]

    yield make
    for sandbox in made:
        for process in sandbox.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
