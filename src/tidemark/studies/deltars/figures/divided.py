"""Figure that divides the time of a legacy write, and of writes that differ from it in one part at a time."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.analysis.quantities import Absent
from tidemark.results.figures import style
from tidemark.results.figures.plots import StackedRow, stacked
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import fewest_cores, in_order, tables_of
from tidemark.studies.deltars.quantities import STEPS, parts, times
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.tables.steps import HOW
from tidemark.studies.deltars.window.samples import WRITE

TITLE = "What a legacy write's time goes to"
LEGACY, BESIDE = "legacy", "delta-rs-hdfs"  # the complete path, and the single call that the thesis compares it with
# Names of parts in the figure; the client's own time is the rest.
NAMES = {"upload": "upload", "application": "application", "kafka": "topic", "tasks": "tasks", "driver": "driver",
         "hdfs": "HDFS"}  # fmt: skip


def sketches() -> Iterator[Sketch]:
    yield Sketch("deltars-divided", TITLE, divided)


def divided(studio: Studio) -> Drawn:
    """Draw a bar of mean seconds per system and table, and the thesis's two parts below the legacy path's."""
    cores = fewest_cores(studio.run_set)
    rows: list[StackedRow] = []
    runs: list[Run] = []
    for data in tables_of(studio.run_set):
        words = published.WORDS.get(data, data)
        found = [each for each in in_order(studio.run_set) if shape_of(each.mode) == (data, cores) and each.runs]
        if not any(each.system == LEGACY for each in found):
            continue
        for series in found:
            try:
                bar = _parts(series.runs)
            except Absent:
                if series.system != BESIDE:
                    continue
                bar = (("rest", sum(float(times(run, WRITE).mean()) for run in series.runs) / len(series.runs)),)
            rows.append((f"{series.title}, {words}", bar, "s"))
            runs += series.runs
            printed = [published.printed(each, published.LEGACY, data, cores) for each in
                       (published.UPLOAD, published.MATERIALISE)]  # fmt: skip
            if series.system == LEGACY and printed[0] and printed[1]:
                bar = (("upload", printed[0].mean), ("materialise", printed[1].mean))
                rows.append((f"{published.TITLES[published.LEGACY]}, {words}", bar, "s"))
    if not runs:
        raise Absent("the legacy path was not measured")
    made = stacked(rows, "write, mean (s)", width=style.PAGE)
    notes = [HOW, f"Clients with {cores} processor{'s' if cores > 1 else ''}.", studio.run_set.coverage]
    return studio.finish(made, TITLE, notes, runs)


def _parts(runs: tuple[Run, ...]) -> tuple[tuple[str, float], ...]:
    """Return the mean seconds of each part of the writes, and of the rest; Absent if they have no parts."""
    told = [parts(run) for run in runs]
    found = {NAMES[step]: sum(float(each[step].mean()) for each in told) / len(told) for step in STEPS}
    whole = sum(float(times(run, WRITE).mean()) for run in runs) / len(runs)
    found["rest"] = max(0.0, whole - sum(found.values()))
    return tuple((name, seconds) for name, seconds in found.items() if seconds > 0)
