"""Project Nessie, a catalog server that keeps all tables in one history, over the backends it was found to run on.

It refuses locations on a local file system, so its metadata files are on an S3 server. It receives its settings,
including keys and passwords, through the environment.
"""

from __future__ import annotations

from abc import abstractmethod
from importlib.metadata import distributions
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlencode

from tidemark.services.base import Service, ServiceContext, files_below
from tidemark.services.http import fetch
from tidemark.services.iceberg.backends import POOL
from tidemark.services.iceberg.rest import RestCatalog
from tidemark.services.own import JavaServer
from tidemark.services.postgres import Postgres
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA
from tidemark.services.programs.process import Child, free_ports, same_or_free
from tidemark.services.programs.tools import tool_packages, tool_program
from tidemark.services.seaweedfs import REGION, InBucket, SeaweedFS

SECANTUSDB = "secantusdb"


class SecantusDB(Service):
    """MongoDB's wire protocol over WiredTiger, in Python. A substitute: no package registry has MongoDB.

    Its speed says nothing about MongoDB's. It shows a catalog on documents with compare-and-swap where other backends
    use SQL transactions. It is an early project, and requires no password from its clients, which are on this machine.
    This is the server of `envs/tools/secantusdb.lock` with its default settings. It flushes its log when a client
    requests that, as Nessie does.
    """

    name: ClassVar[str] = "secantusdb"
    title: ClassVar[str] = "SecantusDB (a stand-in for MongoDB)"
    tools: ClassVar[tuple[str, ...]] = (SECANTUSDB,)
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "address already in use")
    ready_line: ClassVar[str] = "listening on 127.0.0.1:"
    _program = Path()

    @property
    def uri(self) -> str:
        """Connection string for MongoDB clients."""
        return f"mongodb://127.0.0.1:{self._port}"

    @property
    def _packages(self) -> Path:
        return tool_packages(SECANTUSDB, self.workspace)

    def version(self) -> str:
        (found,) = distributions(name=SECANTUSDB, path=[str(self._packages)])
        return found.version

    def _program_files(self) -> tuple[Path, ...]:
        return files_below(self._packages)

    def _provision(self) -> None:
        self._program = tool_program(SECANTUSDB, "secantusd-py", self.workspace)

    def _launch(self) -> Child:
        self._port = same_or_free(self._port)
        command: list[str | Path] = [self._program, "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--storage-path", self.data_directory, "--standalone"]
        return self._serve(command, HOME=str(self.directory), PYTHONDONTWRITEBYTECODE="1")


WAREHOUSE = "warehouse"
HEAP_MB = 1024
STORE = "nessie.catalog.service.s3.default-options"
KEYS = "tidemark.store"  # name under which it looks up its keys for the S3 server


class Nessie(InBucket, JavaServer, RestCatalog):
    """Nessie 0.99.0 on loopback; unprivileged if Tidemark is root. A subclass selects the store of its history."""

    needs: ClassVar[tuple[type[Service], ...]] = (SeaweedFS,)
    locks: ClassVar[tuple[str, ...]] = ("nessie",)
    places_are_free: ClassVar[bool] = False
    lists_snapshots: ClassVar[bool] = False
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "seems to be in use by another process")
    ready_line: ClassVar[str] = "Listening on:"
    ready_s: ClassVar[float] = 180.0
    version_pattern: ClassVar[str] = r"Nessie (\S+) on JVM"

    def __init__(self, around: ServiceContext) -> None:
        postgres = around.server(Postgres) if Postgres in self.needs else None
        super().__init__(around.workspace, around.directory, postgres)
        self.store = around.server(SeaweedFS)

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around)

    @property
    def uri(self) -> str:
        return f"{super().uri}/iceberg"

    @property
    def warehouse(self) -> str:
        return WAREHOUSE

    def _reach(self) -> None:
        fetch(f"{self.uri}/v1/config?{urlencode({'warehouse': WAREHOUSE})}", 30)

    def _prepare(self) -> None:
        super()._prepare()
        self._has_database = False

    @abstractmethod
    def _backend(self) -> dict[str, str]:
        """Return the environment variables that select the store of its history."""

    def _launch(self) -> Child:
        self._port, management_port = free_ports(2)
        bucket = self.bucket
        # Property names as they are, which an environment may hold: upper-case names do not work for all of them.
        environment = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self._port),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(management_port),
            "quarkus.otel.sdk.disabled": "true",
            # One line per request, which is not needed.
            "quarkus.http.access-log.enabled": "false",
            "nessie.catalog.default-warehouse": WAREHOUSE,
            f"nessie.catalog.warehouses.{WAREHOUSE}.location": f"s3://{bucket.name}/{WAREHOUSE}/",
            f"{STORE}.endpoint": f"{bucket.endpoint}/",
            f"{STORE}.path-style-access": "true",
            f"{STORE}.region": REGION,
            f"{STORE}.access-key": f"urn:nessie-secret:quarkus:{KEYS}",
            f"{KEYS}.name": bucket.access_key,
            f"{KEYS}.secret": bucket.secret_key,
        }
        options = [*COMMON_OPTIONS, f"-Xmx{HEAP_MB}m", f"-Djava.io.tmpdir={self.directory / 'tmp'}"]
        return self._serve([JAVA, *options, "-jar", *self._jars], **environment, **self._backend())


class NessieMemory(Nessie):
    """Nessie with its history in the server's memory; metadata files are written."""

    name: ClassVar[str] = "nessie-memory"
    title: ClassVar[str] = "Nessie in memory"

    def _backend(self) -> dict[str, str]:
        return {"nessie.version.store.type": "IN_MEMORY"}


class NessieRocksDB(Nessie):
    """Nessie over RocksDB, embedded in the server."""

    name: ClassVar[str] = "nessie-rocksdb"
    title: ClassVar[str] = "Nessie over RocksDB"

    def _backend(self) -> dict[str, str]:
        return {
            "nessie.version.store.type": "ROCKSDB",
            "nessie.version.store.persist.rocks.database-path": str(self.data_directory),
        }

    def database_bytes(self) -> int | None:
        return sum(path.stat().st_size for path in files_below(self.data_directory))


class NessiePostgres(Nessie):
    """Nessie over PostgreSQL, with the same number of connections as the reference server."""

    name: ClassVar[str] = "nessie-postgres"
    title: ClassVar[str] = "Nessie over PostgreSQL"
    needs: ClassVar[tuple[type[Service], ...]] = (Postgres, SeaweedFS)

    def _backend(self) -> dict[str, str]:
        address, user, password = self._own_database()
        return {
            "nessie.version.store.type": "JDBC2",
            "nessie.version.store.persist.jdbc.datasource": "postgresql",
            "quarkus.datasource.postgresql.jdbc.url": address,
            "quarkus.datasource.postgresql.username": user,
            "quarkus.datasource.postgresql.password": password,
            "quarkus.datasource.postgresql.jdbc.max-size": str(POOL),
        }


class NessieTables(NessiePostgres):
    """Nessie over PostgreSQL for tables whose clients have their own keys for the S3 server: it signs no requests."""

    name: ClassVar[str] = "nessie-tables"

    def _backend(self) -> dict[str, str]:
        return {**super()._backend(), f"{STORE}.request-signing-enabled": "false"}


class NessieMongo(Nessie):
    """Nessie over a document database, SecantusDB as a substitute for MongoDB."""

    name: ClassVar[str] = "nessie-mongo"
    title: ClassVar[str] = "Nessie over SecantusDB (a stand-in for MongoDB)"
    needs: ClassVar[tuple[type[Service], ...]] = (SecantusDB, SeaweedFS)

    def __init__(self, around: ServiceContext) -> None:
        super().__init__(around)
        self._documents = around.server(SecantusDB)

    def _backend(self) -> dict[str, str]:
        return {
            "nessie.version.store.type": "MONGODB2",
            "quarkus.mongodb.connection-string": self._documents.uri,
            "quarkus.mongodb.database": "nessie",
        }

    def database_bytes(self) -> int | None:
        return sum(path.stat().st_size for path in files_below(self._documents.data_directory))
