"""Printed numbers of a study's publication, its machine and its software, for comparison with Tidemark's results.

Also the section of the study in the paper that Tidemark makes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures
    from tidemark.runs.runset import RunSet


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication: `hardware` by part, named as in tables, and `software` versions by program name.

    `optional` are programs that configurations may omit; they are still listed, as not used.
    """

    key: str  # name of its columns in CSV and JSON, and of the stack with its versions
    origin: str  # heading of its columns
    hardware: Mapping[str, str] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    @classmethod
    def read(cls, module: str) -> Publication:
        """Return what publication.yaml describes, in the folder of the file `module`."""
        return msgspec.yaml.decode(Path(module).with_name("publication.yaml").read_bytes(), type=cls)


def printed_rows[Row](file: Path, row: type[Row]) -> tuple[Row, ...]:
    """Return a publication's printed numbers from a CSV with one column per field of the dataclass `row`, in order.

    Fields are str, int or float; an empty cell is None if the field is optional. Raise ValueError, with file and
    line, for an invalid number or a missing column.
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


@dataclass(frozen=True, slots=True)
class PaperSection:
    """Functions that compute named texts, ready to print, from the runs; names must be unique across studies.

    `chapter` is the Typst source. `findings` are sentences for the box on the first page. `parts` returns objects that
    the chapter reads in addition to values and sentences, from the measures and from bench.json (None if missing).
    """

    chapter: Path
    values: Callable[[RunSet], Mapping[str, str]]
    sentences: Callable[[Measures], Mapping[str, str]]
    parts: Callable[[Measures, Mapping[str, Any] | None], Mapping[str, Any]] = lambda _measures, _bench: {}
    findings: Callable[[Measures], Sequence[str]] = lambda _measures: ()
    # Title, abstract and the text before and after the chapters, as Typst; used for the first study of a paper.
    front: Path | None = None


@dataclass(frozen=True, slots=True)
class Chapter:
    """One study in the paper: its contribution and the measures of its runs."""

    study: str
    title: str
    brings: PaperSection
    measures: Measures
