"""Project Nessie over each backend that it was found to run on.

A Nessie table lists only its last snapshot. Earlier ones are in the history of Nessie's branch, commit by commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar
from urllib.parse import urlencode

from tidemark.services.http import fetch
from tidemark.services.iceberg.backends import POOL
from tidemark.services.nessie import NessieMemory, NessieMongo, NessiePostgres, NessieRocksDB, SecantusDB
from tidemark.services.postgres import Postgres
from tidemark.systems.base import Durability, Options, PerWrite
from tidemark.systems.catalogs.base import CatalogReader, Entity, Kept, Names
from tidemark.systems.catalogs.databases import COUNTED, PostgresDatabase
from tidemark.systems.catalogs.reading import TIMEOUT_S, PyIcebergReader
from tidemark.systems.catalogs.rest import ON_S3, UNFLUSHED, DistanceOptions, OnS3, OverPostgres

HISTORY = "/api/v2/trees/main/history"
PAGE = 500  # commits per request
NO_SNAPSHOT = -1
ONE_HISTORY = (
    "all tables share one history: commits to different tables contend for its branch, as they do nowhere else here"
)
STAND_IN = (
    "SecantusDB stands in for MongoDB, which is in no package registry: it is young, and written in Python over "
    "WiredTiger; its speed shows nothing about MongoDB's"
)
LAST_ALONE = "a table shows its last snapshot alone; those before are read from that history"
FOUR_WRITES = PerWrite(4, 4.6)  # transactions of the backend per update of a table


class NessieReader(PyIcebergReader):
    """PyIceberg reader that takes a table's snapshots from the branch's history, fetched once at first use."""

    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        kept = super().fetch(entity, path, name)
        if kept is None or not kept.snapshots:
            return kept
        last, known = kept.snapshots[0], self._committed.get((*path, name), ())
        return replace(kept, snapshots=known[known.index(last) :] if last in known else (last,))

    @cached_property
    def _committed(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Snapshots of each table, newest first; commits that repeat one (updates of properties) count once."""
        found: dict[tuple[str, ...], list[int]] = {}
        for commit in self._history():
            for operation in commit.get("operations", []):
                if (snapshot := operation.get("content", {}).get("snapshotId", NO_SNAPSHOT)) != NO_SNAPSHOT:
                    found.setdefault(tuple(operation["key"]["elements"]), []).append(snapshot)
        return {key: tuple(str(snapshot) for snapshot, _ in groupby(snapshots)) for key, snapshots in found.items()}

    def _history(self) -> Iterator[dict[str, Any]]:
        """Yield all commits, newest first."""
        asked = {"fetch": "ALL", "max-records": str(PAGE)}
        while True:
            url = f"{self._endpoint.base}{HISTORY}?{urlencode(asked)}"
            page: dict[str, Any] = json.loads(fetch(url, TIMEOUT_S))
            yield from page["logEntries"]
            if not page.get("hasMore"):
                return
            asked["page-token"] = page["token"]


class NessieSystem(OnS3):
    server = "Nessie"

    def open_reader(self) -> CatalogReader:
        server = self.running
        return NessieReader(self.endpoint, server.uri, server.warehouse)

    @property
    def reader(self) -> str:
        return f"{super().reader}; snapshots from the history of Nessie's branch"


class NessieInMemory(NessieSystem):
    name = "nessie-memory"
    title = "Nessie, in memory"
    catalog = "Nessie, its history in its memory"
    backend = "memory"
    volatile = True
    service = NessieMemory
    notes = (ONE_HISTORY, LAST_ALONE, ON_S3)
    durability = Durability(
        f"no history outlives the server; {UNFLUSHED}", counted=COUNTED, remark="metadata files are written"
    )


class NessieOverRocksDB(NessieSystem):
    name = "nessie-rocksdb"
    title = "Nessie, RocksDB"
    catalog = "Nessie over RocksDB"
    backend = "RocksDB"
    behind = True
    service = NessieRocksDB
    notes = (ONE_HISTORY, LAST_ALONE, ON_S3)
    durability = Durability(
        f"RocksDB writes its log without flushing it: a commit may be lost after it was answered; {UNFLUSHED}",
        counted=COUNTED,
        remark="embedded in the server: its settings cannot be asked from outside",
    )  # fmt: skip


class NessieOverPostgres(OverPostgres, NessieSystem):
    Options: ClassVar[type[Options]] = DistanceOptions  # without isolation, as its transactions may set their own
    name = "nessie-jdbc-postgres"
    title = "Nessie, PostgreSQL"
    catalog = "Nessie over PostgreSQL"
    backend = "PostgreSQL"
    service = NessiePostgres
    notes = (f"at most {POOL} connections from server to database", ONE_HISTORY, LAST_ALONE, ON_S3)
    durability = Durability(
        f"{PostgresDatabase.flushes}, of which an update makes four; {UNFLUSHED}",
        server_syncs_per_write={Postgres: FOUR_WRITES}, counted=COUNTED,
        remark=PostgresDatabase.asked,
    )  # fmt: skip


class NessieOverMongo(NessieSystem):
    name = "nessie-mongo"
    title = "Nessie, SecantusDB for MongoDB"
    catalog = "Nessie over SecantusDB, a stand-in for MongoDB"
    backend = "SecantusDB (not MongoDB)"
    service = NessieMongo
    notes = (STAND_IN, ONE_HISTORY, LAST_ALONE, ON_S3)
    durability = Durability(
        f"SecantusDB flushes its log at each write of Nessie's, of which an update makes four; {UNFLUSHED}",
        server_syncs_per_write={SecantusDB: FOUR_WRITES}, counted=COUNTED,
    )  # fmt: skip
