"""Tables and their three output formats: CSV (full precision), Markdown and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tidemark.analysis.formatting import Cell, MissingCell, shown
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, MetricSet, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.errors import AnalysisError
from tidemark.paths import remove_others, write_atomically, write_if_changed
from tidemark.results.publication import Publication
from tidemark.runs.run import Run, source_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_runs, dataset_label, mixture, unfinished


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `key` is its name in CSV and JSON. With `interval`, cells are estimates; CSV adds `_low`, `_high`."""

    key: str
    title: str
    unit: str = ""
    interval: bool = False

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title


# Columns that identify a row, in their order in tables.
SYSTEM, MODE, SWEEP = Column("system", "System"), Column("mode", "Mode"), Column("sweep", "Sweep")
REPEAT = Column("repeat", "Repeat")  # of a run's series, if series were repeated
RUN, STATE = Column("run", "Run"), Column("state", "State")
IDENTITY = (SYSTEM, MODE)
PER_RUN = (*IDENTITY, REPEAT, RUN, STATE)
OF_SWEEPS = (*IDENTITY, SWEEP, REPEAT)


@dataclass(frozen=True, slots=True)
class ComputedColumn[T]:
    """A column with the function that computes its cells from the subject of a row: a series, a run, or a part of one.

    Where the function raises NotAvailable, the cell is missing for that reason. An estimate is in the column's unit.
    """

    column: Column
    compute: Callable[[T], Cell | BootstrapEstimate]

    def cell(self, subject: T) -> Cell:
        try:
            found = self.compute(subject)
        except NotAvailable as absent:
            return MissingCell(str(absent))
        return found.estimate(self.column.unit) if isinstance(found, BootstrapEstimate) else found


def computed[T](
    key: str, title: str, compute: Callable[[T], Cell | BootstrapEstimate], unit: str = "", *, interval: bool = False
) -> ComputedColumn[T]:
    """Return a column whose cells `compute` makes."""
    return ComputedColumn(Column(key, title, unit, interval), compute)


SYSTEM_OF_SERIES: ComputedColumn[Series] = ComputedColumn(SYSTEM, lambda series: series.title)
MODE_OF_SERIES: ComputedColumn[Series] = ComputedColumn(MODE, lambda series: series.mode_title)
SWEEP_OF_SERIES: ComputedColumn[Series] = ComputedColumn(SWEEP, lambda series: series.sweep)


@dataclass(frozen=True, slots=True)
class Row[T]:
    """Row about a part of a series, such as a run: `shown`; or none, in which case cells have the reason, if given."""

    series: Series
    shown: T | None
    why_not: str = ""

    @classmethod
    def of(cls, series: Series, parts: Iterable[T], why_not: str = "") -> list[Row[T]]:
        """Return a row for each of the `parts` of a series, or one row if there is none."""
        return [cls(series, part) for part in parts] or [cls(series, None, why_not)]


def series_columns(*columns: ComputedColumn[Series]) -> list[ComputedColumn[Row[Any]]]:
    """Return `columns` of series as columns of rows about their parts."""

    def column(own: ComputedColumn[Series]) -> ComputedColumn[Row[Any]]:
        return ComputedColumn(own.column, lambda row: own.compute(row.series))

    return [column(each) for each in columns]


def part_column[T](
    key: str, title: str, compute: Callable[[T], Cell | BootstrapEstimate], unit: str = "", *, interval: bool = False
) -> ComputedColumn[Row[T]]:
    """Return a column whose cells `compute` makes from the part that a row shows."""

    def cell(row: Row[T]) -> Cell | BootstrapEstimate:
        if row.shown is None:
            return MissingCell(row.why_not) if row.why_not else None
        return compute(row.shown)

    return computed(key, title, cell, unit, interval=interval)


def with_reason[T](own: ComputedColumn[Row[T]]) -> ComputedColumn[Row[T]]:
    """Return the column, with the reason why the series has no run in rows that show no part."""

    def cell(row: Row[T]) -> Cell | BootstrapEstimate:
        return MissingCell(row.series.missing()) if row.shown is None else own.compute(row)

    return ComputedColumn(own.column, cell)


# Columns that identify a row about a run.
RUN_OF_ROW: ComputedColumn[Row[Run]] = part_column("run", "Run", lambda run: run.number)
OF_RUN: tuple[ComputedColumn[Row[Run]], ...] = (
    ComputedColumn(REPEAT, lambda row: row.series.repeat_of(row.shown) if row.shown else None),
    RUN_OF_ROW,
)
RUN_OF_SWEEPS: tuple[ComputedColumn[Row[Run]], ...] = (
    *series_columns(SYSTEM_OF_SERIES, MODE_OF_SERIES, SWEEP_OF_SERIES),
    *OF_RUN,
)


@dataclass(frozen=True, slots=True)
class Table:
    """One table: `rows` have one cell per column; `sources` are the labels of the runs that it was computed from."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sources: tuple[str, ...]
    dataset: str
    notes: tuple[str, ...] = ()

    def csv(self) -> str:
        """Return CSV at full precision. Intervals add two columns; missing values are empty, see `<key>_missing`."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        reasons = [any(isinstance(row[place], MissingCell) for row in self.rows) for place in range(len(self.columns))]
        header: list[str] = []
        for column, has_reason in zip(self.columns, reasons, strict=True):
            header.append(f"{column.key} [{column.unit}]" if column.unit else column.key)
            header += [f"{column.key}_low", f"{column.key}_high"] if column.interval else []
            header += [f"{column.key}_missing"] if has_reason else []
        writer.writerow(header)
        for row in self.rows:
            line: list[object] = []
            for column, has_reason, cell in zip(self.columns, reasons, row, strict=True):
                estimate = cell if isinstance(cell, Estimate) else None
                plain = None if isinstance(cell, MissingCell) else cell
                line.append(estimate.value if estimate else plain)
                if column.interval:
                    line += [estimate.low, estimate.high] if estimate else [None, None]
                if has_reason:
                    line.append(cell.reason if isinstance(cell, MissingCell) else None)
            writer.writerow(line)
        return buffer.getvalue()

    def markdown(self) -> str:
        """Return Markdown with four significant digits and intervals in brackets."""
        lines = [f"**{self.title}**", "", self.grid()]
        below = [*self.notes, f"Dataset: {self.dataset}", f"Source runs: {', '.join(self.sources) or 'none'}"]
        lines += ["", *(f"- {_text(each)}" for each in below)]
        return "\n".join(lines) + "\n"

    def grid(self) -> str:
        """Return only the header and the rows, as Markdown."""
        units = [column.unit for column in self.columns]
        rows = [[_text(shown(*pair)) for pair in zip(row, units, strict=True)] for row in self.rows]
        return markdown_grid([column.heading for column in self.columns], rows)

    def json(self) -> str:
        columns = [{"key": c.key, "title": c.title, "unit": c.unit, "interval": c.interval} for c in self.columns]
        whole = {
            "name": self.name,
            "title": self.title,
            "columns": columns,
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
            "notes": list(self.notes),
            "dataset": self.dataset,
            "sources": list(self.sources),
        }
        return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def read_table(path: Path) -> Table:
    """Return the table from a file written by `Table.json`; raise AnalysisError, naming the file, for any other."""
    try:
        whole = json.loads(path.read_text())
        columns = tuple(Column(**column) for column in whole["columns"])
        rows = tuple(tuple(map(parsed_cell, row)) for row in whole["rows"])
        sources, notes = tuple(whole["sources"]), tuple(whole["notes"])
        return Table(whole["name"], whole["title"], columns, rows, sources, whole["dataset"], notes)
    except (ValueError, KeyError, TypeError) as error:
        raise AnalysisError(f"{path}: not a table that Tidemark wrote ({type(error).__name__}: {error})") from error


def records(table: Table) -> list[dict[str, Cell]]:
    """Return the rows of a table with their cells by the key of the column."""
    return [dict(zip((column.key for column in table.columns), row, strict=True)) for row in table.rows]


def parsed_cell(plain: Any) -> Cell:
    """Return a cell from its JSON, as `Table.json` writes it."""
    if not isinstance(plain, dict):
        return plain  # type: ignore[no-any-return]
    if "missing" in plain or plain["value"] is None:
        return MissingCell(plain.get("missing", "no finite number"))
    return Estimate(**plain)


def markdown_grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of texts, each on one line and with its pipes escaped."""
    lines = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *lines))


def markdown_list(title: str, items: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a section with a list; nothing without items."""
    if items:
        yield f"## {title}\n"
        yield from (f"- {item}" for item in items)
        yield ""


def _text(text: str) -> str:
    """Return `text` with HTML escaped: a `<` that would begin a tag in Markdown becomes a character reference."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def _plain(cell: Cell) -> object:
    if isinstance(cell, Estimate):
        ends = {"low": _finite(cell.low), "high": _finite(cell.high)}
        return {"value": _finite(cell.value), **ends, "n": cell.n, "runs": cell.runs, "unit": cell.unit}
    if isinstance(cell, MissingCell):
        return {"missing": cell.reason}
    return _finite(cell) if isinstance(cell, float) else cell


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class TableBuilder:
    """Input of tables: the measures and the published values, with a method for the parts that all tables share."""

    measures: Measures
    publications: tuple[Publication, ...] = ()
    parts: tuple[Measures, ...] = ()  # those of each study, if tables cover several

    @property
    def quantities(self) -> MetricSet:
        return self.measures.quantities

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    @property
    def runs(self) -> list[Run]:
        """Runs of all series that tables of one study show: those of the main sweep under the first stack."""
        return all_runs(self.run_set.select())

    def measures_of(self, run: Run) -> Measures:
        """Return the measures of the study that `run` belongs to."""
        study = run.manifest.series.study
        return next((each for each in self.parts if study in each.run_set.studies), self.measures)

    def metric(self, key: str, quantity: Metric, title: str = "") -> ComputedColumn[Series]:
        """Return the column of `quantity` over series: of their hot runs, or of run 0 if they have none.

        Its heading is the quantity's title if no other is given.
        """

        def value(series: Series) -> BootstrapEstimate:
            require(series.runs, series.missing())
            return self.measures.value(quantity, series)

        return computed(key, title or quantity.title, value, quantity.unit, interval=True)

    def ratio(self, key: str, title: str, quantity: Metric, over: Metric) -> ComputedColumn[Series]:
        """Return the column of one quantity divided by another, both of the same series."""

        def value(series: Series) -> BootstrapEstimate:
            return self.measures.value(quantity, series).ratio(self.measures.value(over, series))

        return computed(key, title, value, "x", interval=True)

    def computed_table[T](
        self,
        name: str,
        title: str,
        columns: Sequence[ComputedColumn[T]],
        subjects: Sequence[T],
        runs: Sequence[Run],
        notes: Sequence[str] = (),
    ) -> Table:
        """Return the table with a row for each of `subjects`; `runs` are those that it is computed from."""
        rows = [[column.cell(subject) for column in columns] for subject in subjects]
        return self.table(name, title, [each.column for each in columns], rows, runs, notes)

    def table(
        self,
        name: str,
        title: str,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Cell]],
        runs: Sequence[Run],
        notes: Sequence[str] = (),
    ) -> Table:
        """Return the table; where a row has fewer cells than there are columns, the others are empty."""
        stack = () if len(self.run_set.stacks) == 1 else (f"Software stack: {self.run_set.stack}.",)
        filled: tuple[tuple[Cell, ...], ...] = tuple((*row, *[None] * (len(columns) - len(row))) for row in rows)
        told = (*unfinished(self.run_set), *mixture(self.run_set), *notes, *stack)
        sources = tuple(source_runs(runs))
        return Table(name, title, tuple(columns), filled, sources, dataset_label(self.run_set), told)


def notes_of(module: str, *more: str) -> Callable[..., list[str]]:
    """Return a function that gives the notes of a table by its name, of notes.yaml in the folder of the file `module`.

    Its keyword arguments are the values of `{name}` in these notes. `more` are notes that all of its tables have.
    """
    path = Path(module).with_name("notes.yaml")

    def notes(table: str, **values: object) -> list[str]:
        return [*(text.format_map(values) for text in _notes(path)[table]), *more]

    return notes


@cache
def _notes(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = yaml.load(path.read_text(), yaml.CSafeLoader)
    return found


def not_here(builder: TableBuilder, name: str, title: str, module: str) -> Table:
    """Return the table of what a study does not measure, and why, of not-here.csv next to the file `module`."""
    rows = list(csv.reader(Path(module).with_name("not-here.csv").read_text().splitlines()))[1:]
    return builder.table(name, title, (Column("what", "What"), Column("reason", "Why it is not measured")), rows, ())


def tables_by(*functions: Callable[[TableBuilder], Table]) -> Callable[[TableBuilder], Iterator[Table]]:
    """Return a function that yields the tables that `functions` make, in this order."""

    def build(builder: TableBuilder) -> Iterator[Table]:
        return (make(builder) for make in functions)

    return build


def write_tables(groups: Mapping[str, Sequence[Table]], folder: Path) -> None:
    """Write each table in its three formats to `folder`/<group>, then index.json, which lists them.

    The tables of the group "" are written to `folder` itself. Raise AnalysisError for duplicate names in a group.
    """
    index: list[dict[str, object]] = []
    known = {"index.json"}
    for group, tables in groups.items():
        for table in tables:
            files: list[str] = []
            for ending, content in (("csv", table.csv()), ("md", table.markdown()), ("json", table.json())):
                name = f"{group}/{table.name}.{ending}" if group else f"{table.name}.{ending}"
                if name in known:
                    raise AnalysisError(f"study '{group}': two tables are called '{table.name}'")
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                write_if_changed(folder / name, content)
                files.append(name)
            known.update(files)
            index.append(
                {
                    "name": table.name,
                    "study": group or None,
                    "title": table.title,
                    "files": files,
                    "rows": len(table.rows),
                    "dataset": table.dataset,
                    "sources": list(table.sources),
                    "notes": list(table.notes),
                }
            )
    remove_others(folder, known, (".csv", ".md", ".json"))
    write_atomically(folder / "index.json", json.dumps({"schema_version": 1, "tables": index}, indent=1) + "\n")
