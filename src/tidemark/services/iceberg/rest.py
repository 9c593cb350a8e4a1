"""Iceberg's reference REST catalog over PostgreSQL: the code of the `iceberg-rest-fixture` image.

Its main class listens on all interfaces, without an option to change that. LoopbackCatalogServer.java assembles the
same parts on 127.0.0.1. The JVM's wheel has no compiler, so a locked compiler compiles it, once. NioFileIO.java next
to it is an alternative way for the server to write files, selected by the service class.
"""

from __future__ import annotations

import json
import shutil
import urllib.request
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import ServiceContext
from tidemark.services.http import fetch
from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.services.postgres import Postgres
from tidemark.services.programs.java import (
    COMMON_OPTIONS,
    JAVA,
    Trainee,
    class_data,
    class_path,
    compiled,
    mapping,
    runtime_files,
)
from tidemark.services.programs.process import Child, give, wait_for_line
from tidemark.services.programs.provision import provision

SOURCES = tuple(Path(__file__).with_name(name) for name in ("LoopbackCatalogServer.java", "NioFileIO.java"))
MAIN_CLASS = "org.apache.iceberg.rest.LoopbackCatalogServer"
PORT_LINE = "Catalog listens on port: "
LAUNCHER = "launcher.jar"
LOCK = "iceberg-rest"


@dataclass(frozen=True, slots=True)
class IcebergRestSettings:
    """Either `address`, the URI of an external catalog, or the running `postgres` for a catalog started here.

    `warehouse`: for a catalog started here the folder of tables (a path or file:// URI), created if necessary; for an
    external one the name of its warehouse. `heap_mb` (MiB) applies to a catalog started here.
    """

    postgres: Postgres | None = None
    warehouse: str = ""
    address: str | None = None
    heap_mb: int = 512


def compile_launcher(workspace: Workspace, jars: list[Path]) -> Path:
    """Return the jar with Tidemark's classes, including the launcher; `jars` are those of the server's lock."""
    return compiled(workspace, LAUNCHER, SOURCES, jars)


def archive_classes(workspace: Workspace, jars: list[Path], launcher: Path) -> Path | None:
    """Return the archive of classes that the server loads from start to a table's first commit; built once."""
    trainee = partial(_Trainee, workspace, workspace.work / "iceberg-rest-training")
    return class_data(workspace, "iceberg-rest", (), [launcher, *jars], trainee)


def jdbc_backend(address: str) -> dict[str, str]:
    """Return the environment of a server that stores table pointers in the database at `address`, a JDBC URL."""
    return {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": address,
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
    }


class IcebergRest(RestCatalog):
    """Reference server of Iceberg 1.10.1 on a loopback port chosen by the kernel; unprivileged if Tidemark is root."""

    name: ClassVar[str] = "iceberg-rest"
    title: ClassVar[str] = "Iceberg REST catalog"
    locks: ClassVar[tuple[str, ...]] = (LOCK,)
    address_key: ClassVar[str | None] = "iceberg_rest_address"
    file_io: ClassVar[str] = "org.apache.iceberg.hadoop.HadoopFileIO"
    _beside: list[Path]  # the jars of a subclass's own locks

    def __init__(self, workspace: Workspace, directory: Path, settings: IcebergRestSettings) -> None:
        super().__init__(workspace, directory, settings.postgres)
        self._check(settings)
        self.settings, self.external_at = settings, settings.address
        self._jars: list[Path] = []
        self._beside = []
        self._launcher = Path()
        self._class_data: Path | None = None

    def _check(self, settings: IcebergRestSettings) -> None:
        if settings.address is None and (settings.postgres is None or not settings.warehouse):
            raise ServiceError(f"{self.title} needs a PostgreSQL and a warehouse, or the address of a running one.")

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        address = cls.address_in(around.config)
        settings = IcebergRestSettings(
            postgres=around.server(Postgres) if Postgres in cls.needs else None,
            warehouse="" if address else str(around.directory / "warehouse"),
            address=address,
            heap_mb=around.config.iceberg_rest_heap_mb,
        )
        return cls(around.workspace, around.directory, settings)

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        jars = provision(LOCK, workspace)
        archive_classes(workspace, jars, compile_launcher(workspace, jars))

    @property
    def uri(self) -> str:
        return self.settings.address or f"http://127.0.0.1:{self._port}"

    @property
    def warehouse(self) -> str:
        return self.settings.warehouse

    def address_outside(self) -> dict[str, str]:
        return {"uri": self.uri, "warehouse": self.warehouse}

    @property
    def _warehouse_folder(self) -> Path:
        return Path(self.settings.warehouse.removeprefix("file://"))

    def version(self) -> str:
        if self.is_external:
            return "not reported by the catalog"
        return self._version_in_log(r"^Iceberg version: (\S+)")

    def _reach(self) -> None:
        fetch(f"{self.uri.rstrip('/')}/v1/config", 10)

    def _program_files(self) -> tuple[Path, ...]:
        archive = [self._class_data] if self._class_data else []
        return (*self._jars, *self._beside, self._launcher, *archive, *runtime_files())

    def _provision(self) -> None:
        self._jars = provision(LOCK, self.workspace)
        self._beside = [jar for name in self.locks if name != LOCK for jar in provision(name, self.workspace)]
        self._launcher = compile_launcher(self.workspace, self._jars)
        self._class_data = archive_classes(self.workspace, self._jars, self._launcher)

    def _prepare(self) -> None:
        give(private_directory(self.directory / "tmp"))
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
        options = [*COMMON_OPTIONS, f"-Xmx{self.settings.heap_mb}m", f"-Djava.io.tmpdir={self.directory / 'tmp'}"]
        return self._serve(
            [JAVA, *options, *self._class_options(), "-cp", class_path(jars), MAIN_CLASS],
            CATALOG_IO__IMPL=self.file_io,
            CATALOG_WAREHOUSE=self.warehouse,
            **self._backend(),
        )

    def _class_options(self) -> tuple[str, ...]:
        return mapping(self._class_data)

    def _backend(self) -> dict[str, str]:
        """Return the environment variables that select the store of table pointers."""
        address, user, password = self._own_database()
        return {**jdbc_backend(address), "CATALOG_JDBC_USER": user, "CATALOG_JDBC_PASSWORD": password}

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, PORT_LINE, 120, log_start)
        self._port = self._port_in_log(PORT_LINE, log_start)
        self._reach()


class IcebergRestNio(IcebergRest):
    """The same server, writing its files without Hadoop."""

    name: ClassVar[str] = "iceberg-rest-nio"
    title: ClassVar[str] = "Iceberg REST catalog (java.nio)"
    file_io: ClassVar[str] = "org.apache.iceberg.rest.NioFileIO"

    def _check(self, settings: IcebergRestSettings) -> None:
        if settings.address is not None:
            raise ServiceError(
                f"file_io: nio is of a catalog that is started here; found services.iceberg_rest_address, "
                f"{settings.address}. Remove that address, or leave file_io at hadoop."
            )
        super()._check(settings)


class _Trainee(Trainee, IcebergRest):
    """A server that records the classes it loads; it stores tables in memory.

    It differs only in its access to PostgreSQL, so that provisioning does not need a running PostgreSQL.
    """

    def __init__(self, workspace: Workspace, directory: Path, options: tuple[str, ...]) -> None:
        super().__init__(workspace, directory, IcebergRestSettings(warehouse=str(directory / "warehouse")))
        self.options = options

    def _check(self, settings: IcebergRestSettings) -> None:
        pass

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
