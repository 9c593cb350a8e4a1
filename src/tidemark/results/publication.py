"""What a study's publication prints, and says of its own machine and software: shown beside what was found here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Publication:
    """`hardware` by part as tables name it, `software` (versions) by the name that programs go by.

    `optional` are programs that configurations may do without: they are listed all the same, as not used.
    """

    key: str  # of its columns in CSV and JSON, and of the stack that has its versions
    origin: str  # the heading of its columns
    hardware: Mapping[str, str] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


def printed_rows[Row](file: Path, row: type[Row]) -> tuple[Row, ...]:
    """The numbers that a publication prints, from a CSV with a column a field of `row`, a dataclass, in their order.

    Fields are str, int or float; an empty cell is None where the field may be. ValueError, with file and line, for a
    cell that is no such number, and for a column too few.
    """
    kinds = get_type_hints(row)
    with file.open() as opened:
        reader = csv.DictReader(opened)
        made = []
        for each in reader:
            try:
                values = {name.name: _cell(each[name.name], kinds[name.name]) for name in fields(row)}  # type: ignore[arg-type]
            except (KeyError, ValueError) as problem:
                raise ValueError(f"{file.name}, line {reader.line_num}: {problem}") from None
            made.append(row(**values))
    return tuple(made)


def _cell(text: str, kind: Any) -> Any:
    kinds = get_args(kind) or (kind,)
    return None if text == "" and type(None) in kinds else kinds[0](text)
