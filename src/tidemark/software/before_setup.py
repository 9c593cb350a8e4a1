"""`./tidemark doctor` before set-up: what set-up needs, by any Python from 3.9 on.

The launcher runs this file by its path. It uses only the standard library, and no syntax that Python 3.9 lacks.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator

ENOUGH_PROCESSORS = 2
ENOUGH_MEMORY = 6 << 30
ENOUGH_DISK = 10 << 30
MACHINE = "Linux x86_64"  # of the locks
UNFIT = 13  # exit code of MachineError
PROCESSORS_FOR = "broker, catalog and client need two at least"
MEMORY_FOR = "the servers take some 2 GB, the rest is page cache"
DISK_FOR = "protocol 'thesis' takes more: some 56 GB"
NO_PYTHON = "install python3.12 with its venv package, or uv, or pip, which fetches uv (Debian, Ubuntu: python3-pip)"
SET_UP = "not done for a measurement; 'all' does it: 2 GB, a minute or two"
LATER = "'./tidemark doctor' then looks at ports, page cache, disk counter and dataset as well"


def findings(root: str, python: str, uv: str, pip: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield what was looked at, what was found, the verdict (good, note or bad), and advice where it is not good.

    `python` is a Python 3.12 that can make an environment, `uv` a program that can get one, and `pip` a Python with
    pip, which can get uv; each is empty if there is none.
    """
    found = f"{platform.system()} {platform.machine()}"
    yield _judged("system", found, found == MACHINE, f"the locks are for {MACHINE}")
    if python or uv:
        yield "Python", python or f"none of 3.12 with its venv package; {uv} gets one", "good", ""
    elif pip:
        yield "Python", f"none of 3.12 with its venv package; the pip of {pip} gets uv, and uv gets one", "good", ""
    else:
        yield "Python", "none of 3.12 with its venv package", "bad", NO_PYTHON
    processors = os.cpu_count() or 1
    yield _judged("processors", str(processors), processors >= ENOUGH_PROCESSORS, PROCESSORS_FOR)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield _judged("memory", f"{memory / (1 << 30):.1f} GiB", memory >= ENOUGH_MEMORY, MEMORY_FOR, "note")
    free = shutil.disk_usage(root).free
    yield _judged("free disk", f"{free / (1 << 30):.1f} GiB", free >= ENOUGH_DISK, DISK_FOR, "note")
    yield "set-up", SET_UP, "note", LATER


def _judged(what: str, found: str, good: bool, advice: str, otherwise: str = "bad") -> tuple[str, str, str, str]:
    return (what, found, "good", "") if good else (what, found, otherwise, advice)


def main(root: str, python: str, uv: str, pip: str, *words: str) -> int:
    """Print the findings, as JSON with --json; return exit code 0 if set-up can be done, else that of MachineError."""
    found = list(findings(root, python, uv, pip))
    if "--json" in words:
        keys = ("what", "found", "verdict", "advice")
        print(json.dumps([dict(zip(keys, each)) for each in found], indent=1))  # noqa: B905  not in 3.9
    else:
        marks = {"good": "ok", "note": "note", "bad": "no"}
        for what, value, verdict, advice in found:
            print(f"{marks[verdict]:5} {what:11} {value}{f' ({advice})' if advice else ''}")
    return UNFIT if any(verdict == "bad" for _, _, verdict, _ in found) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
