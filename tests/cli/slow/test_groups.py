"""Set-up installs the packages that a command needs, and no others: groups of the lock, and how they are added."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.cli.slow.test_launcher import USED, start
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark import integrity
from tidemark.errors import ProvisionError
from tidemark.software.environments import ALL, GROUPS, install, installed_group, pins_of, read_lock, stamp_text

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "envs" / "thesis.lock"
LINKED = ("findings", "src/tidemark", "envs", "config.yaml", "docs", "presets", "reference", "Snakefile", "workflow")
ONLY = "import importlib.util as i; print([n for n in ('pool', 'table', 'clock') if i.find_spec(f'tide_{n}')])"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def with_required(names: Iterable[str]) -> set[str]:
    """Return packages and all that they require, by the metadata of what is installed here."""
    found: set[tuple[str, str]] = set()
    todo = [(canonical(name), "") for name in names]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for each in map(Requirement, importlib.metadata.requires(name) or ()):
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                todo += [(canonical(each.name), wanted) for wanted in ("", *each.extras)]
    return {name for name, _ in found}


def test_each_group_is_what_its_packages_require() -> None:
    groups = tomllib.loads((LOCK.parent / "groups.toml").read_text())
    named = {key: {canonical(name) for name in (*each["packages"], *each["required"])} for key, each in groups.items()}
    assert list(named) == [group for group in GROUPS if group != "measuring"]
    every = {canonical(pin.name) for pin in read_lock(LOCK)}
    so_far: list[str] = []
    for place, group in enumerate(("commands", "results", "figures"), 1):
        so_far += groups[group]["packages"]
        assert set().union(*list(named.values())[:place]) == with_required(so_far), group
    measured = with_required(every - named["tests"])
    assert measured <= every - named["tests"], "what measures requires nothing that is for tests alone"
    assert named["tests"] == with_required(groups["tests"]["packages"]) - measured
    sizes = [len(pins_of(LOCK, group)) for group in GROUPS]
    assert sizes == sorted(set(sizes)) and sizes[-1] == len(every)


@pytest.fixture(scope="module", params=["commands", "results", "figures"])
def part(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a group, and a clone whose environment has its packages alone: links to those that are installed here."""
    group, folder = request.param, tmp_path_factory.mktemp(request.param)
    write_run_set(folder, (DUCKLAKE,), window_s=1.0)
    shutil.copy(ROOT / "tidemark", folder)
    (folder / "src").mkdir()
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    environment = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    site = next(environment.glob("lib/python3*/site-packages"))
    for pin in pins_of(LOCK, group):
        found = importlib.metadata.distribution(pin.name)
        for name in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(found.locate_file(name))))
    (site / "tidemark-source.pth").write_text(f"{folder / 'src'}\n")
    (environment / ".stamp").write_text(stamp_text(LOCK, environment, folder / "src", group))
    (folder / "bin").mkdir()
    for name in USED:
        (folder / "bin" / name).symlink_to(shutil.which(name) or pytest.skip(f"there is no {name}"))
    return group, folder


COMMANDS = {
    "commands": (
        "list systems",
        "list studies",
        "list presets",
        "-q list stacks --json",
        "show config --preset reviewer --changed",
        "show system iceberg-pyiceberg",
        "show study ingest",
        "clean",
        "completion bash",
        "new system my-system --output .",
    ),
    "results": (
        "advise --rate 50000 --fresh 10s --results reference",
        "list claims --results reference",
        "list findings",
        "show claim inlining-single --results reference",
        "show results --results reference --study streams",
    ),
    "figures": (
        "archive --results results",
        "compare results results --output compared",
        "keep results --output kept",
    ),
}


def test_commands_need_only_their_group(part: tuple[str, Path]) -> None:
    """Nothing else can be imported, and nothing added: there is no Python outside of the environment."""
    group, folder = part
    bare = {"PATH": str(folder / "bin"), "HOME": str(folder)}
    for words in COMMANDS[group]:
        done = start(folder, bare, *words.split())
        assert done.returncode == 0, (words, done.stderr)
    later = GROUPS[GROUPS.index(group) + 1 :]
    for words in (*(words for each in later for words in COMMANDS.get(each, ())[:1]), "list series", "all", "test"):
        done = start(folder, bare, *words.split())
        assert done.returncode == 4 and "no Python 3.12" in done.stderr, (words, done)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of three small packages, in which pip looks instead of in a registry; a lock names them."""
    folder, lines = tmp_path / "wheels", []
    folder.mkdir()
    for name in ("pool", "table", "clock"):
        file = folder / f"tide_{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as wheel:
            about = f"tide_{name}-1.0.dist-info"
            wheel.writestr(f"tide_{name}/__init__.py", "")
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tide-{name}\nVersion: 1.0\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f"tide-{name}==1.0 --hash=sha256:{sha256}  # {file.name}\n")
    (tmp_path / "tide.lock").write_text("".join(lines))
    groups = {"commands": ["tide-pool"], "results": [], "tests": ["tide-clock"]}
    text = "".join(f"[{key}]\npackages = {names}\nrequired = []\n" for key, names in groups.items())
    (tmp_path / "groups.toml").write_text(text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def importable(target: Path) -> list[str]:
    done = subprocess.run([target / "bin" / "python", "-c", ONLY], capture_output=True, text=True, check=True)
    return re.findall(r"\w+", done.stdout)


def test_packages_are_added_when_a_command_needs_them(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock, target = tmp_path / "tide.lock", tmp_path / "made"
    install(lock, target, None, "commands")
    assert "with 1 of the 3 packages" in capsys.readouterr().err and importable(target) == ["pool"]
    clock = wheels / "tide_clock-1.0-py3-none-any.whl"
    kept = clock.rename(tmp_path / clock.name)
    with pytest.raises(ProvisionError, match="tide-clock"):
        install(lock, target, None)
    assert installed_group(lock, target, None) == "commands", "pip unpacked nothing, so what was there can be used"
    kept.rename(clock)
    capsys.readouterr()
    install(lock, target, None, "commands")
    assert capsys.readouterr().err == ""
    install(lock, target, None, "measuring")
    assert "Adding 1 packages" in capsys.readouterr().err and importable(target) == ["pool", "table"]
    assert integrity.differences(target) == [] and not (target / "tmp").exists()
    install(lock, target, None)
    assert (target / ".stamp").read_text() == stamp_text(lock, target, None)
    capsys.readouterr()
    for group in GROUPS:
        install(lock, target, None, group)
    assert capsys.readouterr().err == "" and importable(target) == ["pool", "table", "clock"]


@pytest.mark.usefixtures("wheels")
def test_a_kill_while_packages_are_added_leaves_no_half_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock, target = tmp_path / "tide.lock", tmp_path / "made"
    install(lock, target, None, "commands")
    groups = tmp_path / "groups.toml"
    groups.write_text(f"{groups.read_text()}\n")
    assert installed_group(lock, target, None) is None, "its groups may be others now"
    groups.write_text(groups.read_text()[:-1])
    assert installed_group(lock, target, None) == "commands"
    command = [sys.executable, "-m", "tidemark.software.environments", "install", lock, target, "--group", ALL]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while (target / ".stamp").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert installed_group(lock, target, None) is None
    capsys.readouterr()
    install(lock, target, None, "commands")
    assert "Making" in capsys.readouterr().err and importable(target) == ["pool"]
