"""Option `storage: s3`: a table's files are in an S3 server and not on the local disk; settings for each client."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from tidemark.services.base import Service, files_below
from tidemark.services.proxies import delayed
from tidemark.services.seaweedfs import REGION, Bucket, SeaweedFS
from tidemark.systems.base import FULL, Durability, Options
from tidemark.systems.duckdb_client import literal, missing_extensions
from tidemark.systems.full_durability import DurabilityOptions, FullDurability

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


LOCAL, S3 = "local", "s3"
BUCKET = "tidemark-tables"  # of all tables on one server, if the client chooses their location
HTTPFS = "httpfs"  # DuckDB's extension for S3
NOTE = "its files lie in an S3 server (SeaweedFS) on loopback"
ANSWERS_EARLY = "SeaweedFS acknowledges files before they are on the disk."
NOT_COUNTED = "strace counts what local files cost; those of an S3 server were not counted"


STORAGE: Mapping[str, Any] = {
    "help": "Where the table's files lie: on the local disk, or in an S3 server (SeaweedFS) that is started for it; an "
    "Iceberg catalog's server has its metadata there as well.",
    "choices": (LOCAL, S3),
}

RTT: Mapping[str, Any] = {
    "help": "Milliseconds of a round trip to that S3 server, by a proxy before it: for clients, and for the Iceberg "
    "catalog's server. 0: the proxy without a delay; left out: no proxy. Catalogs are not moved.",
    "minimum": 0,
}


@dataclass(frozen=True, slots=True)
class StorageOptions(DurabilityOptions):
    storage: str = field(default=LOCAL, metadata=STORAGE)
    rtt_ms: int | None = field(default=None, metadata=RTT)


@dataclass(frozen=True, slots=True)
class Folder:
    """Folder of a bucket, which contains one table."""

    bucket: Bucket  # as writers access it
    near: Bucket  # without a proxy
    name: str  # without leading and trailing slashes

    def for_readers(self) -> Folder:
        """Return the same folder for reads that verify a table, which access it without a proxy's delay."""
        return replace(self, bucket=self.near)

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket.name}/{self.name}"

    def file_system(self) -> S3FileSystem:
        return self.near.file_system()

    def sizes(self) -> dict[PurePath, int]:
        """Return the size in bytes of each object in the folder, by bucket and name."""
        from pyarrow.fs import FileSelector, FileType

        place = FileSelector(f"{self.bucket.name}/{self.name}", allow_not_found=True, recursive=True)
        found = self.file_system().get_file_info(place)
        return {PurePosixPath(each.path): each.size for each in found if each.type is FileType.File}

    def secret(self) -> str:
        """Return SQL that gives a DuckDB with HTTPFS loaded access to the bucket."""
        given = {
            "KEY_ID": self.bucket.access_key,
            "SECRET": self.bucket.secret_key,
            "REGION": REGION,
            "ENDPOINT": urlsplit(self.bucket.endpoint).netloc,
            "URL_STYLE": "path",
            "SCOPE": f"s3://{self.bucket.name}",
        }
        text = ", ".join(f"{name} {literal(value)}" for name, value in given.items())
        return f"CREATE SECRET tidemark_store (TYPE s3, USE_SSL false, {text})"

    def for_pyiceberg(self) -> dict[str, str]:
        """Return catalog properties that give PyIceberg access to the bucket."""
        return {
            "s3.endpoint": self.bucket.endpoint,
            "s3.access-key-id": self.bucket.access_key,
            "s3.secret-access-key": self.bucket.secret_key,
            "s3.region": REGION,
        }

    def for_delta_rs(self) -> dict[str, str]:
        """Return storage options for delta-rs; it commits with a conditional put, which fails if the object exists."""
        return {
            "aws_endpoint_url": self.bucket.endpoint,
            "aws_allow_http": "true",
            "aws_access_key_id": self.bucket.access_key,
            "aws_secret_access_key": self.bucket.secret_key,
            "aws_region": REGION,
            "aws_conditional_put": "etag",
        }


def path_of(address: str) -> PurePath:
    """Return the path of an address: a path of this machine, or a bucket and the name of an object.

    The address is not decoded: DuckLake and Iceberg leave folder names unencoded, even after `file:`.
    """
    if address.startswith("/"):
        return Path(address)
    parts = urlsplit(address)
    return PurePosixPath(f"{parts.netloc}{parts.path}") if parts.scheme == S3 else Path(parts.path)


def is_in_bucket(options: Any) -> bool:
    return getattr(options, "storage", LOCAL) == S3


class Stored(FullDurability):
    """Table system that may have the option `storage`."""

    Options: ClassVar[type[Options]] = DurabilityOptions

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        needs = super().needs_for(options)
        if not is_in_bucket(options):
            return needs
        way = () if options.rtt_ms is None else (delayed(SeaweedFS, options.rtt_ms),)
        return (*needs, SeaweedFS, *way)

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        if not is_in_bucket(options) and getattr(options, "rtt_ms", None) is not None:
            return f"rtt_ms: {options.rtt_ms} is of a way to an S3 server; storage is {LOCAL}"
        if is_in_bucket(options):
            if options.durability == FULL:
                return "durability: full is of files on a disk of this machine; storage is s3"
            if missing := missing_extensions((HTTPFS,)):
                return missing
        return super().unavailable(options)

    @classmethod
    def refuses_bundles(cls, options: Any) -> str | None:
        if is_in_bucket(options):
            return "files that are committed together are made on the local disk alone; storage is s3"
        return super().refuses_bundles(options)

    @cached_property
    def folder(self) -> Folder | None:
        """Folder of the files in a bucket; None if they are on the local disk."""
        if not is_in_bucket(self.options):
            return None
        near, rtt_ms = self.context.server(SeaweedFS).make_bucket(BUCKET), self.options.rtt_ms
        way = None if rtt_ms is None else self.context.server(delayed(SeaweedFS, rtt_ms))
        return Folder(near.by_way_of(way), near, f"{self.name}-{secrets.token_hex(6)}")

    def _sizes_below(self, local: Path) -> Mapping[PurePath, int]:
        """Return the size in bytes of each of the table's files, in the folder `local` unless they are in a bucket."""
        if self.folder is not None:
            return self.folder.sizes()
        return {path: path.stat().st_size for path in files_below(local)}

    def weigh(self, files: Iterable[PurePath]) -> tuple[int, int]:
        if self.folder is None:
            return super().weigh(files)
        sizes = self.folder.sizes()
        found = [sizes[path] for path in files]
        return len(found), sum(found)


def promise(commit: str) -> Durability:
    """Return the durability of a table in a bucket; `commit` states what is known of its commit."""
    return Durability(f"{commit} {ANSWERS_EARLY}", counted=None, remark=NOT_COUNTED)
