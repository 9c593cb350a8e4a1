"""A client bound to processors is bound with all its threads, including those that it starts later."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

BOUND = """
import json, os, threading, time
from tidemark.machine.processes import bind
stop = threading.Event()
threading.Thread(target=stop.wait).start()
bind(1)
threading.Thread(target=stop.wait).start()
print(json.dumps([len(os.sched_getaffinity(int(each))) for each in os.listdir("/proc/self/task")]))
bind(1)
stop.set()
"""


def test_all_threads_are_bound_before_and_after() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine gives one processor anyway")
    done = subprocess.run([sys.executable, "-c", BOUND], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [1, 1, 1]
