"""Description of the system in run.json, and the versions of its libraries."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING

from tidemark.runs.manifest import SystemPart
from tidemark.runs.serde import pairs
from tidemark.systems.base import System, Variant

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def client_versions(system: type[System]) -> dict[str, str]:
    """Return the versions of the client's libraries, read once per process: some require starting a client."""
    return dict(system.versions())


def system_part(variant: Variant, system: System, schema: pa.Schema) -> SystemPart:
    return SystemPart(
        name=variant.name,
        base=system.name,
        title=variant.title,
        format=system.format,
        client=system.client,
        catalog=system.catalog,
        in_thesis=system.in_thesis,
        notes=tuple(system.notes),
        options=pairs(asdict(variant.options)),
        settings=pairs(system.settings()),
        capabilities=tuple(sorted(system.capabilities)),
        durability=system.durability.summary,
        durability_level=system.durability_level,
        durability_source=system.durability.source,
        type_mappings=tuple(system.type_mappings(schema)),
    )
