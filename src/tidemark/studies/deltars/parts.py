"""Series by what was written in them, and what a series says: it has one run, all of whose repetitions count."""

from __future__ import annotations

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.deltars.settings import DATA, shape_of
from tidemark.studies.deltars.window.samples import READ, WRITE


def of(measures: Measures, quantity: Quantity, series: Series) -> Replicates:
    """`quantity` of `series`; Absent where its runs do not have it."""
    return measures.cold(quantity, series)


def size_of(data: str) -> tuple[bool, float]:
    """What tables are ordered by: those of suppliers first, then by their scale."""
    found = DATA.fullmatch(data)
    assert found is not None, data
    return found["table"] == "lineitem", float(found["scale"])


def in_order(run_set: RunSet) -> list[Series]:
    """All series: by table, processors and system."""
    return sorted(
        run_set.select(), key=lambda each: (*size_of(shape_of(each.mode)[0]), shape_of(each.mode)[1], each.system)
    )


def tables_of(run_set: RunSet) -> list[str]:
    """The tables that were asked for, in order."""
    return sorted({shape_of(each.mode)[0] for each in run_set.select()}, key=size_of)


def fewest_cores(run_set: RunSet) -> int:
    """The number of processors to speak of, where one must be chosen: the thesis drew one. Absent without a run."""
    found = {shape_of(each.mode)[1] for each in run_set.select() if each.runs}
    if not found:
        raise Absent("no system was measured")
    return min(found)


def most_common(run_set: RunSet, stack: str) -> tuple[str, int]:
    """Table and processors by which to compare: of those that most systems were measured with under `stack`, the
    largest table, and the fewest processors. Absent without a run.
    """
    systems: dict[tuple[str, int], set[str]] = {}
    for each in run_set.select(stack=stack, harness=False):
        if each.runs:
            systems.setdefault(shape_of(each.mode), set()).add(each.system)
    if not systems:
        raise Absent("no system was measured")
    return max(systems, key=lambda shape: (len(systems[shape]), size_of(shape[0]), -shape[1]))


def find(run_set: RunSet, system: str, data: str, cores: int) -> Series | None:
    """The series of a system with one table and so many processors; None where it was not asked for."""
    return next(
        (each for each in run_set.select() if each.system == system and shape_of(each.mode) == (data, cores)), None
    )


def limit_of(run: Run) -> int | None:
    """The most messages that a run's application took, 0 for all; None for a system that has no such limit."""
    found = dict(run.manifest.system.options).get("limit")
    return None if found is None else int(found)


def sent_and_there(run: Run) -> tuple[int, int]:
    """The rows that a table was made of, and those that the client read back, in the mean over repetitions."""
    calls, rows = run.words("call"), run.column("rows")
    return int(rows[calls == WRITE].mean()), int(rows[calls == READ].mean())
