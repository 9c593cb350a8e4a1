"""Tests of archives: results are restored byte for byte, and a tampered archive is refused and leaves no files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.results.archives import listing, refused, rewritten
from tests.runs.runset import DELTA, DUCKLAKE, INLINED, batched, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.config import load
from tidemark.errors import AnalysisError, ConfigError, DiskFull
from tidemark.integrity import sha256_of
from tidemark.pipeline.build import build_claims, build_tables
from tidemark.pipeline.runner import results_folder
from tidemark.results.archive.crate import DESCRIBING, METADATA, README, SPECIFICATION
from tidemark.results.archive.pack import default_name, write_archive
from tidemark.results.archive.unpack import unpack_archive
from tidemark.results.figures import draw as figures
from tidemark.results.figures.context import FigureContext
from tidemark.runs.runset import RunSet
from tidemark.studies.streams import thesis_figures as figures_thesis
from tidemark.studies.streams.metrics import QUANTITIES

ROOT = Path(__file__).parents[3]
MODELS = (DUCKLAKE, INLINED, DELTA, batched(DUCKLAKE))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_run_set(tmp_path_factory.mktemp("archive"), MODELS, window_s=3.0)
    build_tables(made)
    build_claims(made)
    return made


@pytest.fixture(scope="module")
def archive(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive(results, tmp_path_factory.mktemp("zip") / "runs.zip")


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in sorted(folder.rglob("[!.]*")) if path.is_file()}


def test_archive_is_an_ro_crate_that_lists_every_file(archive: Path, results: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        graph = json.loads(file.read(METADATA))["@graph"]
        described = next(each for each in graph if each["@id"] == METADATA)
        assert {"@id": SPECIFICATION} in described["conformsTo"]
        root = next(each for each in graph if each["@id"] == "./")
        assert "SYNTHETIC" in root["description"]
        listed = {each["@id"]: each for each in graph if "File" in each["@type"]}
        assert {each["@id"] for each in root["hasPart"]} == set(listed) == set(file.namelist()) - {METADATA}
        for name, each in listed.items():
            assert hashlib.sha256(file.read(name)).hexdigest() == each["sha256"]
    assert {"results/plan.json", "results/claims.json", "results/tables/streams/table-5.2.csv"} <= set(listed)
    assert sum(name.endswith("operations.parquet") for name in listed) == len(RunSet.load(results).runs)


def test_the_same_runs_make_the_same_bytes(archive: Path, results: Path, tmp_path: Path) -> None:
    assert write_archive(results, tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    assert default_name(results) == "tidemark-quick-20260102.zip"


def test_results_are_rebuilt_with_the_same_bytes(archive: Path, results: Path, tmp_path: Path) -> None:
    plan = unpack_archive(archive, tmp_path / "unpacked")
    rebuilt = plan.parent
    assert files(rebuilt / "runs") == files(results / "runs")
    assert not (rebuilt / "claims.json").exists() and not (rebuilt / "tables").exists()
    build_tables(rebuilt)
    build_claims(rebuilt)
    assert files(rebuilt / "tables") == files(results / "tables")
    assert (rebuilt / "claims.json").read_bytes() == (results / "claims.json").read_bytes()
    for folder, each in (("a", results), ("b", rebuilt)):
        figure_specs = [
            figure_spec
            for figure_spec in figures_thesis.figure_specs()
            if figure_spec.name in ("figure-5.1", "figure-5.4")
        ]
        contexts = {"streams": FigureContext.of(Measures(RunSet.load(each), QUANTITIES))}
        figures.draw(contexts, [figures.FigureTask("streams", each) for each in figure_specs], tmp_path / folder)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert len(files(tmp_path / "a")) == 7


@pytest.mark.parametrize(
    "name", ["../escaped", "results/../../escaped", "/tmp/escaped", "C:/escaped", "results\\..\\escaped", "a/./escaped"]
)
def test_member_name_outside_the_target_is_refused(archive: Path, tmp_path: Path, name: str) -> None:
    bad = rewritten(archive, tmp_path / "bad.zip", lambda content: listing(content, name, b"x"))
    refused(bad, tmp_path, "nothing of this archive was unpacked")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR])
def test_links_and_special_files_are_refused(archive: Path, tmp_path: Path, kind: int) -> None:
    bad = tmp_path / "bad.zip"
    shutil.copy(archive, bad)
    with zipfile.ZipFile(bad, "a") as file:
        entry = zipfile.ZipInfo("results/escaped")
        entry.create_system = 3
        entry.external_attr = (kind | 0o777) << 16
        file.writestr(entry, "/etc/passwd")
    refused(bad, tmp_path, "is a link or another special file")


def test_a_changed_file_is_refused(archive: Path, tmp_path: Path) -> None:
    def change(content: dict[str, bytes]) -> dict[str, bytes]:
        name = next(name for name in content if name.endswith("run-1/run.json"))
        return {**content, name: content[name].replace(b'"cold": false', b'"cold": true ')}

    refused(rewritten(archive, tmp_path / "bad.zip", change), tmp_path, "damaged or changed since it was packed")


def test_missing_and_extra_files_are_refused(archive: Path, tmp_path: Path) -> None:
    def without_plan(content: dict[str, bytes]) -> dict[str, bytes]:
        return {name: data for name, data in content.items() if name != "results/plan.json"}

    refused(rewritten(archive, tmp_path / "a.zip", without_plan), tmp_path, "is listed, but not there")
    more = rewritten(archive, tmp_path / "b.zip", lambda content: {**content, "results/escaped": b"x"})
    refused(more, tmp_path, "is not listed")
    longer = rewritten(archive, tmp_path / "c.zip", lambda content: {**content, "results/plan.json": b" " * 10**6})
    refused(longer, tmp_path, "bytes, listed are")


def test_file_that_is_no_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("not a zip")
    refused(tmp_path / "text.zip", tmp_path, "not a zip file")
    refused(tmp_path / "absent.zip", tmp_path, "not there")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("readme.txt", "hello")
    refused(tmp_path / "other.zip", tmp_path, f"has no usable {METADATA}")
    cut = tmp_path / "cut.zip"
    cut.write_bytes(archive.read_bytes()[:-2000])
    refused(cut, tmp_path, "not a zip file")


def test_flipped_bits_are_detected(archive: Path, tmp_path: Path) -> None:
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        entry = next(each for each in file.infolist() if each.filename.endswith("operations.parquet"))
    data[entry.header_offset + 30 + len(entry.filename) + entry.file_size // 2] ^= 1
    (tmp_path / "flipped.zip").write_bytes(bytes(data))
    refused(tmp_path / "flipped.zip", tmp_path, "operations.parquet")


def test_full_disk_is_reported_before_anything_is_written(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DiskFull, match="the device has 1,000 left"):
        unpack_archive(archive, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_unpacking_again_removes_earlier_results(archive: Path, tmp_path: Path) -> None:
    stale = tmp_path / "results" / "runs" / "old" / "run.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    unpack_archive(archive, tmp_path)
    assert not stale.exists() and RunSet.load(tmp_path / "results").runs


def test_damaged_runs_are_not_archived(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS[:1], window_s=2.0)
    next(results.glob("runs/**/run-1/machine.parquet")).unlink()
    with pytest.raises(AnalysisError, match=r"machine\.parquet: not there"):
        write_archive(results, tmp_path / "a.zip")
    assert not list(tmp_path.glob("*.zip*"))


@pytest.mark.parametrize(
    "typed",
    ['/home/jo doe/ünder "a"/trips.parquet', "../jo/trips.parquet", "~/jo/trips.parquet", "/runs/jo/trips.parquet"],
)
@pytest.mark.parametrize(("several", "measured_in"), [(False, None), (True, "/srv/jo's place")])
def test_only_local_paths_are_removed_from_an_archive(
    tmp_path: Path, typed: str, several: bool, measured_in: str | None
) -> None:
    results = write_run_set(tmp_path / "jo" / "work", MODELS, window_s=2.0)
    plan = json.loads((results / "plan.json").read_text())
    plan["config"]["dataset"] = {"source": "path", "path": [typed, "other.parquet"] if several else typed}
    plan["config"]["services"] = {"polaris_path": "/opt/jo/polaris.tgz", "kafka_address": "localhost:9092"}
    (results / "plan.json").write_text(json.dumps(plan, indent=1, ensure_ascii=several))
    (results.parent / "config.yaml").write_text(f"dataset:\n  path: {json.dumps(typed)} # mine\nseed: 1\n")
    for path in results.glob("runs/**/run.json"):
        run = json.loads(path.read_text())
        run["system"]["settings"]["location"] = f"{measured_in or results.parent}/.tidemark/tables/one"
        lay = str(measured_in or results.parent)
        run["dataset"]["notes"] = [f"path: {typed}", f"of {lay[1:]}/.tidemark/one, and not of /mnt{lay}/two"]
        path.write_text(json.dumps(run))
    build_tables(results)
    build_claims(results)
    archive = write_archive(results, tmp_path / "a.zip")
    with zipfile.ZipFile(archive) as file:
        content = {name: file.read(name) for name in file.namelist()}
    copied = tuple({*DESCRIBING} - {README})  # files of the repository
    told = {
        name: data.replace(f"/mnt{measured_in or results.parent}".encode(), b"")
        for name, data in content.items()
        if not name.startswith(copied)
    }
    assert not [name for name, data in told.items() if b"jo" in data.replace(b"join", b"").replace(b"major", b"")]
    packed = json.loads(content["results/plan.json"])
    assert packed["config"]["dataset"]["path"] == (["trips.parquet", "other.parquet"] if several else "trips.parquet")
    assert packed["config"]["services"] == {"polaris_path": "polaris.tgz", "kafka_address": "localhost:9092"}
    assert packed["series"] == plan["series"], "the fingerprints"
    assert content["config.yaml"].decode() == 'dataset:\n  path: "trips.parquet" # mine\nseed: 1\n'
    run = json.loads(next(data for name, data in content.items() if name.endswith("run-1/run.json")))
    assert run["system"]["settings"]["location"] == ".tidemark/tables/one"
    assert run["dataset"]["notes"][1] == f"of .tidemark/one, and not of /mnt{measured_in or results.parent}/two"
    rebuilt = unpack_archive(archive, tmp_path / "unpacked").parent
    if several or not typed.startswith("/home"):  # what is removed is no part of results: one case shows it
        return
    build_tables(rebuilt)
    build_claims(rebuilt)
    assert files(rebuilt / "tables") == files(results / "tables")
    assert (rebuilt / "claims.json").read_bytes() == (results / "claims.json").read_bytes()


def test_workflow_of_an_archive_is_that_of_the_repository_and_is_not_unpacked(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        packed = {name for name in file.namelist() if name.startswith(DESCRIBING)}
        for name in packed - {README, "LICENSE"}:
            assert file.read(name) == (ROOT / name).read_bytes()
        assert file.read("LICENSE") == (ROOT / "reference" / "LICENSE").read_bytes()
    assert {"Snakefile", "workflow/rules/common.smk", "workflow/rules/series.smk", "LICENSE", README} <= packed
    unpack_archive(archive, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"results"}


def test_archive_of_an_earlier_version_can_be_read(tmp_path: Path) -> None:
    """Read an archive that was written before archives held their workflow."""
    plan = unpack_archive(Path(__file__).parents[1] / "earlier" / "deltars.zip", tmp_path)
    assert len(RunSet.load(plan.parent).runs) == 4
    again = write_archive(plan.parent, tmp_path / "again.zip")
    assert files(unpack_archive(again, tmp_path / "again").parent / "runs") == files(plan.parent / "runs")


def pipeline(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "config.yaml", workspace)
    command = [sys.executable, "-m", "tidemark", "all", "--config", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, timeout=600)


def test_pipeline_unpacks_instead_of_measuring(archive: Path, tmp_path: Path) -> None:
    done = pipeline(tmp_path, f"archive={archive}", "--dry-run", "-v")
    assert done.returncode == 0, done.stderr
    planned = set(re.findall(r"^([a-z_0-9]+) +\d+$", done.stdout + done.stderr, re.MULTILINE)) - {"total"}
    assert planned == {"all", "unpack", "database", "tables", "figures", "claims", "paper", "report"}
    assert not (tmp_path / "results" / "plan.json").exists()


def test_an_absent_archive_is_refused_by_its_key(tmp_path: Path) -> None:
    config = load(ROOT / "config.yaml", [f"archive={tmp_path / 'none.zip'}"])
    with pytest.raises(ConfigError, match="key 'archive'"):
        results_folder(config)


@pytest.mark.long(reason="every result of the standard run set is made again by Snakemake")
def test_everything_is_rebuilt_from_an_archive(archive: Path, results: Path, tmp_path: Path) -> None:
    done = pipeline(tmp_path, f"archive={archive}")
    assert done.returncode == 0, done.stderr
    rebuilt = next(tmp_path.glob("results/archive-*/results"))
    assert files(rebuilt / "tables") == files(results / "tables")
    assert (rebuilt / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert (rebuilt / "report.html").exists() and len(list((rebuilt / "figures").rglob("*.svg"))) > 30
    (tmp_path / "again").mkdir()
    assert pipeline(tmp_path / "again", f"archive={archive}").returncode == 0
    again = next(tmp_path.glob("again/results/archive-*/results"))
    for name in ("tables", "figures"):
        assert files(again / name) == files(rebuilt / name)
    for name in ("claims.json", "paper.pdf", "report.html"):
        assert sha256_of(again / name) == sha256_of(rebuilt / name), name
    done = pipeline(tmp_path, f"archive={archive}", "--report", "snakemake.html")
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "snakemake.html").read_text()
    assert "figure-5.3.svg" in report and "table-5.2.csv" in report and "claims.csv" in report
    assert "the run files that it is made from" in report and "are the ends of 95 % intervals" in report
