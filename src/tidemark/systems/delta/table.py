"""Common base of Delta tables, for all writers: releases of delta-rs, location, creation, files, history."""

from __future__ import annotations

import json
import os
import re
import secrets
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service
from tidemark.services.http import fetch
from tidemark.services.seaweedfs import SeaweedFS
from tidemark.systems import object_store
from tidemark.systems.base import FULL, Context, Durability, Options, PerWrite, option
from tidemark.systems.full_durability import DurabilityOptions, write_through
from tidemark.systems.releases import Client, Release
from tidemark.systems.tables import Committed, and_pyarrow, footprint_of, read_ids
from tidemark.systems.writers import commit_retries_option

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable as Table


# Before 1.3.3, parts of some studies fail that need plans of queries, the time of commits, or maintenance.
DELTA_RS = Client("delta-rs", "deltalake", (Release((1, 0, 0)), Release((1, 6, 6))))


def reader_name() -> str:
    """Return the name of the oracle's reader that uses delta-rs."""
    return and_pyarrow(f"{DELTA_RS.name} {DELTA_RS.installed()} (the log)")


CHECKPOINT_INTERVAL = "delta.checkpointInterval"
CLIENT_INTERVAL = 100  # default of delta-rs
LOG = "_delta_log"
TIMEOUT = "timeout"  # delta-rs's option of a storage
NO_SERVICE = "no catalog service"
NOT_THROUGH = "durability: full: this file system cannot write through: a checkpoint is seen before it is on the disk"
ENCODED = re.compile("%[0-9A-Fa-f]{2}")  # delta-rs decodes it, even in a plain path, and looks in another folder
REGISTERED = "registered in, not committed through, Unity Catalog"


@dataclass(frozen=True, slots=True)
class DeltaOptions(DurabilityOptions):
    checkpoint_interval: int = option(
        10,
        "Commits from one checkpoint of the log to the next. 10 is the format's default and the thesis's; "
        "delta-rs left alone takes 100.",
        minimum=1,
        examples=(3,),
    )
    catalog: str = option(
        "none",
        "unity: register the table in a running Unity Catalog, and write to the location that it names.",
        choices=("none", "unity"),
    )
    unity_address: str | None = option(None, "Of the Unity Catalog server, for example http://127.0.0.1:8080.")
    unity_schema: str = option("unity.default", "Its catalog and schema, with a dot.")


@dataclass(frozen=True, slots=True)
class DeltaRsOptions(DeltaOptions):
    storage: str = field(default=object_store.LOCAL, metadata=object_store.STORAGE)
    rtt_ms: int | None = field(default=None, metadata=object_store.RTT)
    commit_retries: int | None = commit_retries_option("max_commit_retries", "delta-rs: 15")


class DeltaTable(object_store.Stored):
    """Table at a path, created by delta-rs; each of its commits is a new file in its log."""

    format: ClassVar[str] = "Delta Lake"
    catalog: str = "Delta log"
    durability: Durability = Durability("Data and log are left to the page cache; nothing is flushed to the disk.")
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(4, 4.5)  # data, log, their folders; checkpoints
    written_through: ClassVar[tuple[str, ...]] = (LOG,)  # folders with synchronous writes if `durability: full`
    never_in_paths: ClassVar[re.Pattern[str]] = ENCODED
    is_linked: ClassVar[bool] = True
    Options: ClassVar[type[Options]] = DeltaOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.say(DELTA_RS.remark())
        self._location = str(context.directory / "table")
        if object_store.is_in_bucket(options):
            self.durability = object_store.promise(
                "Data and log are in an S3 server, which refuses a commit that is not the first."
            )
            self.say(object_store.NOTE)
        if options.catalog == "unity":
            self.notes = (REGISTERED, *(note for note in self.notes if note != NO_SERVICE))

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        if options.catalog == "unity" and options.unity_address is None:
            return "catalog: unity needs the address of a running server (unity_address)"
        if options.catalog == "unity" and object_store.is_in_bucket(options):
            return "catalog: unity is of tables on the local disk; storage is s3"
        return super().unavailable(options)

    def _create(self, schema: pa.Schema) -> Table:
        """Create an empty table; also for clients that cannot create one themselves."""
        from deltalake import DeltaTable as Table

        options = self.options
        if options.catalog == "unity":
            place = register_in_unity(options.unity_address, options.unity_schema, schema, self.place)
            self._location = str(place)
        if self.folder is not None:
            self._location = self.folder.uri
        elif found := self.never_in_paths.search(self._location):
            raise SystemFailure(
                f"{self.title}: found '{found[0]}' in the path {self._location}, which {self.client} misreads; "
                "work in a folder without it."
            )
        properties = {CHECKPOINT_INTERVAL: str(options.checkpoint_interval)}
        table = Table.create(self._location, schema, configuration=properties, storage_options=self._access())
        if self.durability_level == FULL and not write_through(self.place / each for each in self.written_through):
            self.say(NOT_THROUGH)
        self._keep_promise_below(self.place)
        return table

    def reached_by(self, services: Mapping[type[Service], Service]) -> Self:
        other = super().reached_by(services)
        if self.folder is not None:
            bucket = replace(self.folder.bucket, endpoint=services[SeaweedFS].uri)
            other.folder = replace(self.folder, bucket=bucket)
        return other

    def _access(self) -> dict[str, str] | None:
        """Return delta-rs's options for the storage; None for the local disk."""
        if self.folder is None:
            return None
        wait = {} if self.context.answer_s is None else {TIMEOUT: f"{self.context.answer_s}s"}
        return {**self.folder.for_delta_rs(), **wait}

    def _load(self) -> Table:
        """Return the table as a new client would open it now."""
        from deltalake import DeltaTable as Table

        access = None if self.folder is None else self.folder.for_readers().for_delta_rs()
        return Table(self._location, storage_options=access)

    def _listed(self) -> Sequence[PurePath]:
        # delta-rs encodes folder names for use in a URI, even if it omits the scheme.
        return [object_store.path_of(unquote(address)) for address in self._load().file_uris()]

    @property
    def place(self) -> Path:
        """Path of the table on the local disk, for its other clients."""
        return Path(self._location)

    def footprint(self) -> Footprint:
        # Hadoop's local file system adds checksum files, with a leading dot: they are not part of the format.
        sizes = {path: size for path, size in self._sizes_below(self.place).items() if not path.name.startswith(".")}
        return footprint_of((LOG not in path.parts, size) for path, size in sizes.items())

    def commits(self) -> int:
        # A commit is a file of the log, named by its number.
        numbers = (path.stem for path in self._log() if path.suffix == ".json")
        return 1 + max(int(number) for number in numbers if number.isdigit())

    def visible_rows(self) -> int:
        return int(self._load().count())

    def history(self) -> Sequence[Committed]:
        """Return the commits by the log's files: the time of each, and the row counts of the files that it adds."""
        found = []
        for path in sorted(Path(self._location, LOG).glob("*.json")):
            entries = [json.loads(line) for line in path.read_text().splitlines()]
            rows = sum(json.loads(entry["add"]["stats"])["numRecords"] for entry in entries if "add" in entry)
            if rows and not any("remove" in entry for entry in entries):
                (at_ms,) = (entry["commitInfo"]["timestamp"] for entry in entries if "commitInfo" in entry)
                found.append(Committed(float(at_ms), rows))
        return found

    def _log(self) -> list[PurePath]:
        return [path for path in self._sizes_below(Path(self._location) / LOG) if path.parent.name == LOG]

    def _ids_by_delta_rs(self) -> pa.ChunkedArray:
        # delta-rs only lists the table's files; it would take seven times as long to read 2,000 small ones itself.
        return read_ids(self._listed(), None if self.folder is None else self.folder.file_system())

    def settings(self) -> Mapping[str, str]:
        table = self._load()
        return {
            CHECKPOINT_INTERVAL: table.metadata().configuration[CHECKPOINT_INTERVAL],
            "checkpoints": str(sum(path.match("*.checkpoint*.parquet") for path in self._log())),
            "location": self._location,
        }


UNITY_TOKEN = "TIDEMARK_UNITY_TOKEN"


def register_in_unity(address: str, schema_name: str, schema: pa.Schema, location: Path) -> Path:
    """Register an external table at `location` in Unity Catalog; return the location that the catalog reports.

    delta-rs cannot open `uc://` tables on local storage: it requires cloud credentials, and the open-source server
    answers its request for them with an empty object (delta-rs issue 3966). The table is therefore registered, its
    location requested, and that path written to; commits do not pass through the catalog. No package registry has such
    a server, so that no test here uses one.

    `schema_name` is "catalog.schema". A token is taken from the environment (TIDEMARK_UNITY_TOKEN). Raise SystemFailure
    if the server refuses, or reports a location that is not on this machine.
    """
    catalog, _, below = schema_name.partition(".")
    name = f"tidemark_{secrets.token_hex(6)}"
    tables = f"{address.rstrip('/')}/api/2.1/unity-catalog/tables"
    _ask_unity(
        tables,
        {
            "name": name,
            "catalog_name": catalog,
            "schema_name": below,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "storage_location": location.as_uri(),
            "columns": [_unity_column(position, field) for position, field in enumerate(schema)],
        },
    )
    answer = _ask_unity(f"{tables}/{catalog}.{below}.{name}")
    parts = urlsplit(str(answer.get("storage_location", "")))
    if parts.scheme not in ("", "file") or not parts.path:
        raise SystemFailure(
            f"Unity Catalog at {address} puts the table at {parts.geturl()!r}; only a path of this machine can be "
            "written to. Give a catalog whose storage is a local folder."
        )
    return Path(parts.path)


def _unity_column(position: int, field: pa.Field) -> dict[str, Any]:
    import pyarrow as pa

    of = pa.types
    kinds = {of.is_timestamp: "timestamp_ntz", of.is_floating: "double", of.is_int64: "long", of.is_integer: "int"}
    kind = next((name for is_of, name in kinds.items() if is_of(field.type)), "string")  # the first that fits
    described = {"name": field.name, "type": kind, "nullable": True, "metadata": {}}
    return {
        "name": field.name,
        "type_name": kind.upper(),
        "type_text": "bigint" if kind == "long" else kind,
        "type_json": json.dumps(described),
        "position": position,
        "nullable": True,
    }


def _ask_unity(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get(UNITY_TOKEN):
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    try:
        found = json.loads(fetch(urllib.request.Request(url, data, headers), 30))
    except (OSError, ValueError) as error:
        raise SystemFailure(f"Unity Catalog refused {url}: {error}. Check unity_address and unity_schema.") from error
    return dict(found)
