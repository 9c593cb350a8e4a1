"""ARTIFACT.md and the pages of all claims: commands for evaluating this artifact, their duration, expected results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tidemark.analysis.formatting import estimate_text
from tidemark.progress import duration
from tidemark.results.claims.judge import Row
from tidemark.results.reference.content import About, Reference
from tidemark.results.tables.table import markdown_grid, markdown_list

NOT_KEPT = "no reference"
COMPARED = "for comparison"  # before a command whose runs cannot judge the claim
TEXT = yaml.load(Path(__file__).with_name("artifact.yaml").read_text(), yaml.CSafeLoader)


@dataclass(frozen=True, slots=True)
class Effort:
    """Planned effort of a study under a protocol; `seconds` is its duration."""

    study: str
    title: str
    question: str
    protocol: str
    series: int
    seconds: float

    @property
    def command(self) -> str:
        return f"./tidemark all --config 'studies=[{self.study}]' protocol={self.protocol}"


@dataclass(frozen=True, slots=True)
class Ledger:
    """All claims, judged or not, with what to expect of them.

    `seconds` is the duration of each retest command; `major` are the claims that ARTIFACT.md lists.
    """

    rows: Sequence[Row]
    seconds: Mapping[str, float]
    references: Sequence[Reference]
    major: Collection[str]

    def studies(self) -> list[str]:
        return list(dict.fromkeys(row.study for row in self.rows))

    def kept(self, study: str) -> list[Reference]:
        return [each for each in self.references if each.about.study == study]

    def expected(self, row: Row, stack: str) -> str:
        """Return the verdict of the reference results, with the value, or the reason for which there is none."""
        held = [each for kept in self.kept(row.study) for each in kept.held if each.key == (row.claim.id, stack)]
        if not held:
            return NOT_KEPT
        last = held[-1]
        return f"{last.verdict}: {last.reason or '' if last.ours is None else estimate_text(last.ours)}"

    def costs(self, row: Row) -> tuple[str, str, str]:
        """Return the time, the disk space and the command of a retest."""
        command = row.retest.command
        label = "" if row.claim.is_judged else f"{COMPARED}: "
        return duration(self.seconds[command]), f"{row.retest.disk_bytes / 1e9:.1f} GB", f"{label}`{command}`"


def artifact(efforts: Sequence[Effort], ledger: Ledger) -> dict[str, str]:
    """Return the text of ARTIFACT.md, and of a page with all claims for each study, by path."""
    folders = [(f"`{path}`", what) for path, what in TEXT["folders"].items()]
    first = (
        _start(efforts),
        _table("Where things are", ("path", "what it is"), folders),
        _major(ledger),
        markdown_list("Warnings to expect", TEXT["warnings"]),
        markdown_list("How results may differ elsewhere", TEXT["elsewhere"]),
        markdown_list("What was never run", TEXT["scope"]),
    )
    pages = {claims_page(study): _claims(study, ledger) for study in ledger.studies()}
    return {"ARTIFACT.md": _joined(*first), **{path: _joined(lines) for path, lines in pages.items()}}


def claims_page(study: str) -> str:
    return f"docs/claims/{study}.md"


def _joined(*sections: Iterable[str]) -> str:
    return "\n".join(line for section in sections for line in section)


def _start(efforts: Sequence[Effort]) -> Iterator[str]:
    yield "# Artifact\n"
    yield (
        "How to evaluate this artifact: one command a study, one command a claim, the time and disk space that each "
        "takes, and the verdicts to expect. `./tidemark artifact` makes this page from the plans, the claims and "
        "`reference/`. [Findings](docs/findings.md) are what was found in addition to the claims.\n"
    )
    yield (
        "Clone the repository (README.md), and type all commands in its folder. You need Linux (x86_64), Python 3.12 "
        "(or `uv` or `pip`, which get it), two processors, 8 GB of memory, 10 GB of disk and, the first time, a "
        "network; no root, no Docker. `./tidemark doctor` shows what your machine lacks; `./tidemark test` runs the "
        "tests. `smoke` shows that a study works, `quick` gives first results. Times are of two processors and begin "
        "when all is set up.\n"
    )
    head = ("study", "protocol", "series", "time", "command")
    rows = [
        (each.title, each.protocol, f"{each.series:,}", duration(each.seconds), f"`{each.command}`") for each in efforts
    ]
    yield from _table("", head, rows)


def _major(ledger: Ledger) -> Iterator[str]:
    yield "## Major claims\n"
    listed = ", ".join(
        f"[`{study}`]({claims_page(study)}) ({sum(row.study == study for row in ledger.rows)})"
        for study in ledger.studies()
    )
    yield f"All {len(ledger.rows)} claims, with the environment of the expected results: {listed}.\n"
    seconds = sum(ledger.seconds[row.retest.command] for row in ledger.rows if row.claim.id in ledger.major)
    yield (
        f"The commands below take {duration(seconds)} together. Expected verdicts are of the default stack. "
        "Each command replaces the files in `results/` and keeps all runs; `./tidemark archive FILE` keeps both.\n"
    )
    head = ("claim", "published", "expected", "of protocol", "time", "disk", "command")
    cells = []
    for row in ledger.rows:
        if row.claim.id in ledger.major:
            of = next((each.about for each in ledger.kept(row.study)), None)
            expected = ledger.expected(row, of.stacks[0]) if of else NOT_KEPT
            protocol = " and ".join(of.protocols) if of else ""
            link = f"[`{row.claim.id}`]({claims_page(row.study)}#{row.claim.id}): {row.claim.statement}"
            cells.append((link, row.claim.published.shown, expected, protocol, *ledger.costs(row)))
    yield from _table("", head, cells)


def _claims(study: str, ledger: Ledger) -> Iterator[str]:
    references = ledger.kept(study)
    kept = list(dict.fromkeys(stack for each in references for stack in each.about.stacks))
    expected = [f"expected, stack {stack}" for stack in kept] or ["expected"]
    head = ("claim", "published", *expected, "time", "disk", "command")
    cells = []
    for row in ledger.rows:
        if row.study == study:
            verdicts = [ledger.expected(row, stack) for stack in kept] or [NOT_KEPT]
            name = f'<a id="{row.claim.id}"></a>`{row.claim.id}`: {row.claim.in_words}'
            cells.append((name, row.claim.published.shown, *verdicts, *ledger.costs(row)))
    yield f"# Claims of the study `{study}`\n"
    yield (
        "Each published claim, what to expect of it, and the command that tests it alone. *Here* says where our method "
        "differs from the publication's so that the claim's meaning changes; a claim that is newer than the reference "
        f"results has {NOT_KEPT}. What is not tested yet has its reason, and its command tests it. What is not "
        f"testable here has a reason outside of this machine, and its command runs the study *{COMPARED}*. "
        "`./tidemark artifact` makes this page from the claims, the plans and `reference/`. "
        f"[What the study does](../studies/{study}.md).\n"
    )
    protocols = sorted({protocol for each in references for protocol in each.about.protocols} - {"quick"})
    if protocols:
        yield (
            f"What to expect is of the protocol `{' and '.join(protocols)}`. A command with `protocol=quick` has "
            "shorter windows: its verdict may be inconclusive, or another one where commits get slower.\n"
        )
    if len(kept) > 1:
        others = " and ".join(f"`'stacks=[{stack}]'`" for stack in kept[1:])
        yield f"What is expected of another stack than `{kept[0]}` takes the same command with {others} at its end.\n"
    yield from _table("", head, cells)
    yield "## The environment of the reference results\n"
    if not references:
        yield "There are none yet.\n"
    for each in references:
        yield from _of(each.about)


def _of(about: About) -> Iterator[str]:
    yield f"- `{about.name}`: {about.sizes}; {about.all_runs:,} runs, {about.marked_runs:,} of them marked"
    yield f"  - {' and '.join(about.machines)}; {about.dataset}"
    for stack in about.stacks:
        versions = ", ".join(f"{each.program} {each.version}" for each in about.versions if each.stack == stack)
        yield f"  - stack {stack}: {versions}"
    yield f"  - measured by {' and '.join(about.harnesses)}"
    if about.archive:
        yield f"  - made from an archive with SHA-256 `{about.archive}`"
    yield ""


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if title:
        yield f"## {title}\n"
    yield markdown_grid(head, rows)
    yield ""
