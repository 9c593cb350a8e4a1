"""By what a run was made: digests of the code that measures, and of the code of the system that was measured."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tidemark import code

# Rooms and files whose code decides what is measured, and how; what plans and what analyses is not among them. The
# shapes of run files are not either: what they mean has a version.
MEASURING = ("machine", "measure", "services", "stream", "studies", "systems", "lifetime.py")
FRAME = "tidemark.measure.series"
NOT_ITS_OWN = "studies/registry.py", "studies/study.py"


@cache
def harness_digest(workload: str) -> str:
    """SHA-256, in hex, of the code that measures with the workload of the module `workload`: the frame, and all of its.

    Systems are not in it, so that one more makes no run old: each has a digest of its own.
    """
    return code.digest(_measuring(code.led_to(FRAME) | code.led_to(workload)))


@cache
def client_digest(system: str) -> str:
    """SHA-256, in hex, of the code of the system in the module `system`, with that of the servers that it names."""
    return code.digest(_measuring(code.led_to(system)))


def _measuring(paths: frozenset[Path]) -> list[Path]:
    others = {code.PACKAGE / name for name in NOT_ITS_OWN}
    return [path for path in code.files(*MEASURING) if path in paths and path not in others]
