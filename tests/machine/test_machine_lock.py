"""One measurement at a time on a machine, whatever folder it is started in, and however the one before ended."""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path

from tidemark.machine.processes import hold_machine

HOLD = """
from tidemark.machine.processes import hold_machine
with hold_machine(lambda what: print(what, flush=True)):
    print("held", flush=True)
    input()
"""


def test_second_measurement_waits_and_a_killed_one_does_not_block(tmp_path: Path) -> None:
    said: list[str] = []
    with hold_machine():
        second = subprocess.Popen(
            [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
        )
        assert second.stdout is not None
        assert second.stdout.readline() == b"waiting for another measurement on this machine to end\n"
        assert not select.select([second.stdout], [], [], 1.5)[0], "it goes on waiting"
    assert second.stdout.readline() == b"held\n"
    second.kill()
    second.communicate()
    with hold_machine(said.append):
        pass
    assert said == []
