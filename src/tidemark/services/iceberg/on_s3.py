"""The reference catalog server with its metadata files on an S3 server, for comparing file stores."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, Self

from tidemark.services.base import Service, Surroundings
from tidemark.services.delay.proxy import DelayProxy, delayed
from tidemark.services.iceberg.backends import IcebergRestPostgres
from tidemark.services.postgres import Postgres
from tidemark.services.seaweedfs import REGION, InBucket, SeaweedFS


class IcebergRestS3(InBucket, IcebergRestPostgres):
    """Reference catalog over PostgreSQL, with metadata files on S3."""

    name: ClassVar[str] = "iceberg-rest-postgres-s3"
    title: ClassVar[str] = "Iceberg REST catalog over PostgreSQL and S3"
    needs: ClassVar[tuple[type[Service], ...]] = (Postgres, SeaweedFS)
    file_io: ClassVar[str] = "org.apache.iceberg.aws.s3.S3FileIO"
    proxy: ClassVar[type[DelayProxy] | None] = None  # between the catalog and its files

    @classmethod
    def from_config(cls, around: Surroundings) -> Self:
        made = super().from_config(around)
        made.store = around.server(SeaweedFS)
        if cls.proxy is not None:
            made.way = around.server(cls.proxy)
        return made

    @property
    def warehouse(self) -> str:
        return f"s3://{self.bucket.name}/warehouse"

    def _backend(self) -> dict[str, str]:
        bucket = self.bucket.by_way_of(self.way)
        return {
            **super()._backend(),
            "CATALOG_S3_ENDPOINT": bucket.endpoint,
            "CATALOG_S3_PATH__STYLE__ACCESS": "true",
            "CATALOG_S3_ACCESS__KEY__ID": bucket.access_key,
            "CATALOG_S3_SECRET__ACCESS__KEY": bucket.secret_key,
            "CATALOG_CLIENT_REGION": REGION,
        }


@cache
def at_distance(milliseconds: float) -> type[IcebergRestS3]:
    """Return the class of a catalog whose file store is a round trip of `milliseconds` away; cached."""

    class Distant(IcebergRestS3):
        name: ClassVar[str] = f"{IcebergRestS3.name}-{milliseconds:g}ms"
        title: ClassVar[str] = f"{IcebergRestS3.title}, {milliseconds:g} ms away"
        proxy: ClassVar[type[DelayProxy] | None] = delayed(SeaweedFS, milliseconds)
        needs: ClassVar[tuple[type[Service], ...]] = (*IcebergRestS3.needs, delayed(SeaweedFS, milliseconds))

    return Distant
