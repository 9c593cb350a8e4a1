"""Tests of reported held-out errors: per system and kind of load, with a statement where they exceed the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.planner.test_prediction import FAR, MANY, PLAIN, measured, with_times

from tidemark.analysis.formatting import MissingCell
from tidemark.planner.accuracy import COLUMNS, PREDICTED, conclusion, line, standings
from tidemark.planner.cost_model import Age, Cell, Cost, Law
from tidemark.planner.prediction import Load, answers

LAW = Law(fixed_ms=20.0, row_ms=0.05, offset_ms=5.0, trips=4.0, waiting=0.6)


def exact(cells: Sequence[Cell]) -> list[Cost]:
    """Return the costs of a system that follows the law exactly, in a table whose commits do not slow down."""
    return [replace(each, commit_ms=LAW.commit_ms(each.cell), growth_ms=None) for each in measured(cells, LAW)]


def test_system_that_follows_its_law_is_predicted_inside_and_beyond_its_range() -> None:
    found = standings(exact([*PLAIN, *FAR, *MANY]))
    assert [(each.load.split(";")[0], each.is_beyond) for each in found] == [
        (load, is_beyond)
        for load in ("one writer, local files", "one writer, a store at a distance", "several writers, local files")
        for is_beyond in (False, True)
    ]
    assert all(each.reason == "" and each.errors is not None and each.errors.worst < 1e-6 for each in found)
    assert "Beyond what was measured it is trusted for ducklake." in conclusion(found)
    assert {line(each)[-1] for each in found} == {PREDICTED}


def test_cell_off_the_law_is_reported_as_not_predicted() -> None:
    costs = with_times(exact([*PLAIN, Cell(10_000)]), Cell(100), 5.0)
    inside, beyond = standings(costs)
    # The law without that cell gives 25 ms where 125 ms were measured: 400 % too short.
    assert inside.errors is not None and inside.errors.worst == pytest.approx(4.0)
    assert inside.errors.median == pytest.approx(0.0, abs=1e-6) and inside.errors.cells == 3
    assert line(inside)[-1] == "NOT PREDICTED: the worst error of the law is 400 %, the bound 30 %"
    assert beyond.reason and "It is not trusted beyond what was measured." in conclusion([inside, beyond])
    assert "Not predicted, the bound being 30 %: ducklake (one writer, local files): the worst error" in conclusion(
        [inside, beyond]
    )
    # The command refuses the systems that the table calls not predicted.
    (answer,) = answers(Load(rate=2000, fresh_s=60, batch=100), costs, 0.3)
    assert answer.errors is not None and answer.errors.worst == inside.errors.worst


def test_too_few_cells_are_stated_in_every_cell_of_their_row() -> None:
    (alone,) = standings(exact(PLAIN[:2]))
    cells = line(alone)
    assert len(cells) == len(COLUMNS) and cells[-1] == f"NOT PREDICTED: {alone.reason}"
    assert "too few cells to hold one out" in alone.reason and set(map(type, cells[3:7])) == {MissingCell}


def test_a_reason_that_holds_for_many_is_given_once() -> None:
    costs = exact([*PLAIN[:2], *FAR[:1]])
    others = [replace(each, system="delta-rs", title="delta-rs") for each in costs]
    said = conclusion(standings([*costs, *others]))
    assert said.count("too few cells") == 1 and "delta-rs and ducklake: too few cells to hold one out" in said


def test_ages_outside_the_fit_count_as_well() -> None:
    costs = exact(PLAIN)
    age_s = (100 - 1) / (2 * 1000) + LAW.commit_ms(Cell(100)) / 1000
    right, wrong = (standings([*costs, Age("ducklake", "thesis", 1000, 100, age_s * by)])[0] for by in (1.0, 2.0))
    assert right.reason == "" and line(right)[6] == pytest.approx(0, abs=1e-6)
    assert "median error of ages is 100 %" in wrong.reason
    assert conclusion([]) == "No run here measures the cost of a commit: no other load is predicted."
