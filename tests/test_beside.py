"""What runs beside other tests is waited for, tells how it ended, and ends with them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.beside import ENGINES, REST, SERVICES, STACKS, Beside


def test_commands_run_in_turn_and_tell_how_they_ended(tmp_path: Path) -> None:
    made = Beside(tmp_path, {
        "one": ["/bin/sh", "-c", "echo first; touch one; exit 3"],
        "two": ["/bin/sh", "-c", "test -e one && echo second"],
    })  # fmt: skip
    made.begin()
    assert made.end("two") == (0, "second\n")
    assert made.end("one") == (3, "first\n") and 0 < made.seconds("one") < 60
    made.stop()


def test_what_nobody_waits_for_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    started = "import subprocess, time; subprocess.Popen(['sleep', '97']); open('there', 'w'); time.sleep(97)"
    made = Beside(tmp_path, {"one": [sys.executable, "-c", started], "never": ["touch", "never"]})
    made.begin()
    while not (tmp_path / "there").exists():
        time.sleep(0.01)
    made.stop()
    left = [each for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [])[:2] == ["sleep", "97"]]
    assert not left and not (tmp_path / "never").exists()


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", [REST, STACKS, ENGINES, SERVICES])
def test_what_ran_beside_passed(name: str, beside: Beside, capfd: pytest.CaptureFixture[str]) -> None:
    if name not in beside:
        pytest.skip("all tests run in one process")
    code, said = beside.end(name)
    with capfd.disabled():
        print(f"\n{said}beside the others, '{name}' took {beside.seconds(name):.0f} s", flush=True)
    assert code == 0, "tests that ran beside these failed; what they said is above"
