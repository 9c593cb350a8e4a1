"""Removal of objects that an earlier, killed pipeline left on external servers."""

from __future__ import annotations

from typing import Any

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services import outside, registry
from tidemark.services.base import ServiceContext
from tidemark.services.outside import Made


def drop_leftovers(workspace: Workspace) -> None:
    """Drop objects recorded in ledgers of dead processes; report failures, whose entries stay recorded."""

    def drop(made: Made) -> None:
        keys: dict[str, Any] = {**made.address}
        try:
            config = ServicesConfig(**keys)
        except TypeError as error:
            raise ServiceError(
                f"an earlier version of Tidemark noted its server as {keys}; drop it there, and delete the ledger"
            ) from error
        around = ServiceContext(workspace, workspace.work / made.service, config)
        registry()[made.service].from_config(around).drop(made.name)

    outside.drop_leftovers(workspace, drop)
