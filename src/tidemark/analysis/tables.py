"""What a table is, and the three forms in which it is written: CSV (full precision), Markdown and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.measures import Absent, Measures
from tidemark.analysis.provenance import mixture
from tidemark.analysis.run import Run, source_runs
from tidemark.analysis.runs import RunSet
from tidemark.analysis.statistics import Estimate, Replicates
from tidemark.paths import write_atomically, write_if_changed


@dataclass(frozen=True, slots=True)
class Missing:
    """A cell that has no value, and why."""

    reason: str

    def __str__(self) -> str:
        return f"missing: {self.reason}"


type Cell = Estimate | Missing | str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """`key` names it in CSV and JSON. With `interval`, its cells are estimates and CSV has `_low` and `_high`."""

    key: str
    title: str
    unit: str = ""
    interval: bool = False

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title


REPEAT = Column("repeat", "Repeat")  # of a run's series, where series were repeated


@dataclass(frozen=True, slots=True)
class Table:
    """One table: `rows` hold a cell a column; `sources` are the labels of the runs that it was made from."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sources: tuple[str, ...]
    dataset: str
    notes: tuple[str, ...] = ()

    def csv(self) -> str:
        """Every digit; an interval is two columns more; a missing value is empty, its reason in `<key>_missing`."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        reasons = [any(isinstance(row[place], Missing) for row in self.rows) for place in range(len(self.columns))]
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
                plain = None if isinstance(cell, Missing) else cell
                line.append(estimate.value if estimate else plain)
                if column.interval:
                    line += [estimate.low, estimate.high] if estimate else [None, None]
                if has_reason:
                    line.append(cell.reason if isinstance(cell, Missing) else None)
            writer.writerow(line)
        return buffer.getvalue()

    def markdown(self) -> str:
        """For people: four significant digits, intervals in brackets."""
        lines = [f"**{self.title}**", ""]
        lines.append("| " + " | ".join(column.heading for column in self.columns) + " |")
        lines.append("|" + "|".join(" --- " for _ in self.columns) + "|")
        units = [column.unit for column in self.columns]
        cells = ([_escaped(shown(*pair)) for pair in zip(row, units, strict=True)] for row in self.rows)
        lines += [f"| {' | '.join(row)} |" for row in cells]
        lines += ["", *(f"- {note}" for note in self.notes), f"- Dataset: {self.dataset}"]
        lines.append(f"- Source runs: {', '.join(self.sources) or 'none'}")
        return "\n".join(lines) + "\n"

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


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _plain(cell: Cell) -> object:
    if isinstance(cell, Estimate):
        ends = {"low": _finite(cell.low), "high": _finite(cell.high)}
        return {"value": _finite(cell.value), **ends, "n": cell.n, "runs": cell.runs, "unit": cell.unit}
    if isinstance(cell, Missing):
        return {"missing": cell.reason}
    return _finite(cell) if isinstance(cell, float) else cell


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def number(value: float, digits: int = 4) -> str:
    """`value` with `digits` significant digits and thousands separated; never in powers of ten."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def shown(cell: Cell, unit: str = "", digits: int = 4) -> str:
    """A cell as people read it, numbers with `digits` significant digits; of a share of next to nothing, that it is."""
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        if cell.low is None or cell.high is None:
            return number(cell.value, digits)
        # The ends are as exact as the value, no more: digits beyond its last one would be noise.
        decimals = digits - 1 - math.floor(math.log10(abs(cell.value))) if cell.value else digits
        low, high = (f"{round(end, decimals):,.{max(decimals, 0)}f}" for end in (cell.low, cell.high))
        return f"{number(cell.value, digits)} [{low}, {high}]"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return "<0.001" if unit == "%" and 0 < cell < 0.001 else number(cell, digits)
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def attempt(unit: str, compute: Callable[[], Replicates]) -> Estimate | Missing:
    """What `compute` gives as a number in `unit`, or the reason why there is nothing."""
    try:
        return compute().estimate(unit)
    except Absent as absent:
        return Missing(str(absent))


def dataset_label(run_set: RunSet) -> str:
    return "; ".join(dataset.label for dataset in run_set.datasets) or "no run was measured"


@dataclass(frozen=True, slots=True)
class Workshop:
    """What makes tables: the measures, and a hand for the parts that all tables share."""

    measures: Measures

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    def table(
        self,
        name: str,
        title: str,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Cell]],
        runs: Sequence[Run],
        notes: Sequence[str] = (),
    ) -> Table:
        stack = () if len(self.run_set.stacks) == 1 else (f"Software stack: {self.run_set.stack}.",)
        return Table(
            name,
            title,
            tuple(columns),
            tuple(tuple(row) for row in rows),
            tuple(source_runs(runs)),
            dataset_label(self.run_set),
            (*mixture(self.run_set), *notes, *stack),
        )


def write_tables(tables: Sequence[Table], folder: Path) -> None:
    """Write each table in its three forms into `folder`, then index.json, which lists what was made."""
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for table in tables:
        for ending, content in (("csv", table.csv()), ("md", table.markdown()), ("json", table.json())):
            write_if_changed(folder / f"{table.name}.{ending}", content)
        index.append(
            {
                "name": table.name,
                "title": table.title,
                "files": [f"{table.name}.{ending}" for ending in ("csv", "md", "json")],
                "rows": len(table.rows),
                "dataset": table.dataset,
                "sources": list(table.sources),
                "notes": list(table.notes),
            }
        )
    known = {name for entry in index for name in entry["files"]} | {"index.json"}  # type: ignore[attr-defined]
    for path in folder.iterdir():
        if path.name not in known and path.suffix in (".csv", ".md", ".json"):
            path.unlink()  # a table that this configuration no longer has
    write_atomically(folder / "index.json", json.dumps({"schema_version": 1, "tables": index}, indent=1) + "\n")
