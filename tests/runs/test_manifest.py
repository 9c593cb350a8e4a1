"""Tests of run.json and plan.json: one declaration writes and reads them, and older versions are read as well."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runs.runset import DUCKLAKE, INLINED, write_run_set

from tidemark.errors import AnalysisError
from tidemark.machine.inventory import inventory
from tidemark.runs.circumstances import Disk
from tidemark.runs.manifest import NEW_OF_THE_DISK, OLD_DISK, Manifest, ProducerPart, write_run
from tidemark.runs.plan import PlanFile, PlannedSeries, Round
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import pairs, to_json, written

MEASURED = Path(__file__).parent / "measured" / "run.json"  # of a `quick` series, from when a sweep was called a study


def test_measured_manifest_is_read_and_written_back_unchanged() -> None:
    manifest, content = Manifest.read(MEASURED), json.loads(MEASURED.read_text())
    content["series"]["sweep"] = content["series"].pop("study")
    content["series"] |= {"study": "streams", "workload": "streams"}
    content["interference"]["foreign_bytes"] = None
    content["found"] = {}
    assert written(manifest) == content
    assert manifest.series.sweep == "main" and manifest.flush is not None and manifest.merge is not None
    assert manifest.dataset is not None and manifest.dataset.label.startswith("SYNTHETIC dataset yellow")
    assert dict(manifest.system.options)["durability"] == "default"
    assert dict(manifest.config)["services"]["kafka_heap_mb"] == 1024
    assert hash(manifest) == hash(Manifest.read(MEASURED))


class Rows:
    """Fake samples of a workload; the content of the file does not matter here."""

    def write_parquet(self, path: Path) -> None:
        path.write_bytes(b"rows")


def test_written_run_is_read_back_unchanged(tmp_path: Path) -> None:
    """The machine part is collected again, so that it has the form that measuring writes today."""
    manifest = replace(
        Manifest.read(MEASURED), machine=inventory(tmp_path), config=pairs({"deep": [{"er": [1, None]}]})
    )
    write_run(tmp_path / "run-2", Rows(), Rows(), manifest)
    assert Manifest.read(tmp_path / "run-2" / "run.json") == manifest
    assert (tmp_path / "run-2" / "machine.parquet").read_bytes() == b"rows"


def test_fields_that_a_workload_lacks_are_none(tmp_path: Path) -> None:
    lacking = ("dataset", "producer", "flush", "merge", "footprint", "footprint_after_flush", "warm_up")
    lacking += ("first_write_ns", "logical_bytes")
    content = json.loads(MEASURED.read_text())
    path = tmp_path / "run.json"
    path.write_text(json.dumps({key: value for key, value in content.items() if key not in lacking}))
    manifest = Manifest.read(path)
    assert {key: getattr(manifest, key) for key in lacking} == dict.fromkeys(lacking) | {"logical_bytes": 0}
    path.write_text(to_json(manifest))
    assert Manifest.read(path) == manifest


@pytest.mark.parametrize("key", ["tidemark", "opening", "interference"])
def test_only_version_1_files_may_lack_version_2_fields(tmp_path: Path, key: str) -> None:
    path = tmp_path / "run.json"
    content = json.loads(MEASURED.read_text())
    del content[key]
    path.write_text(json.dumps(content))
    with pytest.raises(AnalysisError, match=rf"run\.json: key '{key}': found nothing; allowed: an object or null"):
        Manifest.read(path)


def test_version_1_is_converted_to_version_2(tmp_path: Path) -> None:
    old, new = (
        RunSet.load(write_run_set(tmp_path / str(version), [INLINED], window_s=1.0, version=version))
        for version in (1, 2)
    )
    for before, after in zip(old.runs, new.runs, strict=True):
        was, now = before.manifest, after.manifest
        assert (was.schema_version, now.schema_version) == (1, 2)
        assert (was.harness, was.opening, was.interference, was.first_write_ns, was.warm_up) == (None,) * 5
        assert was.disk == Disk("vda", OLD_DISK, **dict.fromkeys(NEW_OF_THE_DISK), written_by=())
        assert was.disk.why_not_charged == OLD_DISK
        assert (was.machine.identity, was.series.read_ahead, was.oracle.commits) == (None, None, None)
        assert replace(was.machine, identity=now.machine.identity) == now.machine
        assert (was.series.sweep, was.stretches, was.flush) == (now.series.sweep, 1, now.flush)
        path = tmp_path / "again.json"
        path.write_text(to_json(was))
        assert replace(Manifest.read(path), disk=was.disk) == was
    assert [series.sweep for series in old.series] == ["main"]


def test_earliest_plan_format_is_read(tmp_path: Path) -> None:
    """They call a sweep `study`, and give `read_ahead` once for all single series."""
    threads = {"axis": "threads", "values": [1, 2]}
    config = {"read_ahead": 64, "study": {"threads": threads}}
    models = [DUCKLAKE, replace(DUCKLAKE, sweep="threads", threads=2)]
    path = write_run_set(tmp_path, models, window_s=1.0, version=1, config=config) / "plan.json"
    values = json.loads(path.read_text())
    for item in values["series"]:
        for key in ("title", "base", "repeats"):
            del item[key]
    values["series"][1] |= {"mode": "batch", "batch_size": 10}
    path.write_text(json.dumps(values))
    run_set = RunSet.load(path.parent)
    assert [(each.sweep, each.read_ahead, each.title) for each in run_set.series] == [
        ("main", 64, "ducklake"),
        ("threads", 1, "ducklake"),
    ]
    assert run_set.axis_of("threads") == "threads" and run_set.axis_of("main") is None
    with pytest.raises(AnalysisError, match=r"plan\.json: key 'config\.seed': found 1; allowed: a text"):
        run_set.config.text("seed")


def test_written_plan_is_read_back_unchanged(tmp_path: Path) -> None:
    series = PlannedSeries(
        id="a/single/1", system="a", title="A", base="null", mode="single", protocol="smoke", stack="thesis",
        repeats="a/single/1", directory="results/runs/a/single/1",
    )  # fmt: skip
    plan = PlanFile(config=pairs({"seed": 1, "systems": {"null": {}}}), series=(series,), notes=("one core",))
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    assert PlanFile.read(path) == plan
    assert "round" not in json.loads(path.read_text())
    of_round = replace(plan, round=Round(1, 2))
    path.write_text(of_round.to_json())
    assert PlanFile.read(path) == of_round
    assert json.loads(path.read_text())["round"] == {"number": 1, "of": 2}


def test_producer_part_is_built_from_its_process_report() -> None:
    whole = ProducerPart(
        events=10, seconds=1.0, cpu_s=0.5, topped_up=2, mode="beside", laps=0.5, stretches=3, topic_bytes=7
    )
    assert ProducerPart.of("beside", whole, 20, 3, 7) == whole
