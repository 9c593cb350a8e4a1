"""Previously unpublished findings, declared by each study, and claimed only if the shipped runs show them.

A study's findings are the list in its `findings.yaml`. The evidence consists of runs of a script in `findings/`, which
does not depend on Tidemark, and of cells of the study's tables; both are in the reference results. A finding is claimed
only if at least 9 of 10 of each kind show it, and if there are at least 10 runs and cells in total.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY
from tidemark.results.reference.content import TABLES
from tidemark.results.tables.table import markdown_grid, markdown_list
from tidemark.runs.serde import Fields, Pairs, read

DECLARED = "findings.yaml"  # in the folder of a study
SCRIPTS = REPOSITORY / "findings"
FOLDER = "findings"  # of the reference results
OF_TEN = 9  # minimum number of ten runs that must show it
LEAST = 10  # minimum number of runs plus cells; arithmetic on printed numbers is done once
OF_SCRIPT = "runs of its script"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Script:
    """Environment of a finding's script: a stack of `envs`, folders of `envs/jars`, other stacks, and tools.

    The script receives the interpreters of `also`, so that one run covers several releases of a client; the programs
    of `tools` are on its PATH.
    """

    stack: str
    jars: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of one of the study's tables, selected by column texts (`where`); those above a number show the finding.

    A row counts `weight` times (the value of that column). Rows without a number in `column` are not counted.
    """

    table: str
    where: Pairs[tuple[str, ...]]
    column: str
    above: float
    words: str  # plural noun for what is counted
    weight: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A public report of the same finding (`published`), or of a related one."""

    place: str
    words: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `wrong_rows`: it states that some software loses, duplicates, invents or changes rows."""

    id: str
    title: str
    seen: str  # the observation
    not_shown: str  # limits of the finding
    systems: tuple[str, ...] = ()  # names of the systems whose pages link to it
    meanwhile: str = ""  # workaround until it is fixed
    repeat: str = ""  # the command if there is no script
    script: Script | None = None
    cells: tuple[Cells, ...] = ()
    related: tuple[Known, ...] = ()
    published: Known | None = None
    wrong_rows: bool = False
    mended: str = ""  # the first release that does not do it, if there is one
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
    """Runs of a finding's script on one machine; `case` is the output of the first run that showed it.

    `date`: UTC day on which the runs began, such as 2026-11-28; empty in files of earlier versions.
    """

    finding: str
    script_sha256: str
    machine: str
    versions: Pairs[str]
    attempts: tuple[Attempt, ...]
    case: Any = None
    date: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Count:
    """Number `seen` of `whole` runs or cells that show a finding; `words` describe them."""

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
    """A finding with its shipped evidence; `evidence` is None if the current version of its script was not run."""

    finding: Finding
    evidence: Evidence | None
    counts: tuple[Count, ...]

    @property
    def why_not(self) -> str:
        """Reason why it is not claimed; empty if it is."""
        few = [str(count) for count in self.counts if not count.is_enough]
        if few:
            return f"only {' and '.join(few)} show it"
        if self.finding.script and self.evidence is None:
            return "no run of its script, as it is now, is shipped"
        whole = sum(count.whole for count in self.counts)
        least = 1 if self.finding.arithmetic else LEAST
        return "" if whole >= least else f"{whole:,} runs and cells are shipped, fewer than {least}"

    @property
    def is_described(self) -> bool:
        """True if the page of findings has a section, with an anchor, about it."""
        return self.finding.published is not None or not self.why_not


def declared(study: str, path: Path) -> tuple[Finding, ...]:
    """Return the findings of a study in file order; empty if it has none.

    Raise AnalysisError, naming file and key, if one is invalid.
    """
    if not path.is_file():
        return ()
    try:
        items = yaml.load(path.read_text(), yaml.CSafeLoader)
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
            f"{f.source}: key 'script': found nothing; a finding of wrong rows in other software needs a script that "
            "shows it alone"
        )
    if bool(made.repeat) == bool(made.script):
        raise AnalysisError(f"{f.source}: keys 'script' and 'repeat': allowed: one of them")
    return made


def digest_of(finding: Finding) -> str:
    """Return the SHA-256 of its script and of the other files in `findings/` that the script names."""
    text = finding.path.read_bytes()
    beside = (path for path in sorted(SCRIPTS.iterdir()) if path.suffix in (".py", ".java") and path != finding.path)
    return sha256(text + b"".join(path.read_bytes() for path in beside if path.stem.encode() in text)).hexdigest()


def shown(finding: Finding, kept: Path) -> Shown:
    """Return `finding` with its evidence in the reference results in `kept`."""
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
    """Return the number of rows of a JSON `table` that satisfy `cells`; raise AnalysisError for a missing column."""
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


COLUMNS = ("Finding", "Systems", "Wrong rows", "Seen in runs or cells", "Last run of its script", "Mended in")
MOST = 400  # characters shown of a value in the raw evidence


def page(found: Sequence[Shown]) -> str:
    """Return the text."""
    own = _worst_first([each for each in found if each.finding.published is None])
    claimed = [each for each in own if not each.why_not]
    lines = [
        "# Findings",
        "",
        "What was found while this was built, of which no earlier publication is known to us. This page is made by "
        f"`./tidemark artifact` from `reference/`; nothing is claimed that fewer than {OF_TEN} of 10 of the runs and "
        f"cells shipped there show, or that was looked at fewer than {LEAST} times. `./tidemark finding NAME` repeats "
        "one: it makes the environment of the locks and runs a script of `findings/`, which needs nothing of Tidemark.",
        "",
    ]
    before = _worst_first([each for each in found if each.finding.published is not None])
    if claimed or before:
        lines += [markdown_grid(COLUMNS, [_row(each) for each in (*claimed, *before)]), ""]
    for each in claimed:
        lines += _section(each, "##")
    if not claimed:
        lines += ["None yet: the reference results show none of those that are declared.", ""]
    lines += markdown_list("Not claimed", [f"`{each.finding.id}`: {each.why_not}." for each in own if each.why_not])
    if before:
        lines += ["## Seen here, published by others before", ""]
    for each in before:
        lines += _section(each, "###")
    return "\n".join(lines)


def _row(each: Shown) -> tuple[str, ...]:
    """Return the row of a finding in the table at the top of the page."""
    finding = each.finding
    return (
        f"[{finding.title}](findings.md#{finding.id})",
        ", ".join(f"[`{name}`](systems/{name}.md)" for name in finding.systems),
        "yes" if finding.wrong_rows else "no",
        "by arithmetic" if finding.arithmetic else ", ".join(f"{one.seen:,} of {one.whole:,}" for one in each.counts),
        each.evidence.date if each.evidence else "",
        finding.mended,
    )


def _worst_first(found: Sequence[Shown]) -> list[Shown]:
    """Sort findings of wrong rows first, otherwise in the order of declaration."""
    return sorted(found, key=lambda each: not each.finding.wrong_rows)


def _section(each: Shown, level: str) -> Iterator[str]:
    """Yield the text about a finding below a heading that begins with `level`."""
    finding, published = each.finding, each.finding.published
    yield f'<a id="{finding.id}"></a>\n'
    yield f"{level} {finding.title}\n"
    yield finding.seen.strip().replace("\n", "\n\n") + "\n"
    if finding.meanwhile:
        yield f"**Meanwhile:** {finding.meanwhile.strip()}\n"
    if finding.arithmetic or each.counts:
        by = "by arithmetic" if finding.arithmetic else f"in {' and in '.join(_counts(each))}"
        yield f"- Seen {'here ' if published else ''}{by}."
    if published:
        yield f"- Published: {_known(published)}."
    alone = f", or, alone, `{finding.path.parent.name}/{finding.path.name}`" if finding.script else ""
    yield f"- Repeat it: `{finding.command}`{alone}."
    yield f"- It does not show {finding.not_shown.strip()}"
    yield from (f"- Near to it: {_known(known)}." for known in finding.related)
    yield ""
    if each.evidence is not None and any(attempt.seen for attempt in each.evidence.attempts):
        yield from _case(each.evidence)


def _counts(each: Shown) -> Iterator[str]:
    for count in each.counts:
        if each.evidence is not None and count.words == OF_SCRIPT:
            versions = ", ".join(f"{name} {version}" for name, version in each.evidence.versions)
            day = f" on {each.evidence.date}" if each.evidence.date else ""
            yield f"{count}{day} ({versions}; {each.evidence.machine})"
        else:
            yield str(count)


def _case(evidence: Evidence) -> Iterator[str]:
    path = f"reference/{FOLDER}/{evidence.finding}.json"
    yield f"One case (all of it in [`{path}`](../{path})):\n"
    yield "```"
    yield next(attempt.said for attempt in evidence.attempts if attempt.seen)
    for name, value in (evidence.case or {}).items():
        text = json.dumps(value)
        yield f"{name}: {text if len(text) <= MOST else f'{text[:MOST]} ...'}"
    yield "```\n"


def _known(known: Known) -> str:
    return f"{known.place} ({known.words})"
