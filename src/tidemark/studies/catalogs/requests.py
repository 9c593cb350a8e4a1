"""Requests of a catalog by Iceberg's REST protocol: their kinds, their targets, and their form on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tidemark.studies.catalogs.tree import COLUMNS, PROPERTIES
from tidemark.systems.catalogs.base import Endpoint, Entity

FILL = "@@FILL@@"  # placeholder in a body for the part that differs between requests
CREATE, READ, UPDATE, APPEND, RENAME, DROP = "create", "read", "update", "append", "rename", "drop"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [{"id": number, "name": name, "type": "int", "required": True} for number, name in enumerate(COLUMNS, 1)],
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of request: its action (`act`) and target, its HTTP method, and its body without the part that differs."""

    name: str
    act: str
    entity: Entity
    method: str
    place: str  # after the namespace's address, or "" for the namespace itself; {name} is the entity's
    body: str = ""


def _set(update: str) -> str:
    return '{"requirements": [], "updates": [{"action": "set-properties", "updates": %s}]}' % update  # noqa: UP031


_TABLE = {"name": FILL, "schema": SCHEMA, "stage-create": False, "properties": PROPERTIES}
_VERSION: dict[str, Any] = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {"engine-name": "spark"},
    "representations": [{"type": "sql", "sql": f"SELECT * FROM {FILL}", "dialect": "spark"}],
    "default-namespace": [],
}
_VIEW = {"name": FILL, "schema": SCHEMA, "view-version": _VERSION, "properties": PROPERTIES}
_ONE = '{"%s": "1"}' % FILL  # noqa: UP031
N, T, V = Entity.NAMESPACE, Entity.TABLE, Entity.VIEW
CREATIONS = (
    Kind("create namespace", CREATE, N, "POST", "", f'{{"namespace": {FILL}, "properties": {json.dumps(PROPERTIES)}}}'),
    Kind("create table", CREATE, T, "POST", "/tables", json.dumps(_TABLE)),
    Kind("create view", CREATE, V, "POST", "/views", json.dumps(_VIEW)),
)
READS = (
    Kind("list namespaces", READ, N, "GET", "?parent"),
    Kind("namespace exists", READ, N, "HEAD", ""),
    Kind("get namespace", READ, N, "GET", ""),
    Kind("list tables", READ, T, "GET", "/tables"),
    Kind("table exists", READ, T, "HEAD", "/tables/{name}"),
    Kind("get table", READ, T, "GET", "/tables/{name}"),
    Kind("list views", READ, V, "GET", "/views"),
    Kind("view exists", READ, V, "HEAD", "/views/{name}"),
    Kind("get view", READ, V, "GET", "/views/{name}"),
)
UPDATES = (
    Kind("update namespace", UPDATE, N, "POST", "/properties", '{"removals": [], "updates": %s}' % _ONE),  # noqa: UP031
    Kind("update table", UPDATE, T, "POST", "/tables/{name}", _set(_ONE)),
    Kind("update view", UPDATE, V, "POST", "/views/{name}", _set(_ONE)),
)
# A commit as a stream writer makes it, of a snapshot whose files are never read: the table is read, and the snapshot is
# added on the condition that the branch has not moved; if it has, all of it is repeated. The load generator fills in
# the state that it has read.
COMMIT = {
    "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
    "updates": [
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 0,
                "sequence-number": 0,
                "timestamp-ms": 0,
                "manifest-list": "file:///nobody-reads-this.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            },
        },
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 0},
    ],
}
MOST_ATTEMPTS = 50  # of one append
MOST_RETRIES = 5  # in a ramp of users, of a request that the server failed (500)
APPENDING = Kind("append", APPEND, T, APPEND.upper(), "/tables/{name}", json.dumps(COMMIT))
# The same commit through the endpoint for changes to several tables at once, which some clients use for all commits.
TRANSACTION = "TRANSACTION"
TRANSACTING = Kind("append by transaction", APPEND, T, TRANSACTION, "/tables/{name}", json.dumps(COMMIT))
RENAMING = Kind("rename table", RENAME, T, "POST", "/tables/rename", FILL)
DROPPING = Kind("drop table", DROP, T, "DELETE", "/tables/{name}")
KINDS = {kind.name: kind for kind in (*CREATIONS, *READS, *UPDATES, APPENDING, TRANSACTING, RENAMING, DROPPING)}


@dataclass(frozen=True, slots=True)
class Request:
    """Request; `key` is the property that an update sets to "1", an appended snapshot's id, or a table's new name."""

    kind: Kind
    path: tuple[str, ...]
    name: str = ""  # of a table or view
    key: str = ""

    def address(self, endpoint: Endpoint) -> str:
        """Return the address, from the server's root."""
        kind = self.kind
        if kind is CREATIONS[0]:
            return endpoint.namespaces()
        if kind.place == "?parent":
            return f"{endpoint.namespaces()}?parent={endpoint.separator.join(self.path)}"
        if kind is RENAMING:
            return endpoint.prefix + kind.place
        return endpoint.namespaces(self.path) + kind.place.format(name=self.name)

    @property
    def fill(self) -> str:
        """Text that replaces FILL in the body."""
        if self.kind is CREATIONS[0]:
            return json.dumps(self.path)
        if self.kind is RENAMING:
            both = zip(("source", "destination"), (self.name, self.key), strict=True)
            return json.dumps({which: {"namespace": self.path, "name": name} for which, name in both})
        if self.kind is TRANSACTING:
            return json.dumps({"snapshot": int(self.key), "identifier": {"namespace": self.path, "name": self.name}})
        return self.key if self.kind.act in (UPDATE, APPEND) else self.name
