"""Catalog servers with metadata files in an S3 server, including the reference server."""

from __future__ import annotations

from typing import ClassVar

from tidemark.services.iceberg.backends import POOL
from tidemark.services.iceberg.on_s3 import IcebergRestS3
from tidemark.services.seaweedfs import InBucket
from tidemark.systems.base import PerWrite
from tidemark.systems.catalogs.databases import PostgresDatabase
from tidemark.systems.catalogs.over_postgres import OverPostgres
from tidemark.systems.catalogs.rest import UNCHECKED, ReferenceServer, RestSystem

UNFLUSHED = "SeaweedFS answers before a metadata file is on the disk"
ON_S3 = "metadata files go to an S3 server (SeaweedFS) on loopback and not to local files: no chmod is started for them"


class OnS3(RestSystem):
    """Catalog server whose service has a bucket."""

    def stored(self) -> tuple[int, int, int | None]:
        service = self.running
        assert isinstance(service, InBucket)
        return *service.bucket.stored(), service.database_bytes()


class RestPostgresS3(OnS3, OverPostgres, ReferenceServer):
    name = "rest-jdbc-postgres-s3"
    title = "Reference server, PostgreSQL (S3)"
    catalog = "Iceberg's reference server over PostgreSQL, its files in an S3 server"
    backend = "PostgreSQL"
    service = IcebergRestS3
    starts: ClassVar[PerWrite | None] = None
    notes = (f"{POOL} connections from server to database", UNCHECKED, ON_S3)
    durability = PostgresDatabase.durability(UNFLUSHED)
