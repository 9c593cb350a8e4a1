"""Tests of archives as Workflow Run RO-Crates: the public validator accepts them, and refuses planted defects.

The validator fetches the context of RO-Crate from a public address. Here it runs offline, with the copy that the
package rocrate ships: what is checked is the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.results.archives import rewritten

from tidemark.paths import Workspace
from tidemark.results.archive.crate import METADATA
from tidemark.results.archive.pack import write_archive
from tidemark.software.tools import provide_tool

TESTS = Path(__file__).parents[1]
PROFILE = "workflow-run-crate-0.5"  # with those that it extends: Process Run Crate, Workflow RO-Crate and RO-Crate 1.1
Validate = Callable[[Path], tuple[int, str]]


@pytest.fixture(scope="module")
def validate(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Validate:
    """Return a function that returns the validator's exit code and its report on an archive, with single spaces.

    The report is text, as this release of the validator fails to write JSON of any crate.
    """
    folder = tmp_path_factory.mktemp("validator")
    assert cache
    python = provide_tool("roc-validator", Workspace(folder))
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    subprocess.run([python, TESTS / "crate_context.py", folder / "http"], env=environment, check=True, timeout=60)

    def validated(archive: Path) -> tuple[int, str]:
        report = folder / "report.txt"
        command = [python.with_name("rocrate-validator"), "--no-interactive", "validate", "--offline"]
        command += ["--cache-path", folder / "http", "--profile-identifier", PROFILE]
        command += ["--requirement-severity", "required", "--verbose", "--output-file", report, archive]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, " ".join(report.read_text().split())

    return validated


def archive_of(study: str, folder: Path) -> Path:
    zipfile.ZipFile(TESTS / "smoke" / f"{study}.zip").extractall(folder)
    return write_archive(folder / "results", folder / "archive.zip")


def test_validator_accepts_an_archive(validate: Validate, tmp_path: Path) -> None:
    code, report = validate(archive_of("streams", tmp_path))
    assert code == 0 and f"RO-Crate is a valid {PROFILE}" in report, report


def without_instrument(entities: dict[str, Any]) -> None:
    del entities["#measurement"]["instrument"]


def without_workflow(entities: dict[str, Any]) -> None:
    entities["Snakefile"]["@type"] = "File"


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (without_instrument, "The Action MUST have an instrument property that references the executed tool"),
        (without_workflow, "The Main Workflow must have types File, SoftwareSourceCode, ComputationalWorkflow"),
    ],
)
def test_validator_refuses_a_planted_defect(
    planted: Callable[[dict[str, Any]], None], said: str, validate: Validate, tmp_path: Path
) -> None:
    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        crate = json.loads(content[METADATA])
        planted({each["@id"]: each for each in crate["@graph"]})
        return {**content, METADATA: json.dumps(crate).encode()}

    code, report = validate(rewritten(archive_of("deltars", tmp_path), tmp_path / "bad.zip", change))
    assert code == 1 and f"]: {said}" in report, report
