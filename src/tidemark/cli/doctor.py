"""`tidemark doctor`: check of this machine's suitability for a measurement."""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tidemark.dataset import can_download
from tidemark.errors import MachineError
from tidemark.machine.cold import may_drop_caches, possible_methods
from tidemark.machine.disk import DiskCounter
from tidemark.machine.inventory import inventory
from tidemark.paths import Workspace
from tidemark.services.programs.process import free_ports
from tidemark.software.verify import verify as verify_all

ENOUGH_MEMORY = 6 << 30
ENOUGH_DISK = 10 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """Line of the report; a measurement is possible unless a finding is bad."""

    what: str
    found: str
    verdict: str  # good | note | bad
    advice: str = ""


def findings(workspace: Workspace) -> list[Finding]:
    """Return the findings, in the order of the report."""
    machine = inventory(workspace.root)
    methods = ", ".join(possible_methods())
    downloadable, why = can_download()
    disk = DiskCounter(workspace.root)
    return [
        Finding("system", f"{machine.os}, Linux {machine.kernel}", "good"),
        Finding("Python", platform.python_version(), "good"),
        Finding(
            "processors",
            f"{machine.threads} ({machine.cpu_model})",
            "good" if machine.threads >= 2 else "bad",
            "" if machine.threads >= 2 else "broker, catalog and client need two at least",
        ),
        _sized("memory", machine.memory_bytes, ENOUGH_MEMORY, "the servers take some 2 GB, the rest is page cache"),
        _sized("free disk", machine.free_bytes, ENOUGH_DISK, "protocol 'thesis' takes more: some 40 GB"),
        _ports(),
        Finding(
            "account",
            "root (the servers will run as `nobody`)" if machine.root else "not root",
            "good",
        ),
        Finding(
            "cold methods",
            methods,
            "good" if may_drop_caches() else "note",
            "" if may_drop_caches() else "without root the page cache can only be dropped file by file",
        ),
        Finding(
            "disk counter",
            disk.device or "none",
            "good" if disk.device else "note",
            disk.reason or "",
        ),
        Finding(
            "machine",
            machine.virtualised or "bare metal, as far as it tells",
            "note" if machine.virtualised else "good",
            "a shared machine is noisier than a laptop; trust ratios" if machine.virtualised else "",
        ),
        Finding(
            "dataset",
            "can be downloaded" if downloadable else f"cannot be downloaded: {why}",
            "good" if downloadable else "note",
            "" if downloadable else "give dataset.path, or a synthetic replica is used, and every result states it",
        ),
        Finding("nix", shutil.which("nix") or "not on PATH", "good", "only for './tidemark --nix'"),
    ]


def _sized(what: str, size: int, enough: int, advice: str) -> Finding:
    good = size >= enough
    return Finding(what, f"{size / (1 << 30):.1f} GiB", "good" if good else "note", "" if good else advice)


def _ports() -> Finding:
    try:
        free_ports(4)
    except OSError as error:
        return Finding("loopback ports", f"none free: {error.strerror}", "bad", "the servers listen on 127.0.0.1")
    return Finding("loopback ports", "free", "good")


def provisioned(workspace: Workspace) -> list[Finding]:
    """Return a finding for every provisioned artifact, verified by hash."""
    return [
        Finding(
            str(each.path),
            "; ".join(each.problems) or each.how,
            "bad" if each.problems else "good",
            "'./tidemark all --verify' takes it out of use; the next start rebuilds it" if each.problems else "",
        )
        for each in verify_all(workspace)
    ]


def examine(workspace: Workspace, *, verify: bool = False) -> int:
    """Print the findings; return exit code 0 if a measurement is possible, else that of MachineError."""
    table = Table(box=None, pad_edge=False)
    for title in ("", "what", "found", "advice"):
        table.add_column(title)
    marks = {"good": "[green]ok[/]", "note": "[yellow]note[/]", "bad": "[red]no[/]"}
    found = findings(workspace) + (provisioned(workspace) if verify else [])
    for each in found:
        table.add_row(marks[each.verdict], each.what, each.found, each.advice)
    Console().print(table)
    return MachineError.exit_code if any(each.verdict == "bad" for each in found) else 0
