from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tidemark.config import load as load_config
from tidemark.pipeline.plan import make_plan, programs, tools
from tidemark.software.stacks import PIPELINE, names
from tidemark.systems.base import System
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.catalogs.base import CatalogSystem
from tidemark.systems.registry import of_kind
from tidemark.systems.sinks import StreamingSink
from tidemark.systems.spark_sql import SqlEngineTable
from tidemark.systems.tables import TableSystem

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def load(name: str) -> ModuleType:
    """Return a script of this folder as a module."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fetched, versions = load("fetched"), load("compare_versions")


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """Return a copy of the locks that a test may damage."""
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    return tmp_path


def test_stub_expects_the_artifacts_of_the_locks() -> None:
    expected = json.loads((HERE / "stub" / "fetched.json").read_text())
    assert expected == fetched.in_locks(), "the locks changed: run 'python tests/nix/fetched.py write'"


@pytest.mark.parametrize(
    ("lock", "marker"),
    [("envs/thesis.lock", "throttler=="), ("envs/jars/kafka/jgo.lock.toml", '"jspecify"')],
)
def test_one_changed_digit_of_a_lock_is_noticed(locks: Path, lock: str, marker: str) -> None:
    before = fetched.in_locks(locks)
    fetched.change_a_digit(locks / lock, marker)
    after = fetched.in_locks(locks)
    (wrong,) = fetched.compare(before, after, only=True)
    assert after.keys() == before.keys()
    assert marker.strip('"=') in wrong


def test_every_lock_belongs_to_a_study_and_exists() -> None:
    studies = json.loads((ROOT / "nix" / "studies.json").read_text())
    folders = {path.parent.name for path in (ROOT / "envs" / "jars").glob("*/jgo.lock.toml")}
    assert {name for wanted in studies.values() for name in wanted["jars"]} == folders
    locked = {path.stem for path in (ROOT / "envs" / "tools").glob("*.lock")}
    assert {name for wanted in studies.values() for name in wanted["tools"]} == locked - fetched.UNUSED
    assert {name for wanted in studies.values() for name in wanted["stacks"]} == set(names()) - {PIPELINE}


def test_each_study_has_exactly_the_programs_of_its_systems() -> None:
    kinds: dict[str, tuple[type[System], ...]] = {
        "streams": (TableSystem,),
        "catalogs": (CatalogSystem,),
        "ingest": (TableSystem,),
        "freshness": (TableSystem, StreamingSink),
        "lhbench": (SqlEngineTable,),
        "deltars": (BulkTable,),
    }
    for study, chosen in kinds.items():
        # Polaris is in no registry; the stand-ins are for 'ingest'. Lance is large, and 'nix run' alone runs 'streams'.
        left_out = {"polaris"} | ({"lance"} if study == "streams" else set())
        left_out |= set() if study == "ingest" else {"opensearch", "parquet-datafusion"}
        every = ", ".join(f'"{name}": {{}}' for kind in chosen for name in of_kind(kind) if name not in left_out)
        plan = make_plan(load_config(ROOT / "config.yaml", [f"studies=[{study}]", f"{study}.systems={{{every}}}"]))
        wanted = json.loads((ROOT / "nix" / "studies.json").read_text())[study]
        assert wanted["jars"] == list(programs(plan))
        assert wanted["tools"] == sorted({name for spec in plan.series for name in tools(spec)})


def test_artifacts_fetched_without_a_lock_or_left_out_are_noticed() -> None:
    derivations = {
        "/nix/store/a.drv": {"env": {"name": "a.whl", "outputHash": "00"}},
        "/nix/store/b.drv": {"env": {"name": "b", "builder": "sh"}},
        "/nix/store/c.drv": {"env": {"name": "c.jar", "outputHash": "11"}},
    }
    found = fetched.in_derivations(derivations)
    assert found == {"a.whl": "00", "c.jar": "11"} == fetched.in_derivations({"derivations": derivations})
    assert fetched.compare({"a.whl": "00", "d.jar": "22"}, found, only=False) == ["d.jar is not fetched"]
    assert "c.jar is fetched and no lock names it" in fetched.compare({"a.whl": "00"}, found, only=True)


def test_a_version_that_differs_needs_a_listed_reason() -> None:
    here, nix = {"Python": "3.12.1", "duckdb": "1.4.4"}, {"Python": "3.12.13", "duckdb": "1.5.5", "more": "1"}
    listed, unlisted = versions.differences(here, nix, {"Python"})
    assert [each.split(":")[0] for each in listed] == ["Python"]
    assert [each.split(":")[0] for each in unlisted] == ["duckdb", "more"]


def test_every_listed_difference_has_a_reason_and_names_a_known_component() -> None:
    import tomllib

    reasons = tomllib.loads(versions.ALLOWED.read_text())
    assert reasons.keys() <= {"Python", "C library"}
    assert all(each["reason"] for each in reasons.values())


@pytest.mark.skipif(shutil.which("nix") is None, reason="there is no 'nix' on PATH, and tests install nothing")
def test_the_flake() -> None:
    if sys.prefix.startswith("/nix/store"):
        pytest.skip("this is a test run inside Nix already")
    verified = subprocess.run(
        [HERE / "verify.sh"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
