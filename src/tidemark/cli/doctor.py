"""`tidemark doctor`: check of this machine's suitability for a measurement."""

from __future__ import annotations

import platform
import shutil
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from tidemark.cli.listing import print_json
from tidemark.dataset import can_download
from tidemark.errors import MachineError
from tidemark.machine.cold import may_drop_caches, possible_methods
from tidemark.machine.disk import DiskCounter
from tidemark.machine.inventory import inventory
from tidemark.paths import Workspace
from tidemark.services.programs.process import free_ports
from tidemark.software import before_setup
from tidemark.software.verify import verify as verify_all


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
    methods, drops = ", ".join(possible_methods()), may_drop_caches()
    downloadable, why = can_download()
    disk = DiskCounter(workspace.root)
    return [
        Finding("system", f"{machine.os}, Linux {machine.kernel}", "good"),
        Finding("Python", platform.python_version(), "good"),
        _judged(
            machine.threads >= before_setup.ENOUGH_PROCESSORS,
            "processors",
            f"{machine.threads} ({machine.cpu_model})",
            before_setup.PROCESSORS_FOR,
            otherwise="bad",
        ),
        _sized("memory", machine.memory_bytes, before_setup.ENOUGH_MEMORY, before_setup.MEMORY_FOR),
        _sized("free disk", machine.free_bytes, before_setup.ENOUGH_DISK, before_setup.DISK_FOR),
        _ports(),
        Finding("account", "root (the servers will run as `nobody`)" if machine.root else "not root", "good"),
        _judged(drops, "cold methods", methods, "without root the page cache can only be dropped file by file"),
        _judged(disk.device is not None, "disk counter", disk.device or "none", disk.reason or ""),
        _judged(
            not machine.virtualised,
            "machine",
            machine.virtualised or "bare metal, as far as it tells",
            "a shared machine is noisier than a laptop; trust ratios",
        ),
        _judged(
            downloadable,
            "dataset",
            "can be downloaded" if downloadable else f"cannot be downloaded: {why}",
            "give dataset.path, or a synthetic replica is used, and every result states it",
        ),
        Finding("nix", shutil.which("nix") or "not on PATH", "good", "only for './tidemark --nix'"),
    ]


def _judged(good: bool, what: str, found: str, advice: str, otherwise: str = "note") -> Finding:
    """Return a good finding, or one with the verdict `otherwise` and the advice."""
    return Finding(what, found, "good") if good else Finding(what, found, otherwise, advice)


def _sized(what: str, size: int, enough: int, advice: str) -> Finding:
    return _judged(size >= enough, what, f"{size / (1 << 30):.1f} GiB", advice)


def _ports() -> Finding:
    try:
        free_ports(4)
    except OSError as error:
        return Finding("loopback ports", f"none free: {error.strerror}", "bad", "the servers listen on 127.0.0.1")
    return Finding("loopback ports", "free", "good")


def provisioned(workspace: Workspace) -> list[Finding]:
    """Return a finding for every provisioned artifact, verified by hash."""
    return [
        _judged(
            not each.problems,
            str(each.path),
            "; ".join(each.problems) or each.how,
            "'./tidemark all --verify' takes it out of use; the next start rebuilds it",
            otherwise="bad",
        )
        for each in verify_all(workspace)
    ]


def examine(workspace: Workspace, *, verify: bool = False, as_json: bool = False) -> int:
    """Print the findings; return exit code 0 if a measurement is possible, else that of MachineError."""
    found = findings(workspace) + (provisioned(workspace) if verify else [])
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        _print_table(found)
    return MachineError.exit_code if any(each.verdict == "bad" for each in found) else 0


def _print_table(found: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("", "what", "found", "advice"):
        table.add_column(title)
    marks = {"good": "[green]ok[/]", "note": "[yellow]note[/]", "bad": "[red]no[/]"}
    for each in found:
        table.add_row(marks[each.verdict], each.what, each.found, each.advice)
    Console().print(table)
