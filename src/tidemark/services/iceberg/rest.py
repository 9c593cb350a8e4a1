"""Catalogs with Iceberg's REST interface: their base, and Iceberg's reference server over PostgreSQL.

A catalog has an address, and a separate database for each series. The reference server is the code of the
`iceberg-rest-fixture` image. Its main class listens on all interfaces, without an option to change that.
LoopbackCatalogServer.java assembles the same parts on 127.0.0.1. The JVM's wheel has no compiler, so a locked compiler
compiles it, once. NioFileIO.java next to it is an alternative way for the server to write files, selected by the
service class.
"""

from __future__ import annotations

import json
import secrets
import shutil
import urllib.error
import urllib.parse
import urllib.request
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import psycopg

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, ServiceContext
from tidemark.services.http import fetch
from tidemark.services.own import JavaServer
from tidemark.services.postgres import Postgres
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, Trainee, class_data, class_path, compiled
from tidemark.services.programs.process import Child, give
from tidemark.services.programs.provision import provision
from tidemark.services.proxies import Reachable

SOURCES = tuple(Path(__file__).with_name(name) for name in ("LoopbackCatalogServer.java", "NioFileIO.java"))
MAIN_CLASS = "org.apache.iceberg.rest.LoopbackCatalogServer"
LAUNCHER = "launcher.jar"
LOCK = "iceberg-rest"
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


class RestCatalog(Service):
    """A catalog server over a database in `postgres`, created by its first start and dropped with its data."""

    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    has_one_port: ClassVar[bool] = True
    # True if tables may be placed anywhere; otherwise the catalog chooses a location below its warehouse.
    places_are_free: ClassVar[bool] = True
    lists_snapshots: ClassVar[bool] = True  # those before a table's last one as well
    role: ClassVar[str] = "catalog"

    def __init__(
        self, workspace: Workspace, directory: Path, postgres: Postgres | None, address: str | None = None
    ) -> None:
        super().__init__(workspace, directory, address)
        self._postgres = postgres
        # Unique, because an external PostgreSQL may serve other users.
        self._database = f"tidemark_iceberg_{secrets.token_hex(6)}"
        self._has_database = False
        self.line: Reachable | None = None  # a proxy between the catalog and its database
        self.isolation: str | None = None  # default isolation level of its database; None: PostgreSQL's default

    @property
    @abstractmethod
    def warehouse(self) -> str:
        """Value of the client option `warehouse`."""

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
        """Drop the tables of a namespace, with their files if the catalog supports that, and then the namespace.

        Do nothing if it does not exist. Raise OSError, with the reason, if the catalog refuses a request.
        """
        headers = {} if self.oauth is None else {"Authorization": f"Bearer {token(self.oauth)}"}
        base = f"{self.uri}/v1"
        config = _ask("GET", f"{base}/config?{urllib.parse.urlencode({'warehouse': self.warehouse})}", headers)
        prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix")
        place = f"{base}/{prefix}/namespaces" if prefix else f"{base}/namespaces"
        place += f"/{urllib.parse.quote(name, safe='')}"
        for _ in range(MOST_ROUNDS):
            tables = _ask("GET", f"{place}/tables", headers).get("identifiers", [])
            if not tables:
                break
            for table in tables:
                there = f"{place}/tables/{urllib.parse.quote(table['name'], safe='')}"
                try:
                    _ask("DELETE", f"{there}?purgeRequested=true", headers)
                except urllib.error.HTTPError:
                    _ask("DELETE", there, headers)  # the catalog may be configured never to delete files
        _ask("DELETE", place, headers)
        self._strike(name)

    def database_bytes(self) -> int | None:
        """Return the size of the catalog's database in bytes; None for an external catalog."""
        return None if self.database is None else self.database[0].database_bytes(self._database)

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


def compile_launcher(workspace: Workspace, jars: Sequence[Path]) -> Path:
    """Return the jar with Tidemark's classes, including the launcher; `jars` are those of the server's lock."""
    return compiled(workspace, LAUNCHER, SOURCES, jars)


def archive_classes(workspace: Workspace, jars: Sequence[Path], launcher: Path) -> Path | None:
    """Return the archive of classes that the server loads from start to a table's first commit; built once."""
    folder = workspace.work / "iceberg-rest-training"
    return class_data(workspace, "iceberg-rest", (), [launcher, *jars], _Trainee(workspace, folder))


def jdbc_backend(address: str) -> dict[str, str]:
    """Return the environment of a server that stores table pointers in the database at `address`, a JDBC URL."""
    return {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": address,
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
    }


class IcebergRest(JavaServer, RestCatalog):
    """Reference server of Iceberg 1.10.1 on a loopback port chosen by the kernel; unprivileged if Tidemark is root.

    It takes either `address`, the URI of an external catalog, or the running `postgres` for a catalog started here.
    `warehouse`: for a catalog started here the folder of tables (a path or file:// URI), by default one in `directory`;
    for an external one the name of its warehouse. `heap_mb` (MiB) applies to a catalog started here.
    """

    name: ClassVar[str] = "iceberg-rest"
    title: ClassVar[str] = "Iceberg REST catalog"
    locks: ClassVar[tuple[str, ...]] = (LOCK,)
    address_key: ClassVar[str | None] = "iceberg_rest_address"
    ready_line: ClassVar[str] = "Catalog listens on port: "
    ready_s: ClassVar[float] = 120.0
    version_pattern: ClassVar[str] = r"^Iceberg version: (\S+)"
    file_io: ClassVar[str] = "org.apache.iceberg.hadoop.HadoopFileIO"
    _beside: Sequence[Path] = ()  # the jars of a subclass's own locks

    def __init__(
        self,
        workspace: Workspace,
        directory: Path,
        postgres: Postgres | None = None,
        warehouse: str = "",
        address: str | None = None,
        heap_mb: int = 512,
    ) -> None:
        super().__init__(workspace, directory, postgres, address)
        self._warehouse = warehouse or ("" if address else str(directory / "warehouse"))
        self._heap_mb = heap_mb
        self._launcher = Path()

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        address, heap_mb = cls.address_in(around.config), around.config.iceberg_rest_heap_mb
        postgres = around.server(Postgres) if Postgres in cls.needs and address is None else None
        return cls(around.workspace, around.directory, postgres, address=address, heap_mb=heap_mb)

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        jars = provision(LOCK, workspace)
        archive_classes(workspace, jars, compile_launcher(workspace, jars))

    @property
    def warehouse(self) -> str:
        return self._warehouse

    @property
    def _warehouse_folder(self) -> Path:
        return Path(self._warehouse.removeprefix("file://"))

    def _reach(self) -> None:
        fetch(f"{self.uri}/v1/config", 10)

    def _program_files(self) -> tuple[Path, ...]:
        return (*super()._program_files(), *self._beside, self._launcher)

    def _provision(self) -> None:
        self._jars = provision(LOCK, self.workspace)
        self._beside = [jar for name in self.locks if name != LOCK for jar in provision(name, self.workspace)]
        self._launcher = compile_launcher(self.workspace, self._jars)
        self._class_data = archive_classes(self.workspace, self._jars, self._launcher)

    def _prepare(self) -> None:
        super()._prepare()
        give(private_directory(self._warehouse_folder))
        self._has_database = False

    def remove_data(self) -> None:
        had_database = self._has_database
        super().remove_data()
        if had_database:
            shutil.rmtree(self._warehouse_folder, ignore_errors=True)

    def _launch(self) -> Child:
        # The class data archive requires a class path that begins like the one it was made with.
        jars = [self._launcher, *self._jars, *self._beside]
        options = [*COMMON_OPTIONS, f"-Xmx{self._heap_mb}m", f"-Djava.io.tmpdir={self.directory / 'tmp'}"]
        return self._serve(
            [JAVA, *options, *self._class_options(), "-cp", class_path(jars), MAIN_CLASS],
            CATALOG_IO__IMPL=self.file_io,
            CATALOG_WAREHOUSE=self.warehouse,
            **self._backend(),
        )

    def _backend(self) -> dict[str, str]:
        """Return the environment variables that select the store of table pointers."""
        address, user, password = self._own_database()
        return {**jdbc_backend(address), "CATALOG_JDBC_USER": user, "CATALOG_JDBC_PASSWORD": password}


class IcebergRestNio(IcebergRest):
    """The same server, writing its files without Hadoop."""

    name: ClassVar[str] = "iceberg-rest-nio"
    title: ClassVar[str] = "Iceberg REST catalog (java.nio)"
    file_io: ClassVar[str] = "org.apache.iceberg.rest.NioFileIO"

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if self.is_external:
            raise ServiceError(
                f"file_io: nio is of a catalog that is started here; found services.iceberg_rest_address, "
                f"{self.external_at}. Remove that address, or leave file_io at hadoop."
            )


class _Trainee(Trainee, IcebergRest):
    """A server that records the classes it loads; it stores tables in memory.

    It differs only in its access to PostgreSQL, so that provisioning does not need a running PostgreSQL.
    """

    def _provision(self) -> None:
        self._jars = provision(LOCK, self.workspace)
        self._launcher = compile_launcher(self.workspace, self._jars)

    def _backend(self) -> dict[str, str]:
        return {"CATALOG_CATALOG__IMPL": "org.apache.iceberg.inmemory.InMemoryCatalog"}

    def practise(self) -> None:
        """Create, change and read a table in a new namespace."""
        column = {"id": 1, "name": "id", "type": "long", "required": False}
        schema = {"type": "struct", "schema-id": 0, "fields": [column]}
        change = {"action": "set-properties", "updates": {"practised": "yes"}}
        self._post("namespaces", {"namespace": ["practice"]})
        self._post("namespaces/practice/tables", {"name": "table", "schema": schema})
        self._post("namespaces/practice/tables/table", {"requirements": [], "updates": [change]})
        fetch(f"{self.uri}/v1/namespaces/practice/tables/table", 10)

    def _post(self, what: str, content: dict[str, object]) -> None:
        request = urllib.request.Request(
            f"{self.uri}/v1/{what}", json.dumps(content).encode(), {"Content-Type": "application/json"}
        )
        fetch(request, 10)
