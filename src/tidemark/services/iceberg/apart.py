"""Catalog servers whose PostgreSQL is a given time away, or isolates transactions in another way than by default."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Self

from tidemark.services.base import Service, Surroundings
from tidemark.services.delay.proxy import delayed
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
        def from_config(cls, around: Surroundings) -> Self:
            made: Self = super().from_config(around)
            made.isolation = isolation
            if line is not None:
                made.line = around.server(line)
            return made

    return Apart
