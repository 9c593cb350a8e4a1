"""Selection of series by table and processors; a series has one run, all of whose repetitions count."""

from __future__ import annotations

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.deltars.settings import DATA, shape_of
from tidemark.studies.deltars.window.samples import READ, WRITE


def of(measures: Measures, quantity: Quantity, series: Series) -> Replicates:
    """Return `quantity` of `series`; Absent if its runs do not have it."""
    return measures.cold(quantity, series)


def size_of(data: str) -> tuple[bool, float]:
    """Return the sort key of a table: tables of suppliers first, then by scale."""
    found = DATA.fullmatch(data)
    assert found is not None, data
    return found["table"] == "lineitem", float(found["scale"])


def in_order(run_set: RunSet) -> list[Series]:
    """Return all series, sorted by table, processors and system."""
    return sorted(
        run_set.select(), key=lambda each: (*size_of(shape_of(each.mode)[0]), shape_of(each.mode)[1], each.system)
    )


def tables_of(run_set: RunSet) -> list[str]:
    """Return the planned tables, in order."""
    return sorted({shape_of(each.mode)[0] for each in run_set.select()}, key=size_of)


def fewest_cores(run_set: RunSet) -> int:
    """Return the fewest processors measured, to report one number as the thesis's figures do; Absent without a run."""
    found = {shape_of(each.mode)[1] for each in run_set.select() if each.runs}
    if not found:
        raise Absent("no system was measured")
    return min(found)


def most_common(run_set: RunSet, stack: str) -> tuple[str, int]:
    """Return the table and processors that most systems were measured with under `stack`. Ties go to the largest table,
    then to the fewest processors. Raise Absent if there is no run.
    """
    systems: dict[tuple[str, int], set[str]] = {}
    for each in run_set.select(stack=stack, harness=False):
        if each.runs:
            systems.setdefault(shape_of(each.mode), set()).add(each.system)
    if not systems:
        raise Absent("no system was measured")
    return max(systems, key=lambda shape: (len(systems[shape]), size_of(shape[0]), -shape[1]))


def find(run_set: RunSet, system: str, data: str, cores: int) -> Series | None:
    """Return the series of a system with one table and `cores` processors; None if it is not planned."""
    return next(
        (each for each in run_set.select() if each.system == system and shape_of(each.mode) == (data, cores)), None
    )


def limit_of(run: Run) -> int | None:
    """Return the most messages that a run's application takes, 0 for all; None for a system without such a limit."""
    found = dict(run.manifest.system.options).get("limit")
    return None if found is None else int(found)


def sent_and_there(run: Run) -> tuple[int, int]:
    """Return the number of rows written and the number read back by the client, as means over repetitions."""
    calls, rows = run.words("call"), run.column("rows")
    return int(rows[calls == WRITE].mean()), int(rows[calls == READ].mean())
