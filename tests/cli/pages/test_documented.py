"""Tests of what the documents name: commands are understood, those that measure nothing run, and paths exist."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.documents import PAGES, REPOSITORY, Places, commands, complaints, paths, spans, words_of
from tests.runs.runset import DELTA, DUCKLAKE, INLINED, NULL, PYICEBERG, batched, write_run_set
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.cli.planning import UPKEEP_PRESET
from tidemark.pipeline import build
from tidemark.results.archive.pack import write_archive

# Commands that measure, fetch, test, restart, contact a server or write source; all others run here.
ELSEWHERE = {
    "all",
    "test",
    "overhead",
    "anatomy",
    "releases",
    "provision",
    "tool",
    "stack",
    "finding",
    "resume",
    "new",
    "docs",
    "open",
}
# Only the pipeline itself makes them; tests/end_to_end/smoke/test_smoke.py checks them.
OF_THE_PIPELINE = {
    *("results/logs/", "results/logs/snakemake.log", "results/logs/resume.log", "results/runs/.../run-0/run.json"),
    "results/runs/<workload>/<system>/<mode>/<fingerprint>/run-N/",
}
FIRST = (
    "README.md",
    "ARTIFACT.md",
    "CONTRIBUTING.md",
    "docs/findings.md",
    "docs/studies.md",
    *(page for page in PAGES if page.startswith("docs/studies/")),
)  # name commands and paths
KINDS = ("database", "tables", "figures", "claims", "paper", "report")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of the study `streams` under two stacks, made by all analysis steps of the pipeline."""
    models = (DUCKLAKE, INLINED, PYICEBERG, DELTA, NULL, batched(DUCKLAKE, median_ms=30.0), batched(DELTA))
    now = tuple(replace(model, stack="current") for model in (DUCKLAKE, PYICEBERG))
    made = write_run_set(tmp_path_factory.mktemp("documented"), (*models, *now), window_s=3.0)
    for kind in KINDS:
        getattr(build, f"build_{kind}")(made)
    return made


@pytest.fixture(scope="module")
def places(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("places")
    archive = write_archive(results, folder / "archive.zip")
    trips = folder / "yellow_tripdata_2025-11.parquet"
    pq.write_table(pa.table({"tpep_pickup_datetime": pa.array([0], pa.timestamp("us"))}), trips)
    (folder / "requirements.in").write_text("duckdb\n")
    by_word = {"A": results, "B": archive, "ARCHIVE": archive, "ARCHIVE...": archive, "FILE": archive}
    return Places(by_word | {"requirements.in": folder / "requirements.in"}, trips)


@pytest.fixture(scope="module")
def workspace(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder like a clone with results of one study; commands write into it."""
    folder = tmp_path_factory.mktemp("workspace")
    for name in (*PAGES, "config.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    shutil.copytree(REPOSITORY / "reference", folder / "reference")
    (folder / "results").symlink_to(results)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("workspace")
def test_everything_that_a_page_names_exists(page: str, places: Places, results: Path) -> None:
    text = (REPOSITORY / page).read_text()
    assert list(spans(text)) and (page not in FIRST or (list(commands(text)) and list(paths(text))))
    # The commands of claims are planned when their pages are made.
    planned = page != "ARTIFACT.md" and "/claims/" not in page
    assert complaints(text, places, results, OF_THE_PIPELINE, planned=planned) == []


PLANTED = {
    "./tidemark list series": "./tidemark list series --protocol smoke",
    "./tidemark doctor": "./tidemark docter",
    "protocol=smoke ": "protocl=smoke ",
    "'streams.modes=[batch]'": "'streams.modes=[batches]'",
    "`--writers`": "`--writer`",
    "`./tidemark show claim ID`": "`./tidemark show claim ID --result reference`",
    "`./tidemark compare A B`": "`./tidemark compare A`",
    "--config 'studies=[freshness]' repeats=2": "--config 'studies=[freshness]' repeat=2",
    "`results/tables/attempts.md`": "`results/tables/attempt.md`",
    "results/tables/streams/disk.md": "results/tables/disk.md",
    "(CONTRIBUTING.md)": "(CONTRIBUTE.md)",
    "'stacks=[thesis, current]'": "'stacks=[thesis, currant]'",
}


@pytest.mark.parametrize("right", PLANTED)
@pytest.mark.usefixtures("workspace")
def test_planted_error_in_a_page_is_found(right: str, places: Places, results: Path) -> None:
    for section in "\n## ".join(everywhere()).split("\n## "):
        if right in section:
            wrong = complaints(section.replace(right, PLANTED[right], 1), places, results, OF_THE_PIPELINE)
            assert len(wrong) == 1, wrong
            return
    pytest.fail(f"no page has {right}")


def everywhere() -> list[str]:
    """Return the text of the pages that are not generated as a whole."""
    generated = ("ARTIFACT.md", "docs/findings.md", "docs/claims/")
    return [(REPOSITORY / page).read_text() for page in PAGES if not page.startswith(generated)]


def runnable() -> list[str]:
    """Return each documented command that measures nothing, once."""
    found = dict.fromkeys(each for page in PAGES for each in commands((REPOSITORY / page).read_text()))
    return [each for each in found if each.split()[1] not in ELSEWHERE]


def test_commands_are_run_here() -> None:
    assert {each.split()[1] for each in runnable()} >= {
        "doctor", "list", "show", "advise", "compare", "archive", "site", "keep", "artifact", "analyse",
    }  # fmt: skip


@pytest.mark.parametrize("command", runnable())
def test_documented_command_without_measurement_runs(command: str, places: Places, workspace: Path) -> None:
    words = words_of(command, places)
    if words[0] == "archive":
        words[1] = str(workspace / "mine.zip")
    done = CliRunner().invoke(app, words)
    if "--upkeep" in words:  # of runs without a policy
        assert f"./tidemark all --preset {UPKEEP_PRESET} " in str(done.exception)
        return
    if words[0] == "advise":  # of runs with two batch sizes
        assert "no system is predicted" in str(done.exception) and "./tidemark all --preset advise (" in done.stdout
        return
    assert done.exit_code == 0, (words, done.output, done.exception)
    assert done.stdout.strip() or words[0] in ("analyse",), words


def test_generated_pages_are_written_only_to_a_folder_that_is_named(workspace: Path) -> None:
    page = workspace / "docs" / "commands.md"
    (before, _) = page.read_text(), page.write_text("of yesterday\n")
    assert "tidemark: would write docs/commands.md\n" in CliRunner().invoke(app, ["artifact"]).stdout
    assert page.read_text() == "of yesterday\n"
    assert "tidemark: wrote docs/commands.md\n" in CliRunner().invoke(app, ["artifact", "."]).stdout
    assert page.read_text() == before


@pytest.mark.parametrize("place", ["results", "reference", "reference/streams"])
@pytest.mark.parametrize(
    "command", [("list", "claims"), ("show", "claim", "inlining-single"), ("show", "claim", "success-alone")]
)
def test_claim_commands_accept_results_of_one_study_and_reference_results(
    command: tuple[str, ...], place: str, workspace: Path
) -> None:
    done = CliRunner().invoke(app, [*command, "--results", str(workspace / place)])
    assert done.exit_code == 0, (done.output, done.exception)


@pytest.mark.parametrize("a", ["results", "reference", "reference/streams", "archive"])
@pytest.mark.parametrize("b", ["results", "reference", "archive"])
def test_any_two_result_sets_are_compared(a: str, b: str, places: Places, workspace: Path) -> None:
    one, other = (str(places.by_word["ARCHIVE"]) if each == "archive" else each for each in (a, b))
    done = CliRunner().invoke(app, ["compare", one, other, "--target", str(workspace / "compared")])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "tidemark: wrote " in done.stdout
