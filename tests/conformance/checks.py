"""Checks that several files of the conformance suite share."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tidemark.systems.base import Capability, System

from .trips import YELLOW, assert_same_rows, stored_schema

OpenTable = Callable[..., System]


def reads(system: System) -> bool:
    return Capability.READ_BACK in system.capabilities


def holds_infinity(kind: type[System]) -> bool:
    return Capability.INFINITY in kind.capabilities | kind.of_release()


def assert_holds(system: System, written: list[pa.Table], schema: pa.Schema = YELLOW) -> None:
    """Check that an independent reader sees exactly the written rows; a system that stores nothing shows none."""
    if reads(system):
        given = pa.concat_tables(written)
        assert_same_rows(system.read(), given, stored_schema(system, schema))
        assert sorted(system.ids().to_pylist()) == sorted(given.column("id").to_pylist())
    else:
        assert len(system.ids()) == 0


def write_all(system: System, tables: list[pa.Table], schema: pa.Schema = YELLOW) -> list[pa.Table]:
    system.create(schema)
    for rows in tables:
        system.write(rows)
    return tables
