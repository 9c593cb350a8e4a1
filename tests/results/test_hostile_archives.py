"""Tests of untrusted archives: only printable text is shown, no path leads outside, and memory use is bounded."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from tests.results.archives import bomb, kept_as_it_was, listing, planned, refused, relisted, relisted_in, rewritten
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark.errors import AnalysisError
from tidemark.results.archive.crate import METADATA
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import PLAN, unpack_archive
from tidemark.runs.runset import RunSet


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = write_run_set(tmp_path_factory.mktemp("hostile"), [DUCKLAKE], window_s=2.0)
    return write_archive(results, tmp_path_factory.mktemp("zip") / "runs.zip")


@pytest.mark.parametrize("directory", ["/any/where", "results/../../..", "results/runs/../../..", "results/runs/none"])
def test_plan_with_a_path_outside_the_archive_is_refused(archive: Path, tmp_path: Path, directory: str) -> None:
    bad = rewritten(archive, tmp_path / "bad.zip", planned(directory=directory))
    refused(bad, tmp_path, f"key 'series[0].directory': found '{directory}'")


def test_title_is_reduced_to_one_printable_line(archive: Path, tmp_path: Path) -> None:
    title = "Duck\x1b]0;mine\x07\r\nLake\u202e 10\N{NO-BREAK SPACE}% \ud800"
    odd = rewritten(archive, tmp_path / "odd.zip", planned(title=title))
    run_set = RunSet.load(unpack_archive(odd, tmp_path / "unpacked").parent)
    titles = {series.title for series in run_set.series}
    assert "Duck\ufffd]0;mine\ufffd Lake\ufffd 10\N{NO-BREAK SPACE}% \ufffd" in titles


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("results/x", "results/x/y"), "holds 'results/x' as a file and 'results/x/y' in it"),
        (("results/" + "x" * 300,), "has a name that is too long"),
        (("results/" + "x/" * 600 + "x",), "has a name that is too long"),
        (("src/tidemark/errors.py",), "allowed: results, envs, config.yaml, Snakefile, workflow, README.md, LICENSE"),
    ],
)
def test_invalid_member_names_are_refused_before_anything_changes(
    archive: Path, tmp_path: Path, extra: tuple[str, ...], message: str
) -> None:
    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        for name in extra:
            content = listing(content, name, b"x")
        return content

    bad = rewritten(archive, tmp_path / "bad.zip", change)
    refused(bad, tmp_path, message)
    kept_as_it_was(bad, tmp_path / "earlier", message)


def test_program_that_unpacks_is_not_replaced(archive: Path, tmp_path: Path) -> None:
    """Unpack other files under the names of the workflow, which an archive may hold, over a workspace that has some."""
    names = ("Snakefile", "workflow/Snakefile", "workflow/rules/common.smk", "README.md", "LICENSE")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")

    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        for name in names:
            content = relisted(content, name, b"theirs")
        return content

    bad = rewritten(archive, tmp_path / "bad.zip", change)
    assert unpack_archive(bad, tmp_path).is_file()
    assert {(tmp_path / name).read_text() for name in names} == {"mine"}
    refused(relisted_in(archive, tmp_path / "worse.zip", "workflow", b"theirs"), tmp_path, "holds 'workflow' as a file")
    changed = rewritten(archive, tmp_path / "changed.zip", lambda content: {**content, "Snakefile": b"x"})
    refused(changed, tmp_path, "'Snakefile' has 1 bytes, listed are")


def test_damage_found_late_changes_nothing_either(archive: Path, tmp_path: Path) -> None:
    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        last = [name for name in content if name.startswith("results/") and name != PLAN][-1]
        return {**content, last: content[last][:-1] + b"?"}

    bad = rewritten(archive, tmp_path / "bad.zip", change)
    kept_as_it_was(bad, tmp_path / "earlier", "damaged or changed")
    deep = relisted_in(archive, tmp_path / "deep.zip", PLAN, b"[" * 200_000)
    kept_as_it_was(deep, tmp_path / "earlier", "hundreds deep")


def test_deeply_nested_lists_are_refused(archive: Path, tmp_path: Path) -> None:
    deep = b"[" * 200_000
    refused(relisted_in(archive, tmp_path / "a.zip", PLAN, deep), tmp_path, "hundreds deep")
    crate = rewritten(archive, tmp_path / "b.zip", lambda content: {**content, METADATA: deep})
    refused(crate, tmp_path, f"{METADATA}: cannot be read as JSON")
    name = next(each for each in zipfile.ZipFile(archive).namelist() if each.endswith("run.json"))
    plan = unpack_archive(relisted_in(archive, tmp_path / "c.zip", name, deep), tmp_path / "unpacked")
    with pytest.raises(AnalysisError, match="hundreds deep"):
        RunSet.load(plan.parent)


def test_invalid_numbers_are_refused(archive: Path, tmp_path: Path) -> None:
    for number in ("NaN", "Infinity", "-Infinity", "1e400", str(2**63)):
        bad = rewritten(archive, tmp_path / "bad.zip", lambda content, n=number: with_seed(content, n))
        refused(bad, tmp_path, "key 'config.seed': found")


def with_seed(content: dict[str, bytes], number: str) -> dict[str, bytes]:
    plan = json.loads(content[PLAN])
    plan["config"]["seed"] = "HERE"
    return relisted(content, PLAN, json.dumps(plan).replace('"HERE"', number).encode())


def test_decompression_bomb_is_refused(archive: Path, tmp_path: Path) -> None:
    size = 120 * archive.stat().st_size >> 20 << 20
    refused(bomb(archive, tmp_path / "a.zip", "results/tables/zeros.csv", max(size, 80 << 20)), tmp_path, "100 times")
    bzip = bomb(archive, tmp_path / "b.zip", "results/tables/zeros.csv", 1 << 20, zipfile.ZIP_BZIP2)
    refused(bzip, tmp_path, "is packed by a method that an archive does not use")
    large = bomb(archive, tmp_path / "c.zip", "results/large.json", 65 << 20, zipfile.ZIP_STORED)
    refused(large, tmp_path, "allowed: 67,108,864, but for Parquet")


def test_members_are_unpacked_in_chunks(archive: Path, tmp_path: Path) -> None:
    large = bomb(archive, tmp_path / "large.zip", "results/tables/zeros.csv", 60 << 20, zipfile.ZIP_STORED)
    tracemalloc.start()
    try:
        unpack_archive(large, tmp_path / "unpacked")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 << 20
    assert not (tmp_path / "unpacked" / "results" / "tables").exists()
