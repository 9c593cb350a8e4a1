"""Series that may use a boot, the state recorded before a restart, and the unit that resumes after it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError, MachineError, RebootNeeded
from tidemark.machine import reboot
from tidemark.machine.reboot import Restarts, Resume, State
from tidemark.paths import Workspace
from tidemark.pipeline import reboots

OTHER_BOOT = "00000000-0000-0000-0000-000000000000"
COMMAND = Resume("config.yaml", ("cold=reboot",), ("--quiet",), 2)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    folder = tmp_path / "units"
    folder.mkdir()
    return folder


def space(path: Path) -> Workspace:
    path.mkdir(parents=True, exist_ok=True)
    return Workspace(path)


def after_a_restart(workspace: Workspace) -> None:
    """Rewrite the recorded state as if it had been written in another boot."""
    state = reboot.read(workspace)
    reboot.write(workspace, State(OTHER_BOOT, state.used_by, state.waiting, state.resume))


def test_boot_is_for_a_single_series(tmp_path: Path) -> None:
    workspace = space(tmp_path)
    reboot.claim(workspace, "first", alone=True)
    with pytest.raises(RebootNeeded, match=r"second waits for a restart of the machine.*first") as caught:
        reboot.claim(workspace, "second", alone=True)
    assert caught.value.exit_code == 11
    assert reboot.read(workspace).waiting == "second"
    after_a_restart(workspace)
    assert reboot.read(workspace).used_by == ()
    reboot.claim(workspace, "second", alone=True)
    assert reboot.read(workspace).waiting is None


def test_attempt_uses_up_the_cold_start(tmp_path: Path) -> None:
    """Refuse a second attempt: a series killed within its first run cannot be cold again in the same boot."""
    workspace = space(tmp_path)
    reboot.claim(workspace, "killed", alone=True)
    with pytest.raises(RebootNeeded):
        reboot.claim(workspace, "killed", alone=True)
    reboot.claim(workspace, "killed", alone=False)  # its hot runs need no separate boot
    assert reboot.read(workspace).used_by == ("killed",)


def test_any_measurement_uses_a_boot(tmp_path: Path) -> None:
    workspace = space(tmp_path)
    reboot.claim(workspace, "evicted", alone=False)
    with pytest.raises(RebootNeeded):
        reboot.claim(workspace, "rebooted", alone=True)


def test_recorded_state_is_read_back(tmp_path: Path) -> None:
    workspace = space(tmp_path)
    state = State(reboot.read(workspace).boot_id, ("a", "b"), "c", COMMAND)
    reboot.write(workspace, state)
    assert reboot.read(workspace) == state
    assert (workspace.private.stat().st_mode & 0o777) == 0o700


def test_unreadable_state_is_reported(tmp_path: Path) -> None:
    workspace = space(tmp_path)
    reboot.write(workspace, State("x", (), None, None))
    (workspace.private / "reboots.json").write_text('{"boot_id": "x"}')
    with pytest.raises(MachineError, match=r"reboots\.json.*remove it"):
        reboot.read(workspace)


def test_the_unit_is_installed_enabled_and_removed(tmp_path: Path, units: Path) -> None:
    workspace = space(tmp_path / "here")
    reboot.install(workspace, units)
    reboot.install(workspace, units)
    link = units / "multi-user.target.wants" / reboot.UNIT
    assert link.resolve() == units / reboot.UNIT
    assert reboot.installed_for(units) == str(workspace.root)
    reboot.remove(workspace, units)
    assert not link.is_symlink() and not (units / reboot.UNIT).exists()
    reboot.remove(workspace, units)


def test_unit_of_another_folder_is_left_unchanged(tmp_path: Path, units: Path) -> None:
    first, second = space(tmp_path / "first"), space(tmp_path / "second")
    reboot.install(first, units)
    with pytest.raises(MachineError, match=f"installed for {first.root}"):
        reboot.install(second, units)
    reboot.remove(second, units)
    assert reboot.installed_for(units) == str(first.root)


@pytest.mark.parametrize("name", ["plain", 'a "quoted" 100% $HOME \\ folder'])
def test_systemd_accepts_the_unit(tmp_path: Path, units: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not on PATH")
    workspace = space(tmp_path / name)
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / name))
    reboot.install(workspace, units)
    assert reboot.installed_for(units) == str(workspace.root)
    checked = subprocess.run([analyse, "verify", units / reboot.UNIT], capture_output=True, text=True, check=False)
    about_it = [line for line in checked.stderr.splitlines() if reboot.UNIT in line]
    assert about_it == []


def test_line_break_in_a_unit_is_refused(tmp_path: Path, units: Path) -> None:
    with pytest.raises(MachineError, match="line break"):
        reboot.install(space(tmp_path / "two\nlines"), units)


def test_restart_options_require_cold_reboot(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("cold: reboot\n")
    for given in (Restarts.NONE, Restarts.WAIT):
        reboots.check(load(path), given)
    path.write_text("cold: auto\n")
    for given in (Restarts.ALLOW, Restarts.WAIT):
        with pytest.raises(ConfigError, match=f"--{'wait-for' if given is Restarts.WAIT else 'allow'}-reboot"):
            reboots.check(load(path), given)
    reboots.check(load(path), Restarts.NONE)


def test_only_root_under_systemd_may_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MachineError, match="not root"):
        reboot.may_restart()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(reboot, "SYSTEMD", tmp_path / "none")
    with pytest.raises(MachineError, match="no systemd"):
        reboot.may_restart()
