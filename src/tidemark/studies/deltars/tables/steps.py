"""Table of the parts of a write that goes through servers, next to the two parts that the thesis prints."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.analysis.quantities import Absent
from tidemark.analysis.words import Cell
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import in_order, tables_of
from tidemark.studies.deltars.quantities import MATERIALISED, STEPS, UPLOAD, UPLOAD_SHARE, parts, times
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.tables.whole import CORES, DATA, LEGACY, STAND_INS, head, ours
from tidemark.studies.deltars.window.samples import WRITE

HOW = (
    "Parts follow each other and overlap nowhere; of what goes on at once, the first of these has the time: a stage "
    "that reads the topic, a call of HDFS, another stage, the driver. Calls of HDFS are those of names, and closing "
    "files, in which a client waits until the NameNode knows the last block. What parts leave of a write is its "
    "client's own: for delta-rs behind a topic its whole write."
)


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the table deltars-steps."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for data in tables_of(workshop.run_set):
        for series in in_order(workshop.run_set):
            if shape_of(series.mode)[0] != data:
                continue
            try:
                told = [parts(run) for run in series.runs]
                whole = sum(float(times(run, WRITE).mean()) for run in series.runs)
            except Absent:
                continue
            if not told:
                continue
            runs += series.runs
            means = [sum(float(each[step].mean()) for each in told) for step in STEPS]
            cells: list[Cell] = [each / len(told) or None for each in (*means, whole - sum(means))]
            of_each = [ours(workshop, each, series) for each in (UPLOAD, MATERIALISED, UPLOAD_SHARE)]
            rows.append([*head(series), *cells, *of_each])
        rows += _printed(data)
    columns = (
        SYSTEM, DATA, CORES, *(Column(step, title, "s") for step, title in STEPS.items()), Column("rest", "Rest", "s"),
        Column("uploaded", "Upload", "s", interval=True), Column("materialised", "Materialised", "s", interval=True),
        Column("share", "Upload, of the write", "%", interval=True),
    )  # fmt: skip
    yield workshop.table("deltars-steps", "What a write is made of", columns, rows, runs, [HOW, LEGACY, STAND_INS])


def _printed(data: str) -> Iterator[list[Cell]]:
    for cores in published.CORES:
        pair = [
            published.printed(each, published.LEGACY, data, cores) for each in (published.UPLOAD, published.MATERIALISE)
        ]
        if pair[0] and pair[1]:
            upload, materialise = pair[0].mean, pair[1].mean
            nothing: list[Cell] = [None] * (len(STEPS) + 1)
            share = 100 * upload / (upload + materialise)
            yield [published.TITLES[published.LEGACY], data, cores, *nothing, upload, materialise, share]
