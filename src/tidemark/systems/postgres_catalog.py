"""Catalogs in PostgreSQL: access without a password in SQL, and durability of a commit by the server's own settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tidemark.errors import SystemFailure
from tidemark.services.postgres import Postgres
from tidemark.systems.base import FULL, Durability, PerWrite

# Syncs of its sessions; more than one if the server commits something itself in the meantime, for example in a vacuum.
POSTGRES_COMMIT = PerWrite(1, 1.4)
NOT_OURS = "the PostgreSQL is not one that Tidemark started, and was not traced: its settings say what it does"


def without_password(dsn: str, folder: Path) -> dict[str, str]:
    """Return the parameters of a connection string; a password is moved to libpq's password file in `folder`.

    Neither SQL nor arguments of programs then contain it. The file replaces one that is there.
    """
    address = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    if (password := address.pop("password", None)) is not None:
        path = folder / ".pgpass"
        escaped = password.replace("\\", "\\\\").replace(":", "\\:")
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"*:*:*:*:{escaped}\n")
        address["passfile"] = str(path)
    return address


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the server's settings under the names that they have among a system's settings."""
    return {f"PostgreSQL {name}": value for name, value in settings.items()}


def promised(durability: Durability, level: str, postgres: Postgres, database: str) -> Durability:
    """Return `durability` as it is in this `database`; the argument assumes a PostgreSQL with its own defaults.

    Raise SystemFailure if the `level` is full and the server does not flush its commits.
    """
    settings = postgres.durability_settings(database)
    # With one of these, a commit is acknowledged before it is on the disk.
    if text := " and ".join(f"{name} = off" for name in ("fsync", "synchronous_commit") if settings[name] == "off"):
        if level == FULL:
            raise SystemFailure(
                f"durability: full cannot be had: this PostgreSQL has {text}. Set it to on there, or leave durability "
                "at default."
            )
        return Durability(
            f"PostgreSQL acknowledges a commit before it is on the disk ({text}), and nothing else is flushed.",
            counted=None,
            remark="the server's settings, read back",
        )
    return replace(durability, counted=None, remark=NOT_OURS) if postgres.is_external else durability
