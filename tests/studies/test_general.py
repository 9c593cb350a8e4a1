"""Tests that general layers do not depend on studies: they import nothing above them, and quantities are passed in."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest
import yaml

from tidemark.analysis.metrics import Metric, MetricSet, Quantile
from tidemark.studies.streams.metrics import GROWTH, QUANTITIES, RELATIVE_GROWTH, WRITE_MEDIAN
from tidemark.studies.streams.results import RESULTS
from tidemark.studies.study import registry

PACKAGE = Path(__file__).parents[2] / "src" / "tidemark"
ABOVE = ("studies", "pipeline", "cli", "measure")


def imports(path: Path) -> set[str]:
    """Return every module of the package that a file imports, at any nesting level."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("tidemark.")}


@pytest.mark.parametrize("room", ["analysis", "results"])
def test_general_layers_import_nothing_above_them(room: str) -> None:
    files = sorted((PACKAGE / room).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in files
        for name in sorted(imports(path))
        if name.split(".")[1] in ABOVE
    ]
    assert not wrong, "; ".join(wrong)


def test_an_import_anywhere_in_a_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text("def late() -> None:\n    from tidemark.studies.streams import published\n    import os\n")
    assert imports(path) == {"tidemark.studies.streams", "tidemark.studies.streams.published"}


@pytest.mark.parametrize("room", ["analysis", "results"])
def test_general_layers_name_no_quantity_of_a_study(room: str) -> None:
    names = {each.name for each in QUANTITIES if " " in each.name}
    assert len(names) > 10
    for path in sorted((PACKAGE / room).rglob("*.py")):
        texts = {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not texts & names, path


def test_every_study_is_found_and_makes_results() -> None:
    found = registry()
    assert list(found) == sorted(found) and "streams" in found
    for name, study in found.items():
        assert study.name == name and study.title
        keys = [each.key for each in study.results.quantities.headline]
        assert keys and len(set(keys)) == len(keys) and all(keys)


def test_claims_name_quantities_of_their_study() -> None:
    asked = {item["measure"].get("quantity") for item in yaml.safe_load(RESULTS.claims.path.read_text())}
    assert asked - {None} <= set(QUANTITIES.names)


@pytest.mark.parametrize("study", registry())
def test_quantities_can_be_pickled(study: str) -> None:
    """Worker processes compute those of a run set with many runs."""
    quantities = registry()[study].results.quantities
    again = pickle.loads(pickle.dumps(quantities))
    assert list(again.names) == list(quantities.names)


def test_relative_quantity_is_used_to_compare_systems() -> None:
    assert QUANTITIES.relative(GROWTH) == RELATIVE_GROWTH
    assert QUANTITIES.relative(WRITE_MEDIAN) == WRITE_MEDIAN
    assert (RELATIVE_GROWTH.shown_unit, GROWTH.shown_unit) == ("% per 1,000 commits", "ms/1,000 commits")


def test_quantity_names_are_unique_within_a_study() -> None:
    other = Metric(WRITE_MEDIAN.name, "s", "Median write", Quantile("write_ns", 0.5, 1e-9), subjects="Writes")
    with pytest.raises(ValueError, match="two quantities are called 'write median'"):
        MetricSet((*QUANTITIES.all, other), QUANTITIES.headline)
    with pytest.raises(ValueError, match="must have a ratio and subjects"):
        MetricSet((GROWTH,), (GROWTH,))
