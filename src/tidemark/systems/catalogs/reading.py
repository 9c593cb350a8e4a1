"""Readers of a catalog server: PyIceberg where possible, plain HTTP otherwise; and a catalog that keeps nothing."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.services.base import Service
from tidemark.services.http import fetch
from tidemark.services.iceberg.rest import OAuth
from tidemark.services.own import NullCatalog
from tidemark.systems.base import Durability
from tidemark.systems.catalogs.base import CatalogReader, CatalogSystem, Endpoint, Entity, Kept, Names

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog


TIMEOUT_S = 30
NOT_THERE = 404


class PyIcebergReader(CatalogReader):
    """Reader that lists and loads with PyIceberg; it cannot load views, which are requested over plain HTTP."""

    def __init__(self, endpoint: Endpoint, uri: str, warehouse: str, oauth: OAuth | None = None) -> None:
        from pyiceberg.catalog.rest import RestCatalog

        self._endpoint = endpoint
        given = {"uri": uri, **({"warehouse": warehouse} if warehouse else {})}
        if oauth is not None:
            given |= {"credential": f"{oauth.client_id}:{oauth.client_secret}", "scope": oauth.scope}
            given["oauth2-server-uri"] = oauth.token_uri
        self._catalog: RestCatalog = RestCatalog("reader", **given)

    def namespaces(self, path: Names) -> list[str]:
        return [found[-1] for found in self._catalog.list_namespaces(tuple(path))]

    def names(self, entity: Entity, path: Names) -> list[str]:
        listing = self._catalog.list_tables if entity is Entity.TABLE else self._catalog.list_views
        return [found[-1] for found in listing(tuple(path))]

    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if entity is Entity.VIEW:
            return self._view(path, name)
        try:
            if entity is Entity.NAMESPACE:
                return Kept(dict(self._catalog.load_namespace_properties(tuple(path))))
            table = self._catalog.load_table((*path, name))
            parents = {each.snapshot_id: each.parent_snapshot_id for each in table.metadata.snapshots}
            snapshots = history(parents, table.metadata.current_snapshot_id)
            return Kept(dict(table.properties), tuple(table.schema().column_names), snapshots)
        except (NoSuchNamespaceError, NoSuchTableError):
            return None

    def _view(self, path: Names, name: str) -> Kept | None:
        try:
            url = f"{self._endpoint.base}{self._endpoint.namespaces(path)}/views/{name}"
            asked = urllib.request.Request(url, headers=dict(self._endpoint.headers))
            found: dict[str, Any] = json.loads(fetch(asked, TIMEOUT_S))["metadata"]
        except urllib.error.HTTPError as error:
            if error.code == NOT_THERE:
                return None
            raise
        version = next(each for each in found["versions"] if each["version-id"] == found["current-version-id"])
        schema = next(each for each in found["schemas"] if each["schema-id"] == version["schema-id"])
        return Kept(found.get("properties", {}), tuple(field["name"] for field in schema["fields"]))


def history(parents: Mapping[int, int | None], at: int | None) -> tuple[str, ...]:
    """Return the snapshot ids from `at`, the head of the main branch, to the first; `parents` is by snapshot id."""
    found: list[str] = []
    while at is not None and at in parents and len(found) <= len(parents):
        found.append(str(at))
        at = parents[at]
    return tuple(found)


class NullCatalogSystem(CatalogSystem):
    name = "null-catalog"
    title = "Null catalog"
    format = "none"
    client = "HTTP"
    catalog = "none"
    server = "none"
    backend = "none"
    stores = False
    needs: ClassVar[tuple[type[Service], ...]] = (NullCatalog,)
    notes = ("answers at once and keeps nothing: measures the load generator",)
    durability = Durability("nothing is stored")

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.context.server(NullCatalog).uri)

    def open_reader(self) -> CatalogReader:
        raise NotImplementedError(self.reader)

    @property
    def reader(self) -> str:
        return "none: this server keeps nothing"
