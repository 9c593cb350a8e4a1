"""Restarts of the machine between series: use of this boot, the series waiting for the next, and resumption.

Nothing here restarts the machine during a measurement. A series checks whether the boot is still unused; the
pipeline, between two series and only if configuration and command line ask for it, has systemd resume and reboot.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tidemark.errors import AnalysisError, MachineError, RebootNeeded
from tidemark.machine.inventory import moment
from tidemark.paths import Workspace, private_directory, sync_directory, write_atomically
from tidemark.runs import serde

UNIT = "tidemark-resume.service"
UNITS = Path("/etc/systemd/system")
SYSTEMD = Path("/run/systemd/system")  # exists if systemd runs the machine
SETTLE_SECONDS = 30.0  # after the boot, whose own work should not be measured


class Restarts(StrEnum):
    """Setting of the command line for restarts, in addition to `cold: reboot` in the configuration."""

    NONE = "none"
    ALLOW = "allow"  # restart the machine, and continue afterwards
    WAIT = "wait"  # stop; the user restarts it and enters the command again


@dataclass(frozen=True, slots=True)
class Resume:
    """Command that a restart interrupts, and the number of restarts that it may still request."""

    config_file: str
    overrides: tuple[str, ...]
    arguments: tuple[str, ...]
    restarts_left: int


@dataclass(frozen=True, slots=True)
class State:
    """State of this boot of the machine; it is stored on disk, and survives the boot."""

    boot_id: str
    used_by: tuple[str, ...]  # series, and other work that would have warmed the machine
    waiting: str | None  # the series for which the next boot is reserved
    resume: Resume | None


def _path(workspace: Workspace) -> Path:
    return workspace.private / "reboots.json"


def read(workspace: Workspace) -> State:
    """Return the stored state as it applies to this boot: after a restart, the boot is unused."""
    path, boot_id = _path(workspace), moment().boot_id
    if not path.exists():
        return State(boot_id, (), None, None)
    try:
        state = serde.read(State, serde.Fields.read(path))
    except AnalysisError as error:
        raise MachineError(f"{error}; remove it, and restart the machine before the next series") from error
    return state if state.boot_id == boot_id else replace(state, boot_id=boot_id, used_by=())


def write(workspace: Workspace, state: State) -> None:
    """Write `state` to disk with fsync: a restart may follow at once."""
    private_directory(workspace.private)
    write_atomically(_path(workspace), serde.to_json(state))


def claim(workspace: Workspace, who: str, alone: bool) -> None:
    """Record that `who` uses this boot; with `alone`, raise RebootNeeded if it was used before."""
    state = read(workspace)
    if alone and state.used_by:
        write(workspace, replace(state, waiting=who))
        raise RebootNeeded(
            f"{who} waits for a restart of the machine: in this boot there was {state.used_by[-1]} already. "
            "Restart it and run the command again; './tidemark all --allow-reboot' does both by itself"
        )
    waiting = None if state.waiting == who else state.waiting
    write(workspace, replace(state, used_by=tuple(dict.fromkeys((*state.used_by, who))), waiting=waiting))


def may_restart() -> None:
    """Raise MachineError if the machine cannot be restarted, or cannot continue by itself afterwards."""
    if os.geteuid() != 0:
        raise MachineError(
            "--allow-reboot: found an account that is not root; only root may restart the machine and install the "
            "unit that goes on afterwards. Use --wait-for-reboot and restart it yourself, or run this as root"
        )
    if not SYSTEMD.is_dir():
        raise MachineError(
            f"--allow-reboot: found no systemd ({SYSTEMD} is missing), which would go on after the restart. "
            "Use --wait-for-reboot and restart the machine yourself"
        )


def unit_text(workspace: Workspace) -> str:
    """Return the systemd unit that runs `tidemark resume` in the workspace at the next boot."""
    log = workspace.results / "logs" / "resume.log"
    keep = {name: os.environ[name] for name in ("PYTHONPATH", "TIDEMARK_CACHE", "PATH") if name in os.environ}
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in sorted(keep.items()))
    return (
        "# Goes on with './tidemark all --allow-reboot' after a restart that it asked for; removes itself at the end.\n"
        "[Unit]\n"
        f"Description=Tidemark goes on in {_literal(str(workspace.root))}\n"
        "After=multi-user.target\n"
        "\n[Service]\n"
        "Type=exec\n"
        f"WorkingDirectory={_literal(str(workspace.root))}\n"
        f"{environment}"
        # Only in a command does a dollar sign begin a variable.
        f"ExecStart={_quoted(sys.executable).replace('$', '$$')} -m tidemark resume\n"
        f"StandardOutput=append:{_literal(str(log))}\n"
        f"StandardError=append:{_literal(str(log))}\n"
        # Waiting for the next restart and interruptions are not failures.
        f"SuccessExitStatus={RebootNeeded.exit_code} 130\n"
        "\n[Install]\n"
        "WantedBy=multi-user.target\n"
    )


def _literal(text: str) -> str:
    """Escape `text` as the rest of a unit file's line: percent signs begin specifiers of systemd."""
    if "\n" in text:
        raise MachineError(f"{text!r}: a path with a line break cannot be put into a systemd unit")
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """Quote `text` as one word of a unit file's command or assignment."""
    escaped = _literal(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def installed_for(units: Path = UNITS) -> str | None:
    """Return the folder in which the installed unit continues; None if there is no unit."""
    with suppress(FileNotFoundError):
        for line in (units / UNIT).read_text().splitlines():
            if line.startswith("WorkingDirectory="):
                return line.removeprefix("WorkingDirectory=").replace("%%", "%")
    return None


def install(workspace: Workspace, units: Path = UNITS) -> None:
    """Install and enable the unit; raise MachineError if another workspace's unit is installed."""
    other = installed_for(units)
    if other is not None and other != str(workspace.root):
        raise MachineError(
            f"{units / UNIT}: is installed for {other}, whose series wait for a restart too. Let them end first, "
            f"or remove it: systemctl disable {UNIT}, then delete the file"
        )
    (workspace.results / "logs").mkdir(parents=True, exist_ok=True)
    write_atomically(units / UNIT, unit_text(workspace))
    wanted = units / "multi-user.target.wants"
    wanted.mkdir(exist_ok=True)
    link = wanted / UNIT
    if not link.is_symlink():
        link.symlink_to(units / UNIT)
    sync_directory(wanted)
    _reload(units)


def remove(workspace: Workspace, units: Path = UNITS) -> None:
    """Remove this workspace's unit; do nothing if there is none."""
    if installed_for(units) == str(workspace.root):
        (units / "multi-user.target.wants" / UNIT).unlink(missing_ok=True)
        (units / UNIT).unlink()
        sync_directory(units)
        _reload(units)


def _reload(units: Path) -> None:
    if units == UNITS:
        _systemctl("daemon-reload")


def restart_machine() -> None:
    """Request a full reboot from systemd: a soft one keeps kernel, page cache and boot id."""
    os.sync()
    _systemctl("reboot")


def _systemctl(*arguments: str) -> None:
    try:
        subprocess.run(["systemctl", *arguments], check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        raise MachineError(f"systemctl {' '.join(arguments)} failed: {said}") from error


def settle() -> None:
    """Wait until `SETTLE_SECONDS` after the boot."""
    time.sleep(max(0.0, SETTLE_SECONDS - moment().uptime_s))
