"""What machine this is, as far as it tells; nothing here names its owner or its network."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil

from tidemark.machine.sampler import DiskCounter


@dataclass(frozen=True, slots=True)
class Inventory:
    os: str
    kernel: str
    cpu_model: str
    cores: int
    threads: int
    memory_bytes: int
    disk_device: str | None
    disk_model: str | None
    disk_rotational: bool | None
    file_system: str | None
    free_bytes: int
    virtualised: str | None  # what the machine runs in, None when it says nothing of the kind
    root: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """What changes from run to run; None where the machine does not tell."""

    boot_id: str
    uptime_s: float
    cpu_mhz: float | None
    temperature_c: float | None


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _virtualised() -> str | None:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "container"
    flags = next((line for line in (_read("/proc/cpuinfo") or "").splitlines() if line.startswith("flags")), "")
    if "hypervisor" in flags.split():
        return f"virtual machine ({_read('/sys/class/dmi/id/sys_vendor') or 'vendor not told'})"
    return None


def _file_system(directory: Path) -> str | None:
    real = directory.resolve()
    best: tuple[int, str | None] = (-1, None)
    for part in psutil.disk_partitions(all=True):
        if real.is_relative_to(part.mountpoint) and len(part.mountpoint) > best[0]:
            best = (len(part.mountpoint), part.fstype)
    return best[1]


def inventory(directory: Path) -> Inventory:
    """The machine, and the disk that holds `directory`."""
    device = DiskCounter(directory).device
    block = Path(f"/sys/class/block/{device}").resolve() if device else None
    whole = block.parent if block and (block / "partition").exists() else block
    rotational = _read(whole / "queue/rotational") if whole else None
    return Inventory(
        os=_os_name(),
        kernel=platform.release(),
        cpu_model=_cpu_model(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        threads=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        disk_device=device,
        disk_model=_read(whole / "device/model") if whole else None,
        disk_rotational=None if rotational is None else rotational == "1",
        file_system=_file_system(directory),
        free_bytes=shutil.disk_usage(directory).free,
        virtualised=_virtualised(),
        root=os.geteuid() == 0,
    )


def moment() -> Moment:
    """The state that may confound a run: when the machine started, how fast and how warm it is now."""
    frequency = psutil.cpu_freq()
    sensors = psutil.sensors_temperatures()
    warmest = max((entry.current for entries in sensors.values() for entry in entries), default=None)
    return Moment(
        boot_id=_read("/proc/sys/kernel/random/boot_id") or "unknown",
        uptime_s=float((_read("/proc/uptime") or "0").split()[0]),
        cpu_mhz=float(frequency.current) if frequency else None,
        temperature_c=warmest,
    )
