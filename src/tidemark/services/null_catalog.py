"""A server that answers every request immediately and stores nothing: measures the load generator's own cost."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tidemark.services.http import fetch
from tidemark.services.own import OwnProgram

PROGRAM = "tidemark.services.programs.answer"


class NullCatalog(OwnProgram):
    """Server on a loopback port chosen by the kernel."""

    name: ClassVar[str] = "null-catalog"
    title: ClassVar[str] = "Server that answers at once"
    program: ClassVar[Path] = Path(__file__).parent / "programs" / f"{PROGRAM.rpartition('.')[2]}.py"
    port_line: ClassVar[str] = "answers on port: "

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _reach(self) -> None:
        fetch(f"{self.uri}/v1/config", 10)
