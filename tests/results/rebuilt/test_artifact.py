"""Tests of the page for evaluators: every claim has a command that makes a plan, a time, and its stored verdict."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.runs.runset import DELTA, DUCKLAKE, INLINED, write_run_set

from tidemark.config import load
from tidemark.pipeline.build import all_claims, books
from tidemark.pipeline.plan import make_plan
from tidemark.pipeline.reference import MAJOR, build_artifact, build_reference, efforts
from tidemark.results.claims.claims import Claim, load_claims
from tidemark.results.claims.judge import unjudged
from tidemark.results.reference.artifact import NOT_KEPT, TEXT
from tidemark.studies.study import registry

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "config.yaml"


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = write_run_set(tmp_path_factory.mktemp("runs"), (DUCKLAKE, INLINED, DELTA), window_s=6.0)
    target = tmp_path_factory.mktemp("kept")
    build_reference(results, target)
    return target


def modes_of(claim: Claim) -> list[str]:
    """Return the modes that a claim's measure names, or uses if it names none."""
    given = dict(claim.measure.arguments)
    several = [str(mode) for mode in given.get("modes", [])]
    return [*claim.measure.modes, *several] if claim.measure.name != "not-here" else []


def test_command_of_each_claim_measures_the_claims_systems_and_modes() -> None:
    wanted: dict[tuple[str, str], set[str]] = {}
    modes: dict[str, set[str]] = {}
    for book in books():
        for claim in load_claims(book):
            command = unjudged(claim, book, "").retest.command
            wanted.setdefault((book.study, command), set()).update(claim.measure.systems)
            if not claim.needs_no_run:
                modes.setdefault(command, set()).update(mode.replace("batch", "batch-1000") for mode in modes_of(claim))
            assert command.endswith("protocol=smoke") == claim.needs_no_run, (
                "sums of printed numbers wait for no window"
            )
    for (study, command), systems in wanted.items():
        series = make_plan(load(SHIPPED, [word for word in shlex.split(command) if "=" in word])).series
        assert {each.study for each in series} == {study}, command
        assert systems <= {each.name for each in series}, command
        assert modes.get(command, set()) <= {each.mode for each in series}, command


def test_each_study_is_listed_with_its_two_protocols() -> None:
    found = efforts(SHIPPED)
    assert {(each.study, each.protocol) for each in found} == {
        (study, protocol) for study in registry() for protocol in ("smoke", "quick")
    }
    for study in registry():
        smoke, quick = (each for each in found if each.study == study)
        assert 0 < smoke.seconds < quick.seconds and smoke.series <= quick.series


def test_each_claim_has_a_row_with_its_stored_verdict(reference: Path) -> None:
    pages = build_artifact(SHIPPED, reference)
    first, page = pages["ARTIFACT.md"], "\n".join(pages.values())
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| <a id=")}
    assert {claim.id for claim in all_claims()} == set(rows)
    assert all(f".md#{claim})" in first and claim in rows for claim in MAJOR) and len(MAJOR) <= 12
    assert len(first.splitlines()) < 90, "two pages"
    assert "not reproduced: " in rows["inlining-single"] or "reproduced: " in rows["inlining-single"]
    assert NOT_KEPT in rows["success-alone"] and "windows of 6 s" in page


@pytest.mark.parametrize("path", [path for path in TEXT["folders"] if path != "reference"])
def test_listed_folders_exist(path: str) -> None:
    assert (ROOT / path).exists()


def test_container_has_the_launchers_python_and_runs_the_launcher() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    (base,) = (line for line in lines if line.startswith("FROM "))
    assert re.fullmatch(r"FROM python:3\.12\.\d+-bookworm", base)
    assert "3.12" in (ROOT / "tidemark").read_text() and 'ENTRYPOINT ["./tidemark"]' in lines
    kept_out = (ROOT / ".containerignore").read_text().split()
    assert {".venv", ".tidemark", "results", "data"} <= set(kept_out)
