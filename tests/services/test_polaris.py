"""Apache Polaris as far as it can be tested without a distribution, which no package registry holds.

The management requests are answered by a list of answers behind a local HTTP server, not by Polaris, and the
archives do not hold its jars. The way clients send their credentials is tested on Iceberg's reference server,
which issues tokens too. None of this shows that a Polaris would accept it.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidemark.config import ServicesConfig, load
from tidemark.errors import ConfigError, ProvisionError, ServiceError
from tidemark.paths import Workspace
from tidemark.pipeline.plan import make_plan
from tidemark.schema import Origin
from tidemark.services.base import ServiceContext
from tidemark.services.iceberg.rest import IcebergRest, OAuth
from tidemark.services.polaris import (
    ADMIN_JAR,
    SERVER_JAR,
    Management,
    Polaris,
    PolarisSettings,
    properties,
    read_secret,
    unpack_distribution,
)
from tidemark.services.postgres import Postgres
from tidemark.services.servers import in_order
from tidemark.systems.base import Context
from tidemark.systems.registry import SystemEntry, registry, variant

SHIPPED = Path(__file__).parents[2] / "config.yaml"
CORE_JAR = Path("server", "lib", "main", "org.apache.polaris.polaris-core-1.3.0-incubating.jar")
LAYOUT = (SERVER_JAR, ADMIN_JAR, CORE_JAR)
RUNNING = ["polaris_address=http://127.0.0.1:8181", "polaris_client_id=me", "polaris_catalog=there"]


def tar_of(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"jar"))
    return path


def zip_of(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"jar")
    return path


@pytest.fixture
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a workspace with a separate cache: these tests unpack archives that are no Polaris."""
    monkeypatch.delenv("TIDEMARK_CACHE", raising=False)
    return Workspace(tmp_path / "workspace")


@pytest.mark.parametrize(("make", "name"), [(tar_of, "polaris.tgz"), (zip_of, "polaris.zip")])
def test_archive_is_unpacked_once_and_its_folder_found(
    make: Callable[..., Path], name: str, own_workspace: Workspace, tmp_path: Path
) -> None:
    archive = make(tmp_path / name, *(f"polaris-bin-1.3.0/{path}" for path in LAYOUT))
    home = unpack_distribution(archive, own_workspace)
    assert (home / SERVER_JAR).read_bytes() == b"jar"
    before = (home / SERVER_JAR).stat().st_mtime_ns
    assert unpack_distribution(archive, own_workspace) == home
    assert (home / SERVER_JAR).stat().st_mtime_ns == before
    assert unpack_distribution(home, own_workspace) == home
    assert unpack_distribution(home.parent, own_workspace) == home


@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize("name", ["../outside", "/outside", "polaris/../../outside"])
def test_archive_with_paths_outside_its_folder_is_refused_and_removed(
    make: Callable[..., Path], name: str, own_workspace: Workspace, tmp_path: Path
) -> None:
    archive = make(tmp_path / "archive", *(str(path) for path in LAYOUT), name)
    with pytest.raises(ProvisionError, match="outside"):
        unpack_distribution(archive, own_workspace)
    assert [path.name for path in (own_workspace.cache / "polaris").iterdir()] == [".lock"]
    assert not list(tmp_path.rglob("outside"))


def test_link_in_a_zip_is_refused(own_workspace: Workspace, tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "linked.zip", *(str(path) for path in LAYOUT))
    with zipfile.ZipFile(archive, "a") as opened:
        link = zipfile.ZipInfo("server/etc")
        link.external_attr = 0o120777 << 16
        opened.writestr(link, "/etc")
    with pytest.raises(ProvisionError, match="server/etc"):
        unpack_distribution(archive, own_workspace)


def test_path_without_a_distribution_is_refused(own_workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match="does not exist"):
        unpack_distribution(tmp_path / "nowhere", own_workspace)
    (tmp_path / "text").write_text("not an archive")
    with pytest.raises(ProvisionError, match="no archive that can be read"):
        unpack_distribution(tmp_path / "text", own_workspace)
    sources = tar_of(tmp_path / "sources.tgz", "polaris-1.3.0/build.gradle.kts", f"polaris-1.3.0/{ADMIN_JAR}")
    with pytest.raises(ProvisionError, match=r"found 0 Polaris distributions.*quarkus-run\.jar"):
        unpack_distribution(sources, own_workspace)
    assert [path.name for path in (own_workspace.cache / "polaris").iterdir()] == [".lock"]


def test_properties_are_escaped_for_java() -> None:
    assert properties({'a."B"': '["FILE"]', "c": "p\\w d"}) == 'a."B"=["FILE"]\nc=p\\\\w\\ d\n'
    for spoilt in ("${HOME}", "two\nlines"):
        with pytest.raises(ServiceError, match=r"given quarkus\.datasource\.password") as caught:
            properties({"quarkus.datasource.password": spoilt})
        assert spoilt not in str(caught.value)


@dataclass
class Answers:
    """Requests in order of arrival, and the status to answer by path."""

    requests: list[tuple[str, str, str | None, Any]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    base: str = ""


@pytest.fixture
def answers() -> Iterator[Answers]:
    kept = Answers()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            is_form = self.headers.get("Content-Type", "").endswith("urlencoded")
            body = dict(urllib.parse.parse_qsl(data)) if is_form else json.loads(data or "null")
            kept.requests.append((self.command, self.path, self.headers.get("Authorization"), body))
            status = kept.refused.get(self.path, 200)
            found: dict[str, Any] = {}
            if self.path.endswith("/tokens"):
                found = {"access_token": "the-token"}
            elif self.path.endswith("/principals"):
                found = {"credentials": {"clientId": "made", "clientSecret": "made-secret"}}
            content = json.dumps(found).encode() if status == 200 else b"it is forbidden"
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = answer

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.base = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


def test_catalog_principal_roles_and_grant_are_requested_in_this_order(answers: Answers) -> None:
    made = Management(answers.base, "root", "root-secret").set_up("lake", "file:///some where")
    assert made == ("made", "made-secret")
    (token, *rest) = answers.requests
    assert token == (
        "POST",
        "/api/catalog/v1/oauth/tokens",
        None,
        {
            "grant_type": "client_credentials",
            "client_id": "root",
            "client_secret": "root-secret",
            "scope": "PRINCIPAL_ROLE:ALL",
        },
    )
    assert {request[2] for request in rest} == {"Bearer the-token"}
    role, catalog_role = {"principalRole": {"name": "tidemark"}}, {"catalogRole": {"name": "tidemark"}}
    catalog = {
        "name": "lake",
        "type": "INTERNAL",
        "properties": {"default-base-location": "file:///some where"},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": ["file:///some where"]},
    }
    grant = {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}
    assert [(method, path.removeprefix("/api/management/v1"), body) for method, path, _, body in rest] == [
        ("POST", "/catalogs", {"catalog": catalog}),
        ("POST", "/principals", {"principal": {"name": "tidemark"}, "credentialRotationRequired": False}),
        ("POST", "/principal-roles", role),
        ("PUT", "/principals/tidemark/principal-roles", role),
        ("POST", "/catalogs/lake/catalog-roles", catalog_role),
        ("PUT", "/principal-roles/tidemark/catalog-roles/lake", catalog_role),
        ("PUT", "/catalogs/lake/catalog-roles/tidemark/grants", {"grant": grant}),
    ]


@pytest.mark.parametrize("path", ["/api/catalog/v1/oauth/tokens", "/api/management/v1/catalogs"])
def test_refused_request_is_reported_without_the_secret(answers: Answers, path: str) -> None:
    answers.refused[path] = 403
    with pytest.raises(ServiceError, match=f"{path} .403.: it is forbidden") as caught:
        Management(answers.base, "root", "root-secret").set_up("lake", "file:///x")
    assert "root-secret" not in str(caught.value)
    assert "the-token" not in str(caught.value)


def test_running_server_is_checked_with_the_clients_credentials(
    answers: Answers, own_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_POLARIS_SECRET", "from outside")
    config = ServicesConfig(polaris_address=f"{answers.base}/", polaris_client_id="me", polaris_catalog="a lake")
    postgres = Postgres(own_workspace, own_workspace.work / "postgres")
    around = ServiceContext(own_workspace, own_workspace.work / "polaris", config, {Postgres: postgres})
    server = Polaris.from_config(around)
    with server:
        assert server.is_external
        assert server.pids() == []
    assert [request[1] for request in answers.requests][-1] == "/api/catalog/v1/config?warehouse=a+lake"
    assert answers.requests[0][3]["client_secret"] == "from outside"
    assert (server.uri, server.warehouse) == (f"{answers.base}/api/catalog", "a lake")
    assert server.oauth == OAuth("me", "from outside", f"{server.uri}/v1/oauth/tokens", "PRINCIPAL_ROLE:ALL")
    assert "from outside" not in repr(server.oauth) + repr(server.settings)
    answers.refused["/api/catalog/v1/oauth/tokens"] = 401
    with pytest.raises(ServiceError, match="cannot be reached"):
        server.start()


def test_secret_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_POLARIS_SECRET", raising=False)
    config = ServicesConfig(polaris_address="http://127.0.0.1:1", polaris_client_id="me")
    with pytest.raises(ServiceError, match="found none in the environment variable TIDEMARK_POLARIS_SECRET"):
        read_secret(config)
    place = tmp_path / "secret"
    filed = ServicesConfig(polaris_address="http://127.0.0.1:1", polaris_secret_file=str(place))
    with pytest.raises(ServiceError, match="cannot be read"):
        read_secret(filed)
    place.write_text("\n")
    with pytest.raises(ServiceError, match="found none in"):
        read_secret(filed)
    place.write_text("filed\n")
    assert read_secret(filed) == "filed"


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["streams.catalog=polaris"],
            r"key 'streams\.catalog': found 'polaris', but no Polaris; give services\.polaris_path",
        ),
        (["streams.catalog=polari"], r"did you mean 'polaris'"),
        (
            ["streams.systems={mine: {like: iceberg-duckdb, catalog: polaris}}"],
            r"key 'streams\.systems\.mine\.catalog': found 'polaris', but no Polaris",
        ),
        ([f"services.{RUNNING[0]}"], r"polaris_client_id.*found nothing"),
        ([f"services.{each}" for each in RUNNING[:2]], r"polaris_catalog.*found nothing"),
        ([f"services.{each}" for each in (*RUNNING, "polaris_path=x")], r"polaris_path.*one of the two"),
        (["services.polaris_path=x", "services.polaris_client_id=me"], r"polaris_client_id.*polaris_address alone"),
        (["services.polaris_secret_file=x"], r"polaris_secret_file.*polaris_address alone"),
        (["services.polaris_address=localhost:8181"], r"polaris_address.*names that match"),
    ],
)
def test_invalid_configuration_is_refused(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(load(SHIPPED, overrides))


@pytest.mark.parametrize("services", [["polaris_path=x"], RUNNING])
def test_catalog_key_applies_to_iceberg_only(services: list[str]) -> None:
    given = [f"services.{each}" for each in services]
    plain = {spec.name: spec for spec in make_plan(load(SHIPPED, given)).series}
    assert {dict(spec.options).get("catalog") for spec in plain.values()} == {None, "reference", "none"}
    chosen = {spec.name: spec for spec in make_plan(load(SHIPPED, [*given, "streams.catalog=polaris"])).series}
    changed = {name for name, spec in chosen.items() if spec.options != plain[name].options}
    assert changed == {"iceberg-duckdb", "iceberg-pyiceberg"}
    assert {dict(chosen[name].options)["catalog"] for name in changed} == {"polaris"}


def test_catalog_option_of_a_system_overrides_the_key() -> None:
    systems = "streams.systems={iceberg-pyiceberg: {}, mine: {like: iceberg-pyiceberg, catalog: reference}}"
    config = load(SHIPPED, [systems, "streams.catalog=polaris", "services.polaris_path=x"])
    options = {spec.name: dict(spec.options)["catalog"] for spec in make_plan(config).series}
    assert options == {"iceberg-pyiceberg": "polaris", "mine": "reference"}


def test_polaris_path_is_part_of_the_fingerprint() -> None:
    plain, named = make_plan(load(SHIPPED)), make_plan(load(SHIPPED, ["services.polaris_path=x"]))
    assert plain.series[0].fingerprint != named.series[0].fingerprint


@pytest.mark.parametrize("name", ["iceberg-duckdb", "iceberg-pyiceberg"])
def test_needed_servers_follow_the_catalog_option(name: str) -> None:
    kind: Any = registry()[name]
    assert in_order(kind.needs_for(kind.Options())) == [Postgres, IcebergRest]
    assert in_order(kind.needs_for(kind.Options(catalog="polaris"))) == [Postgres, Polaris]


@pytest.fixture
def postgres(workspace: Workspace) -> Iterator[Postgres]:
    with Postgres(workspace, workspace.work / "postgres") as server:
        yield server


def test_failed_start_is_reported_and_leaves_no_secret_behind(
    workspace: Workspace, postgres: Postgres, tmp_path: Path
) -> None:
    home = tmp_path / "polaris"
    for path in LAYOUT:
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("no jar")
    directory = workspace.work / "polaris"
    server = Polaris(workspace, directory, PolarisSettings(postgres, home))
    with pytest.raises(ServiceError, match=r"(?s)admin tool failed.*corrupt jarfile"):
        server.start()
    assert server.version() == "1.3.0-incubating"
    address, user, password = postgres.jdbc(server._database)
    assert server._server_properties(1111, 2222) == {
        "polaris.persistence.type": "relational-jdbc",
        "quarkus.datasource.jdbc.url": address,
        "quarkus.datasource.username": user,
        "quarkus.datasource.password": password,
        "polaris.realm-context.realms": "POLARIS",
        'polaris.features."SUPPORTED_CATALOG_STORAGE_TYPES"': '["FILE"]',
        'polaris.features."ALLOW_INSECURE_STORAGE_TYPES"': "true",
        "polaris.readiness.ignore-severe-issues": "true",
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "1111",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "2222",
        "quarkus.log.file.enable": "false",
    }
    server.remove_data()
    left = [path for path in directory.rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["polaris-bootstrap.log"]
    assert password not in left[0].read_text()
    with postgres.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pg_database WHERE datname LIKE 'tidemark%'").fetchone() == (0,)


class Asking(IcebergRest):
    """Iceberg's reference server, whose clients must send the credentials that Polaris requires."""

    places_are_free = False

    @property
    def oauth(self) -> OAuth:
        return OAuth("me", "it's secret", f"{self.uri}/v1/oauth/tokens", "PRINCIPAL_ROLE:ALL")


def test_both_clients_send_credentials_and_write_to_the_catalogs_location(
    workspace: Workspace, postgres: Postgres, tmp_path: Path
) -> None:
    directory = workspace.work / "rest"
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    rows = pa.table({"id": [1, 2], "text": ["a", None]}, schema=schema)
    with Asking(workspace, directory, postgres, f"file://{directory / 'warehouse'}") as server:
        for name in ("iceberg-duckdb", "iceberg-pyiceberg"):
            kind: Any = registry()[name]
            (tmp_path / name).mkdir()
            context = Context(tmp_path / name, {Polaris: server}, rows_per_write=2)
            system = kind(context, kind.Options(catalog="polaris"))
            system.create(schema)
            system.write(rows)
            assert sorted(system.ids().to_pylist()) == [1, 2]
            files = system.data_files()
            assert files and all(path.is_relative_to(directory / "warehouse") for path in files)
            assert system.footprint().data_files == 1
            assert system.catalog == "Iceberg REST, Apache Polaris"
            assert "sources of Polaris 1.3.0" in system.durability.source
            assert not any("reference server" in note for note in system.notes)
            assert "it's secret" not in str(system.settings())
            system.close()


def test_unknown_catalog_option_names_the_allowed_ones() -> None:
    entry = SystemEntry.parse("iceberg-pyiceberg", {"catalog": "polari"})
    with pytest.raises(ConfigError, match="allowed: reference, polaris"):
        variant(entry, Origin("here", {}))
