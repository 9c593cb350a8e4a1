"""Common base of pipelines into Iceberg, for all engines: a table in the REST catalog, and access to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.systems.base import Context, Durability, Variant
from tidemark.systems.iceberg.catalog import REFERENCE, as_it_is
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg, PyIcebergOptions
from tidemark.systems.pipelines.kind import PipelineSystem

NOTHING_ACKNOWLEDGED = "a pipeline acknowledges nothing"


class IntoIceberg(PipelineSystem):
    """Pipeline into a table that PyIceberg creates and reads; the catalog is the reference server or the user's own."""

    format: ClassVar[str] = "Iceberg"
    catalog: str = REFERENCE.label
    durability: Durability = Durability(
        "The catalog's database flushes its log before a commit is acknowledged; files, those of checkpoints among "
        "them, are left to the page cache.",
        counted=None,
        remark=NOTHING_ACKNOWLEDGED,
    )

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._catalog = cast(RestCatalog, context.services[REFERENCE.server])
        found = as_it_is(REFERENCE, self._catalog)
        if found is not REFERENCE:
            self.catalog, self.durability = found.label, replace(found.durability, remark=NOTHING_ACKNOWLEDGED)
            self.notes = (*found.notes, *(note for note in self.notes if note not in REFERENCE.notes))

    @classmethod
    def destination(cls, options: Any) -> Variant:
        del options
        return Variant(cls.name, IcebergPyIceberg, PyIcebergOptions(), cls.title)

    def _reached(self) -> Mapping[str, str]:
        """Return the properties that connect a client to the catalog; a user's own one may have a single warehouse."""
        named = {"warehouse": self._catalog.warehouse} if self._catalog.warehouse else {}
        return {"uri": self._catalog.uri, **named}
