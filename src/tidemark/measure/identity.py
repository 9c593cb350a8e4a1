"""Digests of the code behind a run: the measuring code, and the code of the system under test."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tidemark import code

# Packages and files whose code determines what is measured, and how. Planning and analysis are not included, nor are
# the shapes of run files, whose meaning has a version, and the declarations of settings, whose values a run records.
MEASURING = ("machine", "measure", "services", "stream", "studies", "systems", "process_lifetime.py")
FRAME = "tidemark.measure.series"
NOT_ITS_OWN = "studies/study.py"  # what every study has, and no study measures with
DECLARATIONS = "config.py"  # in the folder of a study


@cache
def harness_digest(workload: str) -> str:
    """Return the SHA-256 (hex) of the measuring code for the workload in module `workload`: frame and workload.

    Systems are excluded, so that a new one does not outdate existing runs: each system has its own digest.
    """
    return code.digest(_measuring(code.led_to(FRAME) | code.led_to(workload)))


@cache
def client_digest(system: str) -> str:
    """Return the SHA-256 (hex) of the code of the system in module `system`, and of the servers that it names."""
    return code.digest(_measuring(code.led_to(system)))


def _measuring(paths: frozenset[Path]) -> list[Path]:
    measuring = [path for path in code.files(*MEASURING) if path in paths and path != code.PACKAGE / NOT_ITS_OWN]
    return [path for path in measuring if path.name != DECLARATIONS]
