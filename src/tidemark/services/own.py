"""Servers that only ever run here, for one series, and stand on no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service


class OwnServer(Service):
    """Takes `(workspace, directory)`: no setting decides anything about it, and nobody gives the address of another."""

    @classmethod
    def from_config(
        cls,
        workspace: Workspace,
        directory: Path,
        config: ServicesConfig,
        running: Mapping[type[Service], Service],
    ) -> Self:
        del config, running
        return cls(workspace, directory)

    @property
    def is_external(self) -> bool:
        return False

    def _reach(self) -> None:
        self.check()
