"""Inventory of the machine, as far as it can be read; nothing here names its owner or its network."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tidemark.machine.disk import DiskCounter
from tidemark.runs.circumstances import Machine

MACHINE_ID = Path("/etc/machine-id")
MEMORY_STEP = 256 << 20  # the memory that a kernel reserves varies by some megabytes between boots


@dataclass(frozen=True, slots=True)
class Moment:
    """Machine state that changes from run to run; None where it cannot be read."""

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
    lines = (_read("/proc/cpuinfo") or "").splitlines()
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _virtualised() -> str | None:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "container"
    flags = next((line for line in (_read("/proc/cpuinfo") or "").splitlines() if line.startswith("flags")), "")
    if "hypervisor" in flags.split():
        return f"virtual machine ({_read('/sys/class/dmi/id/sys_vendor') or 'vendor not reported'})"
    return None


def _file_system(directory: Path) -> str | None:
    real = directory.resolve()
    parts = [part for part in psutil.disk_partitions(all=True) if real.is_relative_to(part.mountpoint)]
    return str(max(parts, key=lambda part: len(part.mountpoint)).fstype) if parts else None


def inventory(directory: Path) -> Machine:
    """Return the description of the machine, and of the disk that holds `directory`."""
    device = DiskCounter(directory).device
    block = Path(f"/sys/class/block/{device}").resolve() if device else None
    whole = block.parent if block and (block / "partition").exists() else block
    rotational = _read(whole / "queue/rotational") if whole else None
    found = Machine(
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
    return replace(found, identity=_identity(found, _read(MACHINE_ID)))


def identity(directory: Path) -> str:
    """Return 16 hex digits that distinguish the machine, with the disk that holds `directory`, from others."""
    return str(inventory(directory).identity)


def _identity(machine: Machine, machine_id: str | None) -> str:
    """Hash what makes measurements of two machines incomparable, and the machine id, salted to keep it secret."""
    memory = round(machine.memory_bytes / MEMORY_STEP)
    disk = [machine.disk_model, machine.disk_rotational, machine.file_system]
    salted = None if machine_id is None else hashlib.sha256(f"tidemark {machine_id}".encode()).hexdigest()
    known = [machine.cpu_model, machine.threads, machine.kernel, memory, *disk, salted]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def moment() -> Moment:
    """Return the state that may confound a run: boot id, uptime, and the current clock rate and temperature."""
    frequency = psutil.cpu_freq()
    sensors = psutil.sensors_temperatures()
    warmest = max((entry.current for entries in sensors.values() for entry in entries), default=None)
    return Moment(
        boot_id=_read("/proc/sys/kernel/random/boot_id") or "unknown",
        uptime_s=float((_read("/proc/uptime") or "0").split()[0]),
        cpu_mhz=float(frequency.current) if frequency else None,
        temperature_c=warmest,
    )
