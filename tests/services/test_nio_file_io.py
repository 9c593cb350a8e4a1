"""The server's FileIO without Hadoop keeps the contract of Iceberg's interface on a real disk."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.iceberg.rest import IcebergRestNio, compile_launcher
from tidemark.services.programs.java import JAVA, SHORT_LIVED_OPTIONS, class_path
from tidemark.services.programs.provision import provision

CONTRACT = Path(__file__).with_name("FileIOContract.java")


@pytest.fixture
def keeps_contract(workspace: Workspace, tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Return a function that checks a FileIO class against the contract."""
    jars = provision("iceberg-rest", workspace)
    entries = [tmp_path / "classes", compile_launcher(workspace, jars), *jars]
    (compiler,) = (jar for jar in jars if jar.name.startswith("ecj-"))

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [JAVA, *SHORT_LIVED_OPTIONS, *map(str, command)], capture_output=True, text=True, check=False, timeout=120
        )

    compiled = run("-jar", compiler, "-17", "-nowarn", "-cp", class_path(entries[1:]), "-d", entries[0], CONTRACT)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return lambda name: run("-cp", class_path(entries), "FileIOContract", name, tmp_path)


def test_nio_file_io_keeps_the_contract(
    keeps_contract: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    kept = keeps_contract(IcebergRestNio.file_io)
    assert kept.returncode == 0, kept.stderr


def test_contract_violation_is_detected(
    keeps_contract: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    broken = keeps_contract("FileIOContract$Overwriting")
    assert broken.returncode == 1
    assert broken.stderr == "not so: create does not overwrite\n"


def test_nio_file_io_is_refused_for_an_external_server(workspace: Workspace) -> None:
    with pytest.raises(ServiceError, match="file_io: nio is of a catalog that is started here"):
        IcebergRestNio(workspace, workspace.work / "rest", address="http://127.0.0.1:1")
