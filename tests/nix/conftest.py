"""The flake is verified beside the other tests: it takes eight minutes, most of them on one processor of two."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OF_THE_FLAKE = "test_the_flake"
LET_GO_S = 30


class Verification:
    """`verify.sh` at work; what it says is kept until it is asked for."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Safe to call twice."""
        if self._process is None:
            self._process = subprocess.Popen(
                [HERE / "verify.sh"],
                cwd=HERE.parents[1],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        self.begin()
        assert self._process is not None
        code = self._process.wait()
        self._said.seek(0)
        return code, self._said.read().decode(errors="replace")

    def stop(self) -> None:
        """End it and what it started, where nobody waited for it."""
        if self._process is not None and self._process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(self._process.pid, number)
                    self._process.wait(LET_GO_S)
        self._said.close()


VERIFICATION = pytest.StashKey[Verification]()


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[VERIFICATION] = made = Verification()
    asked = any(item.name == OF_THE_FLAKE for item in session.items) and not session.config.option.collectonly
    if asked and shutil.which("nix") and not sys.prefix.startswith("/nix/store"):
        made.begin()


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = session.config.stash.get(VERIFICATION, None)
    if found is not None:
        found.stop()


@pytest.fixture
def verification(request: pytest.FixtureRequest) -> Verification:
    return request.config.stash[VERIFICATION]
