"""Adding a stack: the lock that is made, and the requests that are refused without a trace."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from tidemark.errors import ConfigError, ProvisionError
from tidemark.paths import Workspace
from tidemark.software import stacks
from tidemark.software.environments import lock, read_lock

WHEEL = "tide_pool-1.2.0-py3-none-any.whl"


@pytest.fixture
def envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of stacks that has one stack."""
    folder = tmp_path / "envs"
    folder.mkdir()
    (folder / "current.in").write_text("tide-pool==1.0.0\n")
    (folder / "current.lock").write_text(f"# Made\ntide-pool==1.0.0 --hash=sha256:{'0' * 64}  # tide.whl\n")
    monkeypatch.setattr(stacks, "ENVS", folder)
    return folder


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Return a folder with one small package, in which pip looks instead of in a registry."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        about = "tide_pool-1.2.0.dist-info"
        wheel.writestr("tide_pool.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tide-pool\nVersion: 1.2.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return folder


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_lock_has_hashes_and_names_no_location(envs: Path, wheels: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "requirements.in"
    wanted.write_text(f"--no-index\n--find-links {wheels}\ntide-pool\n")
    (pin,) = lock(wanted, envs / "next.lock")
    assert read_lock(envs / "next.lock") == [pin]
    assert (pin.version, pin.file) == ("1.2.0", WHEEL)
    assert pin.sha256 == hashlib.sha256((wheels / WHEEL).read_bytes()).hexdigest()
    text = (envs / "next.lock").read_text()
    assert text.startswith("# Made from next.in;")
    assert "://" not in text and str(wheels) not in text


def test_unresolvable_requirements_leave_nothing_behind(envs: Path, wheels: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "requirements.in"
    wanted.write_text(f"--no-index\n--find-links {wheels}\ntide-pool==9.9.9\n")
    before = state(envs)
    with pytest.raises(ProvisionError, match=r"no set that fits together(.|\n)*tide-pool==9\.9\.9") as caught:
        stacks.add("next", wanted, Workspace(tmp_path))
    assert str(wanted) in str(caught.value) and "from versions" not in str(caught.value)
    assert state(envs) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("current", "exists already; choose another name"),
        ("thesis", "is the one that the pipeline runs in"),
        ("Next Year", "allowed: letters, digits and hyphens"),
    ],
)
def test_unavailable_name_changes_nothing(name: str, message: str, envs: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "requirements.in"
    wanted.write_text("tide-pool\n")
    before = state(envs)
    with pytest.raises(ConfigError, match=message):
        stacks.add(name, wanted, Workspace(tmp_path))
    assert state(envs) == before


@pytest.mark.usefixtures("envs")
def test_missing_requirements_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match=r"nothing\.in: no such file"):
        stacks.add("next", tmp_path / "nothing.in", Workspace(tmp_path))


def test_pins_that_no_system_was_written_for_are_announced() -> None:
    assert stacks.remarks({"duckdb": "1.5.5", "pyiceberg": "0.12.0", "deltalake": "1.6.6", "numpy": "99"}) == []
    said = stacks.remarks({"duckdb": "99.1.0", "pyiceberg": "0.11.0"})
    assert said[0].startswith("DuckDB 99.1.0 is newer than") and said[1].startswith("PyIceberg 0.11.0 is between")


@pytest.mark.parametrize("stack", stacks.names())
def test_shipped_stacks_pin_only_known_releases(stack: str) -> None:
    assert stacks.remarks({pin.name: pin.version for pin in read_lock(stacks.lock_of(stack))}) == []


@pytest.mark.parametrize(
    ("package", "version", "changed"),
    [
        ("deltalake", "1.4.2", {"deltalake==1.4.2"}),
        ("pyiceberg", "0.11.1", {"pyiceberg[pyarrow]==0.11.1"}),
        ("duckdb", "1.5.4", {"duckdb==1.5.4", "duckdb-extension-iceberg==1.5.4"}),
        ("pyarrow", "25.0.0", {"pyarrow==25.0.0"}),
    ],
)
def test_one_package_of_a_stack_gets_another_release(package: str, version: str, changed: set[str]) -> None:
    text = (
        "# duckdb==1.5.5 and more\nduckdb==1.5.5\nduckdb-extension-iceberg==1.5.5\npyiceberg[pyarrow]==0.12.0\n"
        "pyarrow==26.0.1\ndeltalake==1.6.6\npytz\n"
    )
    made = stacks.with_release(text, package, version)
    assert set(made.splitlines()) - set(text.splitlines()) == changed
    assert len(made.splitlines()) == len(text.splitlines())


def test_release_that_the_registry_lacks_is_refused_in_one_line(envs: Path, wheels: Path) -> None:
    (envs / "current.in").write_text(f"--no-index\n--find-links {wheels}\ntide-pool==1.0.0\n")
    before = state(envs)
    with pytest.raises(ProvisionError) as caught:
        stacks.lock_release("tide-pool-9-9-9", "tide-pool", "9.9.9", "current")
    assert str(caught.value).startswith("tide-pool 9.9.9: Could not find a version") and "\n" not in str(caught.value)
    assert state(envs) == before
    stacks.lock_release("tide-pool-1-2-0", "tide-pool", "1.2.0", "current")
    assert [pin.version for pin in read_lock(envs / "tide-pool-1-2-0.lock")] == ["1.2.0"]


def test_copy_of_a_stack_has_its_packages_and_another_name(envs: Path) -> None:
    stacks.copy("current-again", "current")
    assert stacks.names() == ["current", "current-again"]
    assert read_lock(envs / "current-again.lock") == read_lock(envs / "current.lock")
    assert stacks.other_packages("current-again", "current", "tide-pool") == []
    (envs / "current-again.lock").write_text(
        f"tide-pool==2.0.0 --hash=sha256:{'0' * 64}  # tide.whl\nnumpy==2.5.5 --hash=sha256:{'0' * 64}  # numpy.whl\n"
    )
    stacks.copy("current-again", "current")
    assert stacks.other_packages("current-again", "current", "tide-pool") == ["numpy absent → 2.5.5"]
