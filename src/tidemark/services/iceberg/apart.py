"""Catalog servers whose PostgreSQL is a given time away, or isolates transactions in another way than by default."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service
from tidemark.services.delay.proxy import DelayProxy, delayed
from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.services.postgres import READ_COMMITTED, Postgres


@cache
def set_apart(kind: type[RestCatalog], rtt_ms: int, isolation: str) -> type[RestCatalog]:
    """`kind`, its database behind a proxy at `rtt_ms` > 0; `kind` itself where nothing differs, and always the same.

    `isolation` is what transactions begin with that name no other level.
    """
    if not rtt_ms and isolation == READ_COMMITTED:
        return kind
    line = delayed(Postgres, rtt_ms) if rtt_ms else None

    differs = [f"{rtt_ms}ms"] * bool(rtt_ms) + [isolation] * (isolation != READ_COMMITTED)

    class Apart(kind):  # type: ignore[misc, valid-type]
        name: ClassVar[str] = "-".join([kind.name, *differs]).replace(" ", "-")
        needs: ClassVar[tuple[type[Service], ...]] = (*kind.needs, *((line,) if line else ()))

        @classmethod
        def from_config(
            cls,
            workspace: Workspace,
            directory: Path,
            config: ServicesConfig,
            running: Mapping[type[Service], Service],
        ) -> Self:
            made: Self = super().from_config(workspace, directory, config, running)
            made.isolation = isolation
            if line is not None:
                proxy = running[line]
                assert isinstance(proxy, DelayProxy)
                made.line = proxy
            return made

    return Apart
