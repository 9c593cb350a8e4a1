"""Catalog server that answers at once: measuring it gives the overhead of the load generator."""

from __future__ import annotations

from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.null_catalog import NullCatalog
from tidemark.systems.base import Durability
from tidemark.systems.catalogs.kind import CatalogReader, CatalogSystem, Endpoint
from tidemark.systems.catalogs.reading import NullReader


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
    capabilities = frozenset()
    notes = ("answers at once and keeps nothing: measures the load generator",)
    durability = Durability("nothing is stored")

    @property
    def endpoint(self) -> Endpoint:
        service = self.context.services[NullCatalog]
        assert isinstance(service, NullCatalog)
        return Endpoint(service.uri)

    def open_reader(self) -> CatalogReader:
        return NullReader()

    @property
    def reader(self) -> str:
        return "none: this server keeps nothing"
