"""Base of catalogs with Iceberg's REST interface: an address, and a separate database for each catalog."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.parse
import urllib.request
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import psycopg

from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service
from tidemark.services.delay_proxy import Reachable
from tidemark.services.http import fetch
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import give

TIMEOUT_S = 30
NOT_THERE = 404
MOST_ROUNDS = 100  # list requests, for a catalog that returns one page at a time


@dataclass(frozen=True, slots=True)
class OAuth:
    """Client credentials, and the URI that exchanges them for a token."""

    client_id: str
    client_secret: str = field(repr=False)
    token_uri: str
    scope: str


def drop_namespace(uri: str, warehouse: str, oauth: OAuth | None, name: str) -> None:
    """Drop the tables of a namespace, with their files if the catalog supports that, and then the namespace.

    Do nothing if it does not exist. Raise OSError, with the reason, if the catalog refuses a request.
    """
    headers = {} if oauth is None else {"Authorization": f"Bearer {token(oauth)}"}
    base = f"{uri.rstrip('/')}/v1"
    config = _ask("GET", f"{base}/config?{urllib.parse.urlencode({'warehouse': warehouse})}", headers)
    prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix")
    place = f"{base}/{prefix}/namespaces" if prefix else f"{base}/namespaces"
    place += f"/{urllib.parse.quote(name, safe='')}"
    for _ in range(MOST_ROUNDS):
        tables = _ask("GET", f"{place}/tables", headers).get("identifiers", [])
        if not tables:
            break
        for table in tables:
            _drop_table(f"{place}/tables/{urllib.parse.quote(table['name'], safe='')}", headers)
    _ask("DELETE", place, headers)


def _drop_table(place: str, headers: dict[str, str]) -> None:
    try:
        _ask("DELETE", f"{place}?purgeRequested=true", headers)
    except urllib.error.HTTPError:
        _ask("DELETE", place, headers)  # the catalog may be configured never to delete files


def token(oauth: OAuth) -> str:
    """Return the access token for the client credentials."""
    form = {"grant_type": "client_credentials", "client_id": oauth.client_id, "client_secret": oauth.client_secret}
    data = urllib.parse.urlencode({**form, "scope": oauth.scope}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return str(_ask("POST", oauth.token_uri, headers, data).get("access_token", ""))


def _ask(method: str, url: str, headers: dict[str, str], data: bytes | None = None) -> dict[str, Any]:
    """Return the JSON response; an empty dictionary if the resource does not exist."""
    try:
        request = urllib.request.Request(url, data, headers, method=method)
        found = json.loads(fetch(request, TIMEOUT_S) or b"{}")
    except urllib.error.HTTPError as error:
        if error.code != NOT_THERE:
            raise
        return {}
    return found if isinstance(found, dict) else {}


__all__ = ["OAuth", "RestCatalog"]


class RestCatalog(Service):
    """A catalog server over a database in `postgres`, created by its first start and dropped with its data."""

    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    # True if tables may be placed anywhere; otherwise the catalog chooses a location below its warehouse.
    places_are_free: ClassVar[bool] = True

    def __init__(self, workspace: Workspace, directory: Path, postgres: Postgres | None) -> None:
        super().__init__(workspace, directory)
        self._postgres = postgres
        # Unique, because an external PostgreSQL may serve other users.
        self._database = f"tidemark_iceberg_{secrets.token_hex(6)}"
        self._has_database = False
        self.line: Reachable | None = None  # a proxy between the catalog and its database
        self.isolation: str | None = None  # default isolation level of its database; None: PostgreSQL's default

    @property
    @abstractmethod
    def uri(self) -> str:
        """Value of the client option `uri`."""

    @property
    @abstractmethod
    def warehouse(self) -> str:
        """Value of the client option `warehouse`."""

    def host_and_port(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    @property
    def oauth(self) -> OAuth | None:
        """Credentials that clients need; None if the catalog requires none."""
        return None

    def place(self, folder: Path) -> Path:
        """Create the empty `folder` for a client's table; the server writes metadata there under its own account."""
        return give(private_directory(folder))

    def note_namespace(self, name: str) -> None:
        """Record the namespace `name`; call before a client creates it. It is dropped with its tables at the end."""
        self._note(name)

    def drop(self, name: str) -> None:
        drop_namespace(self.uri, self.warehouse, self.oauth, name)
        self._strike(name)

    def database_bytes(self) -> int | None:
        """Return the size of the catalog's database in bytes; None for an external catalog."""
        if self.is_external or self._postgres is None:
            return None
        return self._postgres.database_bytes(self._database)

    @property
    def database(self) -> tuple[Postgres, str] | None:
        """The PostgreSQL server and the name of the catalog's database in it; None for an external catalog."""
        return None if self.is_external or self._postgres is None else (self._postgres, self._database)

    def remove_data(self) -> None:
        super().remove_data()
        if self._has_database and self._postgres is not None:
            # If PostgreSQL is already gone, the database is deleted with its data.
            with suppress(psycopg.OperationalError):
                self._postgres.drop_database(self._database)
            self._has_database = False

    def _own_database(self) -> tuple[str, str, str]:
        """Return the JDBC address of its database, created if necessary, the user and the password."""
        assert self._postgres is not None
        if not self._has_database:
            self._postgres.create_database(self._database)
            self._has_database = True
            if self.isolation is not None:
                self._postgres.isolate(self._database, self.isolation)
        return self._postgres.jdbc(self._database, None if self.line is None else self.line.host_and_port())
