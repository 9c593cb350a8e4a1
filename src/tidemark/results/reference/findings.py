"""What was found that nobody published before: declared by each study, shown by runs that are shipped, or not claimed.

A study's findings are its `findings.yaml`, a list. What shows one are the runs of a script in `findings/`, which needs
nothing of Tidemark, and cells of the study's tables; both lie with the reference results. Nothing is claimed that
fewer than 9 of 10 of either show, or that was looked at fewer than 10 times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import fields as fields_of
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY
from tidemark.results.reference.content import TABLES
from tidemark.runs.coding.fields import Fields
from tidemark.runs.coding.shapes import Pairs, read

DECLARED = "findings.yaml"  # in the folder of a study
SCRIPTS = REPOSITORY / "findings"
FOLDER = "findings"  # of the reference results
OF_TEN = 9  # of ten runs, at least, have to show it
LEAST = 10  # runs and cells together; arithmetic of printed numbers is done once
OF_SCRIPT = "runs of its script"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Script:
    """What a finding's script runs from: a stack of `envs`, folders of `envs/jars`, other stacks, and tools.

    The interpreters of `also` are handed to it, so that one run covers several releases of a client; the programs of
    `tools` stand on its PATH.
    """

    stack: str
    jars: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of one of the study's tables: which, by the texts of columns, and the number above which one shows it.

    A row counts as many times as its column `weight` says. One without a number there shows nothing and is not counted.
    """

    table: str
    where: Pairs[tuple[str, ...]]
    column: str
    above: float
    words: str  # what is counted, in the plural
    weight: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A public report of the same (`published`), or of something near it."""

    place: str
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `wrong_rows`: it says that somebody's software loses, doubles or makes up rows, or changes them."""

    id: str
    title: str
    seen: str  # what was seen
    not_shown: str  # what it does not show
    meanwhile: str = ""  # what to set or to do until it is mended
    repeat: str = ""  # the command, where there is no script
    script: Script | None = None
    cells: tuple[Cells, ...] = ()
    related: tuple[Known, ...] = ()
    published: Known | None = None
    wrong_rows: bool = False
    arithmetic: bool = False
    study: str = ""

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.id.replace('-', '_')}.py"

    @property
    def command(self) -> str:
        return f"./tidemark finding {self.id}" if self.script else self.repeat


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a script."""

    seen: bool
    said: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The runs of a finding's script on one machine; `case` is what the first that showed it printed."""

    finding: str
    script_sha256: str
    machine: str
    versions: Pairs[str]
    attempts: tuple[Attempt, ...]
    case: Any = None
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Count:
    """How many of `whole` show a finding; `words` say what they are."""

    seen: int
    whole: int
    words: str

    @property
    def is_enough(self) -> bool:
        return 10 * self.seen >= OF_TEN * self.whole

    def __str__(self) -> str:
        return f"{self.seen:,} of {self.whole:,} {self.words}"


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding with what is shipped of it; `evidence` is None where its script, as it is now, was not run."""

    finding: Finding
    evidence: Evidence | None
    counts: tuple[Count, ...]

    @property
    def why_not(self) -> str:
        """Why it is not claimed; nothing where it is."""
        few = [str(count) for count in self.counts if not count.is_enough]
        if few:
            return f"only {' and '.join(few)} show it"
        if self.finding.script and self.evidence is None:
            return "no run of its script, as it is now, is shipped"
        whole = sum(count.whole for count in self.counts)
        least = 1 if self.finding.arithmetic else LEAST
        return "" if whole >= least else f"{whole:,} runs and cells are shipped, fewer than {least}"


def declared(study: str, path: Path) -> tuple[Finding, ...]:
    """The findings of a study, in the order of its file; none where it has none.

    AnalysisError, naming file and key, for what they may not be.
    """
    if not path.is_file():
        return ()
    try:
        items = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise AnalysisError(f"{path}: cannot be read as YAML: {error}") from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AnalysisError(f"{path}: found {type(items).__name__}; allowed: a list of findings")
    return tuple(_finding(study, item, Fields(f"{path}: finding '{item.get('id')}'", item)) for item in items)


def _finding(study: str, item: dict[str, Any], f: Fields) -> Finding:
    known = {each.name for each in fields_of(Finding)} - {"study"}
    if unknown := set(item) - known:
        raise AnalysisError(f"{f.source}: found the keys {sorted(unknown)}; allowed: {', '.join(sorted(known))}")
    f.values = {**item, "study": study}
    made = read(Finding, f)
    if made.script and not made.path.is_file():
        raise AnalysisError(f"{f.source}: key 'script': there is no {made.path}")
    if made.wrong_rows and made.script is None:
        raise AnalysisError(
            f"{f.source}: key 'script': found nothing; who says that somebody's software has wrong rows gives a script "
            "that shows it alone"
        )
    if bool(made.repeat) == bool(made.script):
        raise AnalysisError(f"{f.source}: keys 'script' and 'repeat': allowed: one of them")
    return made


def digest_of(finding: Finding) -> str:
    """Of its script and of what other files there it names."""
    text = finding.path.read_bytes()
    beside = (path for path in sorted(SCRIPTS.iterdir()) if path.suffix in (".py", ".java") and path != finding.path)
    return sha256(text + b"".join(path.read_bytes() for path in beside if path.stem.encode() in text)).hexdigest()


def shown(finding: Finding, kept: Path) -> Shown:
    """What the reference results in `kept` show of `finding`."""
    evidence, counts = None, []
    path = kept / FOLDER / f"{finding.id}.json"
    if finding.script and path.is_file():
        found = read(Evidence, Fields.read(path))
        evidence = found if found.script_sha256 == digest_of(finding) else None
    if evidence:
        seen = sum(each.seen for each in evidence.attempts)
        counts.append(Count(seen, len(evidence.attempts), OF_SCRIPT))
    for cells in finding.cells:
        path = kept / finding.study / TABLES / f"{cells.table}.json"
        if path.is_file() and (count := counted(cells, json.loads(path.read_text()))).whole:
            counts.append(count)
    return Shown(finding, evidence, tuple(counts))


def counted(cells: Cells, table: dict[str, Any]) -> Count:
    """How many of the rows in `table`, as its JSON has it, show what `cells` ask for."""
    keys = [column["key"] for column in table["columns"]]
    wanted = {name for name, _ in cells.where} | {cells.column} | ({cells.weight} - {None})
    if missing := wanted - set(keys):
        raise AnalysisError(f"table '{cells.table}': found no column {sorted(map(str, missing))}; allowed: {keys}")
    seen = whole = 0
    for values in table["rows"]:
        row = dict(zip(keys, values, strict=True))
        value = _number(row[cells.column])
        if value is None or any(str(row[name]) not in allowed for name, allowed in cells.where):
            continue
        weight = 1 if cells.weight is None else int(row[cells.weight])
        whole += weight
        seen += weight if value > cells.above else 0
    return Count(seen, whole, cells.words)


def _number(cell: object) -> float | None:
    value = cell.get("value") if isinstance(cell, dict) else cell
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
