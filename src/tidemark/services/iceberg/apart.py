"""Catalog servers whose PostgreSQL is a given round trip away or has another default isolation level."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Self

from tidemark.services.base import Service, Surroundings
from tidemark.services.delay.proxy import delayed
from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.services.postgres import READ_COMMITTED, Postgres


@cache
def set_apart(kind: type[RestCatalog], rtt_ms: int, isolation: str) -> type[RestCatalog]:
    """Return `kind` with its database behind a proxy of `rtt_ms` > 0; `kind` itself if nothing differs. Cached.

    `isolation` is the level of transactions that specify none.
    """
    if not rtt_ms and isolation == READ_COMMITTED:
        return kind
    line = delayed(Postgres, rtt_ms) if rtt_ms else None

    differs = [f"{rtt_ms}ms"] * bool(rtt_ms) + [isolation] * (isolation != READ_COMMITTED)

    class Apart(kind):  # type: ignore[misc, valid-type]
        name: ClassVar[str] = "-".join([kind.name, *differs]).replace(" ", "-")
        needs: ClassVar[tuple[type[Service], ...]] = (*kind.needs, *((line,) if line else ()))

        @classmethod
        def from_config(cls, around: Surroundings) -> Self:
            made: Self = super().from_config(around)
            made.isolation = isolation
            if line is not None:
                made.line = around.server(line)
            return made

    return Apart
