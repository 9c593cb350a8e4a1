"""Differences of PyIceberg's releases, as far as the systems here must know them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from tidemark.systems import releases

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table import Table

CLIENT = "PyIceberg"


@dataclass(frozen=True, slots=True)
class Release(releases.Release):
    """What a PyIceberg release does differently."""

    retries_commits: bool  # that another writer's commit overtook
    shares_expiring_snapshots: bool  # one set for all tables of the process, which is added to for ever
    asks_for_namespaces: bool  # whether one exists, without its properties


# Oldest first.
RELEASES = (
    Release((0, 10, 0), retries_commits=False, shares_expiring_snapshots=True, asks_for_namespaces=False),
    Release((0, 12, 0), retries_commits=True, shares_expiring_snapshots=False, asks_for_namespaces=True),
)


def installed_version() -> str:
    return version("pyiceberg")


def release() -> Release:
    """The rules for the installed PyIceberg."""
    return releases.nearest(CLIENT, RELEASES, installed_version())


def catalog(access: Mapping[str, str]) -> RestCatalog:
    """A new client of the REST catalog that `access` names by PyIceberg's own keys."""
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog("tidemark", **access)


def before_commits(table: Table, do: Callable[[], None]) -> None:
    """From now on call `do` before each request for a commit that is made by way of `table`, those tried again too."""
    catalog = cast(Any, table.catalog)
    commit = catalog.commit_table

    def after(*given: Any, **named: Any) -> Any:
        do()
        return commit(*given, **named)

    catalog.commit_table = after


def expire_snapshots(table: Table) -> None:
    """Let all snapshots but the current one go, in a commit. The files that only they need stay where they are."""
    expiry = table.maintenance.expire_snapshots()
    if release().shares_expiring_snapshots:
        expiry._snapshot_ids_to_expire = set()
    expiry.older_than(datetime.now(UTC)).commit()


def reader_name() -> str:
    """How the oracle's reader is named that reads through PyIceberg."""
    return f"{CLIENT} {installed_version()}"


def remark() -> str | None:
    """What must be said of the installed PyIceberg, if nothing here was written for it."""
    return releases.remark(CLIENT, RELEASES, installed_version())
