"""Orders to the program that generates data and verifies tables, from the side of the measuring process."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.code import PACKAGE
from tidemark.errors import MachineError
from tidemark.paths import Workspace, exclusive, private_directory
from tidemark.services.programs.process import launched, server_environment, tail
from tidemark.software.tools import tool_python

TOOL = "lhbench"
PROGRAM = "tidemark.studies.lhbench.verifier.program"
DONE = "done.json"  # in a folder of data, once it is complete


@dataclass(frozen=True, slots=True)
class Verifier:
    """The verifier's program: the interpreter of the tool's environment, and a folder for orders and logs."""

    python: Path
    folder: Path

    @classmethod
    def of(cls, workspace: Workspace, folder: Path) -> Verifier:
        return cls(tool_python(TOOL, workspace), private_directory(folder))

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return the program's answer to an order; MachineError, with the end of its log, if it fails."""
        asked, answered, log = (self.folder / name for name in ("order.json", "answer.json", "judge.log"))
        asked.write_text(json.dumps(order))
        answered.unlink(missing_ok=True)
        environment = server_environment(HOME=str(self.folder), PYTHONPATH=str(PACKAGE.parent))
        with log.open("ab") as file:
            done = subprocess.run(
                launched([self.python, "-m", PROGRAM, asked, answered]),
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, cwd=self.folder, check=False,
            )  # fmt: skip
        if done.returncode or not answered.exists():
            raise MachineError(f"'{order['do']}' of {PROGRAM} failed ({done.returncode}). Its log ends:\n{tail(log)}")
        found: dict[str, Any] = json.loads(answered.read_text())
        return found

    def kept(self, folder: Path, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to `order`, which generates the data in `folder` once, completely or not at all."""
        with exclusive(folder.with_name(f"{folder.name}.lock")):
            done = folder / DONE
            if not done.exists():
                beside = folder.with_name(f"{folder.name}.part")
                shutil.rmtree(beside, ignore_errors=True)
                private_directory(beside)
                answer = self.ask({**order, "folder": str(beside)})
                (beside / DONE).write_text(json.dumps(answer))
                shutil.rmtree(folder, ignore_errors=True)
                beside.rename(folder)
            found: dict[str, Any] = json.loads(done.read_text())
            return found
