"""Apache Polaris, the catalog used in the thesis, from a distribution that the user supplies, or an external one.

No package registry contains its server. This module follows the layout, options and management API of release 1.3.0
as documented in its sources. It was tested with a build of those sources (both clients, both stacks, started here and
external), not with the official binary; the tests that run without a distribution check files and requests against
the documentation.

A server started here listens on loopback, and keeps its catalog in Tidemark's PostgreSQL and its tables below
`warehouse`. It gets passwords in files readable only by their owner and deleted once it runs, never in an argument.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, ClassVar, Self

from tidemark import integrity
from tidemark.config import ServicesConfig
from tidemark.errors import ProvisionError, ServiceError
from tidemark.integrity import sha256_of
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, ServiceContext, files_below
from tidemark.services.http import fetch
from tidemark.services.iceberg.rest import OAuth, RestCatalog
from tidemark.services.postgres import Postgres
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, SHORT_LIVED_OPTIONS, runtime_files
from tidemark.services.programs.process import Child, free_ports, give, wait_for_line, write_private
from tidemark.services.programs.provision import unpack, unpack_tar, unpack_zip

SCOPE = "PRINCIPAL_ROLE:ALL"
TOKENS = "/api/catalog/v1/oauth/tokens"
MANAGEMENT = "/api/management/v1"
NAME = "tidemark"


class Management:
    """The part of the management API that creates a catalog, and a principal that may use it.

    Requests are those of a principal at the server with the URL `base`, which obtains a token with the first one.

    Refused requests raise ServiceError with the server's response, which contains neither secret nor token.
    """

    def __init__(self, base: str, client_id: str, client_secret: str) -> None:
        self._base, self._client = base, (client_id, client_secret)
        self._token: str | None = None

    def config(self, warehouse: str) -> dict[str, Any]:
        """Return the configuration that the catalog gives to clients; this also checks the credentials."""
        return self._call("GET", f"/api/catalog/v1/config?{urllib.parse.urlencode({'warehouse': warehouse})}")

    def set_up(self, catalog: str, location: str) -> tuple[str, str]:
        """Create `catalog` with tables below `location`; return id and secret of a principal for its content."""
        storage = {"storageType": "FILE", "allowedLocations": [location]}
        described = {
            "name": catalog,
            "type": "INTERNAL",
            "properties": {"default-base-location": location},
            "storageConfigInfo": storage,
        }
        principal = {"principal": {"name": NAME}, "credentialRotationRequired": False}
        role, catalog_role = {"principalRole": {"name": NAME}}, {"catalogRole": {"name": NAME}}
        grant = {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}}
        roles = f"/catalogs/{catalog}/catalog-roles"
        self._manage("POST", "/catalogs", {"catalog": described})
        created = self._manage("POST", "/principals", principal)
        self._manage("POST", "/principal-roles", role)
        self._manage("PUT", f"/principals/{NAME}/principal-roles", role)
        self._manage("POST", roles, catalog_role)
        self._manage("PUT", f"/principal-roles/{NAME}/catalog-roles/{catalog}", catalog_role)
        self._manage("PUT", f"{roles}/{NAME}/grants", grant)
        try:
            return str(created["credentials"]["clientId"]), str(created["credentials"]["clientSecret"])
        except (KeyError, TypeError) as error:
            raise ServiceError("Apache Polaris created a principal and returned no credentials for it.") from error

    def _manage(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call(method, MANAGEMENT + path, json.dumps(body).encode())

    def _call(self, method: str, path: str, data: bytes | None = None) -> dict[str, Any]:
        if self._token is None:
            self._token = self._new_token()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return self._request(method, path, data, headers)

    def _new_token(self) -> str:
        client_id, client_secret = self._client
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        data = urllib.parse.urlencode({**form, "scope": SCOPE}).encode()
        answer = self._request("POST", TOKENS, data, {"Content-Type": "application/x-www-form-urlencoded"})
        if not isinstance(answer.get("access_token"), str):
            raise ServiceError(f"Apache Polaris gave client {client_id} no token.")
        return str(answer["access_token"])

    def _request(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        request = urllib.request.Request(self._base + path, data, headers, method=method)
        try:
            found = json.loads(fetch(request, 60) or b"{}")
        except urllib.error.HTTPError as error:
            text = error.read(2000).decode(errors="replace")
            raise ServiceError(f"Apache Polaris refused {method} {path} ({error.code}): {text}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise ServiceError(f"Apache Polaris did not answer {method} {path}: {error}") from error
        return found if isinstance(found, dict) else {}


CATALOG = "tidemark"
REALM = "POLARIS"
SERVER_JAR = Path("server", "quarkus-run.jar")
ADMIN_JAR = Path("admin", "quarkus-run.jar")
PROPERTIES = Path("config", "application.properties")  # relative to the working directory of Quarkus
SECRET = "TIDEMARK_POLARIS_SECRET"


@dataclass(frozen=True, slots=True)
class PolarisSettings:
    """Either a distribution to start over `postgres`, or the `address` of an external server with its credentials.

    `distribution`: a folder, a .tgz or a .zip. `address`: http://host:port. `catalog` is the name of a catalog there;
    `client_id` and `client_secret` belong to a principal that may manage its content. `heap_mb` is in MiB.
    """

    postgres: Postgres | None = None
    distribution: Path | None = None
    heap_mb: int = 512
    address: str | None = None
    catalog: str = CATALOG
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    secret_file: str | None = None  # file that the client secret was read from; None: the environment


def find_home(folder: Path) -> Path:
    """Return the distribution's folder: `folder` or a direct subfolder; raise ProvisionError unless one fits."""
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    homes = [place for place in places if (place / SERVER_JAR).is_file() and (place / ADMIN_JAR).is_file()]
    if len(homes) != 1:
        raise ProvisionError(
            f"{folder}: found {len(homes)} Polaris distributions; expected one, with {SERVER_JAR} and {ADMIN_JAR}. "
            "Give services.polaris_path the binary distribution of release 1.3.0 (polaris-bin-...), not its sources."
        )
    return homes[0]


def unpack_distribution(path: Path, workspace: Workspace) -> Path:
    """Return the folder of the distribution at `path`; unpack an archive once, to a folder named by its hash.

    Raise ProvisionError if there is none, or if the archive has a member that leads outside its folder.
    """
    if path.is_dir():
        return find_home(path)
    if not path.is_file():
        raise ProvisionError(f"services.polaris_path: {path} does not exist; give a folder, a .tgz or a .zip.")
    home = workspace.cache / "polaris" / sha256_of(path)[:16]
    with integrity.made_once(home) as wanted:
        if wanted:
            unpack(path, home, _unpack)
    return find_home(home)


def _unpack(path: Path, incoming: Path) -> None:
    try:
        if zipfile.is_zipfile(path):
            unpack_zip(path, incoming)
        else:
            with path.open("rb") as packed:
                unpack_tar(packed, incoming)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise ProvisionError(f"services.polaris_path: {path} is no archive that can be read: {error}.") from error
    find_home(incoming)


def read_secret(config: ServicesConfig) -> str:
    """Return the external server's client secret, from the configured file or else the environment."""
    if config.polaris_secret_file is None:
        found = os.environ.get(SECRET, "")
        place = f"the environment variable {SECRET}"
    else:
        place = config.polaris_secret_file
        try:
            found = Path(place).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ServiceError(f"services.polaris_secret_file: {place} cannot be read: {error}.") from error
    if not found:
        raise ServiceError(
            f"Apache Polaris at {config.polaris_address} needs the secret of client {config.polaris_client_id}; "
            f"found none in {place}. Set {SECRET}, or services.polaris_secret_file."
        )
    return found


def properties(values: Mapping[str, str]) -> str:
    """Return `values` in Java properties format; raise ServiceError for one that Quarkus would not read literally."""
    lines = []
    for key, value in values.items():
        if "$" in value or not value.isprintable():
            raise ServiceError(
                f"Apache Polaris cannot be given {key}: it holds a '$' or a control character, which its "
                "configuration would change. Give PostgreSQL's account another password."
            )
        escaped = value.replace("\\", "\\\\").replace(" ", "\\ ")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)


class Polaris(RestCatalog):
    """Polaris over PostgreSQL (relational-jdbc) with FILE storage, and a principal that may manage one catalog."""

    name: ClassVar[str] = "polaris"
    title: ClassVar[str] = "Apache Polaris"
    address_key: ClassVar[str] = "polaris_address"
    places_are_free: ClassVar[bool] = False
    port_taken: ClassVar[tuple[str, ...]] = (*Service.port_taken, "already bound", "seems to be in use")

    def __init__(self, workspace: Workspace, directory: Path, settings: PolarisSettings) -> None:
        super().__init__(workspace, directory, settings.postgres, settings.address)
        if settings.address is None and (settings.postgres is None or settings.distribution is None):
            raise ServiceError(f"{self.title} needs a PostgreSQL and a distribution, or the address of a running one.")
        self.settings = settings
        self._home = Path()
        self._root = ("", "")
        self._client = (settings.client_id, settings.client_secret)
        self._is_bootstrapped = self._is_set_up = False

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        config = around.config
        if config.polaris_address is None:
            path = None if config.polaris_path is None else Path(config.polaris_path).absolute()
            settings = PolarisSettings(around.server(Postgres), path, config.iceberg_rest_heap_mb)
        else:
            settings = PolarisSettings(
                address=config.polaris_address,
                catalog=config.polaris_catalog or "",
                client_id=config.polaris_client_id or "",
                client_secret=read_secret(config),
                secret_file=config.polaris_secret_file,
            )
        return cls(around.workspace, around.directory, settings)

    @property
    def uri(self) -> str:
        return f"{super().uri}/api/catalog"

    @property
    def warehouse(self) -> str:
        """Name of the catalog; Polaris calls this a warehouse."""
        return self.settings.catalog

    @property
    def oauth(self) -> OAuth:
        return OAuth(*self._client, f"{super().uri}{TOKENS}", SCOPE)

    @property
    def location(self) -> str:
        """Location of tables if started here; not quoted, because clients use the text after file:// as a path."""
        return f"file://{self.directory.absolute() / 'warehouse'}"

    def address_outside(self) -> dict[str, str | None]:
        return {
            **super().address_outside(),
            "polaris_catalog": self.settings.catalog,
            "polaris_client_id": self.settings.client_id,
            "polaris_secret_file": self.settings.secret_file,
        }

    def version(self) -> str:
        if self.is_external:
            return super().version()
        names = [path.name for path in (self._home / "server").rglob("*polaris-core-*.jar")]
        found = re.search(r"polaris-core-(.+)\.jar$", names[0]) if names else None
        return found[1] if found else "not stated by the distribution"

    def _reach(self) -> None:
        Management(super().uri, *self._client).config(self.warehouse)

    def _program_files(self) -> tuple[Path, ...]:
        return (*files_below(self._home / "server"), *runtime_files())

    def _provision(self) -> None:
        assert self.settings.distribution is not None
        self._home = unpack_distribution(self.settings.distribution, self.workspace)

    def _prepare(self) -> None:
        # Locations of tables, which the catalog chooses; removed or kept together with the series' folder.
        for folder in ("tmp", "warehouse"):
            give(private_directory(self.directory / folder))
        self._root = (f"root-{secrets.token_hex(6)}", secrets.token_hex(24))
        self._has_database = self._is_bootstrapped = self._is_set_up = False

    def _database_properties(self) -> dict[str, str]:
        address, user, password = self._own_database()
        return {
            "polaris.persistence.type": "relational-jdbc",
            "quarkus.datasource.jdbc.url": address,
            "quarkus.datasource.username": user,
            "quarkus.datasource.password": password,
        }

    def _server_properties(self, port: int, health_port: int) -> dict[str, str]:
        return {
            **self._database_properties(),
            "polaris.realm-context.realms": REALM,
            'polaris.features."SUPPORTED_CATALOG_STORAGE_TYPES"': '["FILE"]',
            'polaris.features."ALLOW_INSECURE_STORAGE_TYPES"': "true",
            # Local file storage is one of the issues because of which it would refuse to start.
            "polaris.readiness.ignore-severe-issues": "true",
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(port),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(health_port),
            # Its standard output is already logged.
            "quarkus.log.file.enable": "false",
        }

    def _bootstrap(self) -> None:
        """Create the realm and its root principal in the empty database, with the distribution's admin tool."""
        folder = private_directory(self.directory / "bootstrap")
        client_id, client_secret = self._root
        root = {REALM: {"client-id": client_id, "client-secret": client_secret}}
        command: list[str | Path] = [JAVA, *COMMON_OPTIONS, *SHORT_LIVED_OPTIONS]
        command += [f"-Djava.io.tmpdir={self.directory / 'tmp'}", "-jar", self._home / ADMIN_JAR]
        log = self.directory / "polaris-bootstrap.log"
        credentials = folder / "credentials.json"
        try:
            write_private(credentials, json.dumps(root))
            write_private(folder / PROPERTIES, properties(self._database_properties()))
            command += ["bootstrap", "--credentials-file", credentials]
            self._begin("Polaris' admin tool", command, log, {}, folder).run_to_end(120)
        finally:
            credentials.unlink(missing_ok=True)
            (folder / PROPERTIES).unlink(missing_ok=True)

    def _launch(self) -> Child:
        if not self._is_bootstrapped:
            self._bootstrap()
            self._is_bootstrapped = True
        self._port, health_port = free_ports(2)
        write_private(self.directory / PROPERTIES, properties(self._server_properties(self._port, health_port)))
        options = [*COMMON_OPTIONS, f"-Xmx{self.settings.heap_mb}m", f"-Djava.io.tmpdir={self.directory / 'tmp'}"]
        return self._serve([JAVA, *options, "-jar", self._home / SERVER_JAR])

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        try:
            wait_for_line(child, "Listening on:", 180, log_start)
        finally:
            (self.directory / PROPERTIES).unlink(missing_ok=True)
        if not self._is_set_up:
            self._client = Management(super().uri, *self._root).set_up(self.warehouse, self.location)
            self._is_set_up = True
        self._reach()
