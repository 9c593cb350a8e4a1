"""The seals of real programs and environments: changed files are found before each use."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.test_integrity import replaced, unseen

from tidemark import integrity
from tidemark.cli.doctor import provisioned
from tidemark.errors import HashMismatch, ProvisionError
from tidemark.paths import Workspace
from tidemark.services.iceberg.rest import compile_launcher
from tidemark.services.programs.provision import provision, unpack_postgres
from tidemark.software import environments
from tidemark.software.verify import verify, verify_or_refuse


@pytest.fixture
def filled(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a workspace with the real jars in a separate cache, which these tests damage."""
    for jar in (cache / "jars").glob("*/*.jar"):  # without its mode: the cache may be read-only
        (folder := tmp_path / "cache" / "jars" / jar.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(jar, folder / jar.name)
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))
    return Workspace(tmp_path)


def test_real_programs_are_checked_before_each_use(filled: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    binary = unpack_postgres(filled) / "postgres"
    jars = provision("iceberg-rest", filled)
    launcher = compile_launcher(filled, jars)
    assert capsys.readouterr().err == ""
    inodes = (binary.stat().st_ino, launcher.stat().st_ino)
    assert unpack_postgres(filled) / "postgres" == binary and compile_launcher(filled, jars) == launcher
    assert (binary.stat().st_ino, launcher.stat().st_ino) == inodes, "nothing is made twice"

    whole = binary.read_bytes()
    replaced(binary)
    (launcher.parent / launcher.name).unlink()
    assert (unpack_postgres(filled) / "postgres").read_bytes() == whole
    assert compile_launcher(filled, jars).is_file()
    said = capsys.readouterr().err
    assert f"{binary} was changed" in said and f"{launcher} is missing" in said

    replaced(jars[0])
    with pytest.raises(HashMismatch, match=jars[0].name):
        provision("iceberg-rest", filled)


def test_verify_detects_silent_changes_and_disables_the_files(filled: Workspace) -> None:
    binary = unpack_postgres(filled) / "postgres"
    jars = provision("postgres", filled)
    seen = list(verify(filled))
    assert seen and all(not each.problems for each in seen)
    assert {each.verdict for each in provisioned(filled)} == {"good"}
    verify_or_refuse(filled)
    whole = binary.read_bytes()
    unseen(binary)
    unseen(jars[0])
    assert unpack_postgres(filled) / "postgres" == binary and binary.read_bytes() != whole, "a start does not see it"
    bad = [each for each in provisioned(filled) if each.verdict == "bad"]
    assert len(bad) == 2 and jars[0].is_file(), "the doctor changes nothing"
    with pytest.raises(ProvisionError, match=r"2 are not as they were made.*not the locked one.*was changed"):
        verify_or_refuse(filled)
    assert not jars[0].exists()
    assert not integrity.is_whole(binary.parents[2]), "it is made again"


def test_environment_is_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock, target = tmp_path / "none.lock", tmp_path / "envs" / "mine"
    source = tmp_path / "src"  # that of a clone: its environment has one package, pip
    lock.write_text("# Made from none.in\n")
    environments.install(lock, target, source)
    assert "Making" in capsys.readouterr().err
    environments.install(lock, target, source)
    assert capsys.readouterr().err == ""
    (config := target / "pyvenv.cfg").write_text(config.read_text() + "\n")
    environments.install(lock, target, source)
    assert f"{config} was changed" in capsys.readouterr().err
    integrity.seal_path(target).unlink(missing_ok=True)
    environments.install(lock, target, source)
    assert f"{target} is rebuilt: it was never checked" in capsys.readouterr().err
    assert integrity.differences(target) == []
    command = [target / "bin" / "python", "-c", "import pip"]
    assert subprocess.run(command, check=False).returncode == 0, "made again"


def test_an_installation_that_is_killed_leaves_nothing_outside_its_folder(tmp_path: Path) -> None:
    """The next installation also removes what was left inside its folder."""
    lock, target, elsewhere = tmp_path / "one.lock", tmp_path / "envs" / "mine", tmp_path / "elsewhere"
    elsewhere.mkdir()
    whole = (Path(__file__).parents[3] / "envs/thesis.lock").read_text().splitlines()
    lock.write_text("".join(f"{line}\n" for line in whole if line.startswith(("deltalake==", "pyarrow=="))))
    command = [sys.executable, "-m", "tidemark.software.environments", "install", lock, target]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(elsewhere)}, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(target.glob("*/pip-*")) and not list(elsewhere.glob("pip-*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(elsewhere.iterdir()) == []
    lock.write_text("# Made from one.in\n")
    environments.install(lock, target, None)
    assert list(target.rglob("pip-*")) == list(target.rglob("pip-*.dist-info"))
