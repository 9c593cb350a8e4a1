"""Differences between PyIceberg's releases, as far as the systems here depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from tidemark.systems import releases

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class Release(releases.Release):
    """Behaviour of a PyIceberg release."""

    retries_commits: bool  # those that lost to another writer's
    shares_expiring_snapshots: bool  # one set for all tables of the process, which only grows
    asks_for_namespaces: bool  # can check that one exists without its properties


# Oldest first.
RELEASES = (
    Release((0, 10, 0), retries_commits=False, shares_expiring_snapshots=True, asks_for_namespaces=False),
    Release((0, 12, 0), retries_commits=True, shares_expiring_snapshots=False, asks_for_namespaces=True),
)


FILE_IO, BY_PYARROW = "py-io-impl", "pyiceberg.io.pyarrow.PyArrowFileIO"
PYICEBERG = releases.Client("PyIceberg", "pyiceberg", RELEASES)


def catalog(access: Mapping[str, str]) -> RestCatalog:
    """Return a new client of the REST catalog that `access` describes with PyIceberg's own keys."""
    from pyiceberg.catalog.rest import RestCatalog

    made = RestCatalog("tidemark", **access)
    if FILE_IO in access:  # also where the server names another one, which need not be here
        own, load = {FILE_IO: access[FILE_IO]}, made._load_file_io
        cast(Any, made)._load_file_io = lambda properties, location=None: load({**properties, **own}, location)
    return made


def before_commits(table: Table, do: Callable[[], None]) -> None:
    """Make `table` call `do` before each further commit request that goes through it, including retries."""
    catalog = cast(Any, table.catalog)
    commit = catalog.commit_table

    def after(*given: Any, **named: Any) -> Any:
        do()
        return commit(*given, **named)

    catalog.commit_table = after


def expire_snapshots(table: Table) -> None:
    """Expire all snapshots but the current one, in one commit. The files that only they need are not removed."""
    expiry = table.maintenance.expire_snapshots()
    if PYICEBERG.release().shares_expiring_snapshots:
        expiry._snapshot_ids_to_expire = set()
    expiry.older_than(datetime.now(UTC)).commit()


def reader_name() -> str:
    """Return the name of the oracle's reader that uses PyIceberg."""
    return f"{PYICEBERG.name} {PYICEBERG.installed()}"
