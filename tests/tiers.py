"""Tiers of tests, by folder, and the command that runs them: `./tidemark test`.

A folder belongs to the tier that names it or the nearest folder above it; a folder that no tier names is refused. The
tiers run one after the other, each in several processes; tests marked `alone` follow in one. While the first one runs,
servers and environments of the others are fetched. A failing test is printed when it fails. At the end come the time
of each tier, against its budget, and the files whose tests took most processor time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tidemark.process_lifetime import heed_interruptions, run_guarded

TESTS = Path(__file__).parent
REPORTS = TESTS.parent / ".tidemark" / "tests"
NO_TESTS = 5  # pytest's exit code if no test was selected
MOST = 20
CPU = "cpu_s"  # the property of each test in the reports, written by tests/conftest.py
PROGRAMS, TOOLS = ("iceberg-rest", "kafka", "postgres"), ("lance",)  # what the default tier uses
ALONE = "pytest.mark.alone("  # in a file with tests that need the machine for themselves
QUICK_JVM = "-XX:TieredStopAtLevel=1"
PARALLEL = ["--dist", "loadscope", "--no-loadscope-reorder"]
# Some machines forbid Python to keep compiled modules. Pipelines start thousands of processes, which would all compile.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The processes of tests share the cores, as steps of the analysis do; further threads of NumPy in each would only spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclass(frozen=True, slots=True)
class Tier:
    """Folders whose tests run together in some processes; this tier and those before it should end in the minutes."""

    name: str
    minutes: int
    processes: int
    folders: tuple[str, ...]


TIERS = (
    Tier(
        "default",
        5,
        2,  # these compute; the tests of the later tiers wait for servers and windows half of their time
        (
            ".",
            "analysis",
            "cli",
            "conformance/core",
            "dataset",
            "machine",
            "measure",
            "pipeline",
            "planner",
            "results",
            "runs",
            "end_to_end/smoke",
            "software",
            "stream",
            "studies",
        ),
    ),
    Tier(
        "integration",
        15,
        3,
        (
            "analysis/slow",
            "cli/slow",
            "conformance",
            "machine/slow",
            "pipeline/slow",
            "results/slow",
            "services",
            "studies/processes",
        ),
    ),
    Tier(
        "all",
        45,
        5,
        (
            # First those with tests of many minutes, so that no process is left with one when the others have ended.
            "stacks",
            "nix",
            "end_to_end",
            "conformance/slow",
            "services/slow",
            "findings",
            "cli/pages",
            "results/rebuilt",
            "scale",
        ),
    ),
)


def tier_of(file: Path) -> Tier:
    """Return the tier of a test file, given relative to `tests/`; raise ValueError if no tier names its folder."""
    folders = [folder.as_posix() for folder in file.parents]  # the nearest first; the last is "."
    for folder in folders[:-1] or folders:
        for tier in TIERS:
            if folder in tier.folders:
                return tier
    raise ValueError(f"tests/{file.parent.as_posix()}: no tier of tests/tiers.py names this folder")


def paths(tier: Tier) -> list[str]:
    """Return what pytest collects for a tier: its folders, and the files directly in `tests/` if it has these."""
    files = [file.relative_to(TESTS.parent).as_posix() for file in sorted(TESTS.glob("test_*.py"))]
    return [path for name in tier.folders for path in (files if name == "." else [f"tests/{name}"])]


def alone(tier: Tier) -> list[str]:
    """Return the files of a tier that mark tests `alone`; to collect all of its tests once more takes ten seconds."""
    files = [file for file in sorted(TESTS.rglob("test_*.py")) if ALONE in file.read_text()]
    return [str(file.relative_to(TESTS.parent)) for file in files if tier_of(file.relative_to(TESTS)) is tier]


def times(report: Path) -> dict[str, tuple[float, float]]:
    """Return the CPU time and the duration of the tests of each file in a JUnit report, in seconds, with fixtures."""
    found: dict[str, tuple[float, float]] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        file = case.get("classname", "")
        cpu = sum(float(each.get("value", 0)) for each in case.iter("property") if each.get("name") == CPU)
        found[file] = (found.get(file, (0, 0))[0] + cpu, found.get(file, (0, 0))[1] + float(case.get("time", 0)))
    return found


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def python(module: str, *words: str, **options: Any) -> int:
    """Run a module and return its exit code; raise KeyboardInterrupt if it was interrupted. `options` go to Popen."""
    status = run_guarded([sys.executable, "-m", module, *words], **options)
    if status is None:
        raise KeyboardInterrupt
    return status


def set_up(programs: Sequence[str], tools: Iterable[str], **options: Any) -> int:
    """Fetch programs, all if none is named, and make environments of tools; return the first exit code other than 0."""
    failed = python("tidemark", "provision", *programs, **options)
    return failed or next(filter(None, (python("tidemark", "tool", name, **options) for name in tools)), 0)


class SetUp(Thread):
    """Fetches what the later tiers use. It waits for the network half of the time, so that other tests can run."""

    def __init__(self) -> None:
        super().__init__(daemon=True)  # an interrupted process does not wait for it, and its children end as well
        self.log, self.status = REPORTS / "set-up.log", 1
        self.start()

    def run(self) -> None:
        tools = sorted(path.stem for path in (TESTS.parent / "envs" / "tools").glob("*.lock"))
        with self.log.open("w") as log:
            self.status = set_up((), tools, stdout=log, stderr=log)

    def end(self) -> int:
        """Wait until everything is on the disk, and return the exit code; if it is not 0, print what was said."""
        self.join()
        os.sync()  # tests that run alone count what is written
        if self.status:
            print(self.log.read_text(), file=sys.stderr)
        return self.status


def run(chosen: tuple[Tier, ...], long: bool) -> int:
    """Run the chosen tiers and return the first exit code that is not 0; the JUnit reports are kept in `REPORTS`."""
    began = time.monotonic()
    REPORTS.mkdir(mode=0o700, parents=True, exist_ok=True)
    if status := set_up(PROGRAMS, TOOLS):
        return status
    rest = SetUp() if len(chosen) > 1 else None
    lines, spent = [f"{'set-up':12} {minutes(time.monotonic() - began)}, counted in no tier"], []
    failed, began, which = 0, time.monotonic(), "" if long else " and not long"
    for tier in chosen:
        started = time.monotonic()
        together = ["-n", str(tier.processes), *PARALLEL, *paths(tier)]
        for when, words in (("not alone", together), ("alone", alone(tier))):
            if when == "alone" and rest and (status := rest.end()):
                return status
            if not words:
                continue
            report = REPORTS / f"{tier.name}-{when.replace(' ', '-')}.xml"
            report.unlink(missing_ok=True)
            status = python("pytest", "-m", f"{tier.name} and {when}{which}", f"--junitxml={report}", *words)
            failed = failed or (0 if status == NO_TESTS else status)
            spent += [(*seconds, file) for file, seconds in times(report).items()]
        own, so_far = time.monotonic() - started, time.monotonic() - began
        lines.append(f"{tier.name:12} {minutes(own)}; so far {minutes(so_far)} of {tier.minutes} min")
        if so_far > 60 * tier.minutes and not long:
            lines.append(f"OVER BUDGET: up to the tier '{tier.name}' the tests may take {tier.minutes} min")
    print(f"\nThe {MOST} files whose tests took most CPU time; servers count in the file that stops them:")
    for cpu, seconds, file in sorted(spent, reverse=True)[:MOST]:
        print(f"  {cpu:6.1f} s of CPU time in {seconds:6.1f} s  {file}")
    print("\n".join(["", *lines]))
    return failed


def main() -> int:
    heed_interruptions()
    parser = argparse.ArgumentParser(prog="tidemark test")
    parser.add_argument("--tiers", type=int, default=1, choices=range(1, len(TIERS) + 1))
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    return run(TIERS[: given.tiers], given.long)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
