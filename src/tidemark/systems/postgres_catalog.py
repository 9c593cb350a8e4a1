"""Durability of a commit in a PostgreSQL catalog, by the server's own settings, whether or not Tidemark started it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemark.errors import SystemFailure
from tidemark.services.postgres import Postgres
from tidemark.systems.base import FULL, Durability, PerWrite

# Syncs of its sessions; more than one if the server commits something itself in the meantime, for example in a vacuum.
POSTGRES_COMMIT = PerWrite(1, 1.4)
NOT_OURS = "the PostgreSQL is not one that Tidemark started, and was not traced: its settings say what it does"


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the server's settings under the names that they have among a system's settings."""
    return {f"PostgreSQL {name}": value for name, value in settings.items()}


def weakened(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that let a commit be acknowledged before it is on the disk."""
    return {name: value for name in ("fsync", "synchronous_commit") if (value := settings[name]) == "off"}


def promised(durability: Durability, level: str, postgres: Postgres, database: str) -> Durability:
    """Return `durability` as it is in this `database`; the argument assumes a PostgreSQL with its own defaults.

    Raise SystemFailure if the `level` is full and the server does not flush its commits.
    """
    off = weakened(postgres.durability_settings(database))
    if off:
        said = " and ".join(f"{name} = {value}" for name, value in off.items())
        if level == FULL:
            raise SystemFailure(
                f"durability: full cannot be had: this PostgreSQL has {said}. Set it to on there, or leave durability "
                "at default."
            )
        return Durability(
            f"PostgreSQL acknowledges a commit before it is on the disk ({said}), and nothing else is flushed.",
            counted=None,
            remark="the server's settings, read back",
        )
    return replace(durability, counted=None, remark=NOT_OURS) if postgres.is_external else durability
