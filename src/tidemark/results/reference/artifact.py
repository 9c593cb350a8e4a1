"""ARTIFACT.md and the pages of all claims: commands for evaluating this artifact, their duration, expected results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import estimate_text
from tidemark.progress import duration
from tidemark.results.claims.judge import Row
from tidemark.results.reference.content import About, Reference
from tidemark.results.tables.table import markdown_grid, markdown_list

NOT_KEPT = "no reference"
COMPARED = "for comparison"  # before a command whose runs cannot judge the claim
FOLDERS = (
    ("tidemark", "the command: sets up on first use, then does what './tidemark --help' lists"),
    ("config.yaml", "what is measured; every key is checked, with its range, before anything starts"),
    ("src/tidemark", "the code, a folder a room: see docs/architecture.md"),
    ("src/tidemark/studies", "a folder a study: its settings, windows, published numbers, claims and chapter"),
    ("docs/studies.md", "what happens in each study, where to look first, and the results of Tidemark's runs"),
    ("workflow", "the rules of the pipeline and the report's page"),
    ("paper", "the paper's template; its numbers come from the results"),
    ("envs", "locks: wheels by version and hash, jars by coordinates and SHA-256"),
    ("nix", "the same environment as a flake"),
    ("tests", "'./tidemark test'"),
    ("Containerfile", "a Debian 12 that runs './tidemark all'; linted, not built"),
    ("reference", "results of Tidemark's runs, a folder a study, and the runs of findings' scripts"),
    ("findings", "scripts that show a finding each, without Tidemark; docs/findings.md describes them"),
)
WARNINGS = (
    "`dataset: download: ... not reachable`: there is no network, or no access to the trips' host. The pipeline goes "
    "on with a synthetic replica of the same size, and every result states it.",
    "A *marked* run: something else used the machine during its window (processors, disk, a suspended clock), or it "
    "was not as cold as it should have been. It was measured once more where that is configured; the disturbed run is "
    "kept alongside, and the mark is shown wherever the run is used. A few in 100 are usual on a virtual machine.",
    "`lukewarm` next to a first run: its files were not in memory before the servers started, but what running "
    "programs use was when the window opened.",
    "A cell `n/a` has its reason next to it: no system is left out without a reason.",
    "A claim is `not testable here` where a window is shorter than the claim needs, a part was not asked for, or it is "
    "of another machine or server; its page has the reason.",
)
ELSEWHERE = (
    "Absolute times follow the machine: its disk's flushes above all (a commit of most systems waits for one or more), "
    "then processors. Verdicts are of ratios and of growth wherever the publication allows it.",
    "On two processors many writers, servers and the load generator share them: contention for a table and for the "
    "machine look alike, for which series with a table each are the control.",
    "`./tidemark compare reference results` shows claim by claim what agrees, what differs by more than the intervals "
    "allow, and what cannot be compared. Intervals cover runs and repeats on one machine, not how machines differ.",
)
SCOPE = (
    "nixpkgs' own builds and conda's channels: the flake and the environment file are evaluated and verified by the "
    "tests where Nix is installed, the packages are not built from them",
    "the Containerfile: it was linted, not built",
    "Unity Catalog: it cannot serve tables on local storage to delta-rs",
    "the official binary of Apache Polaris: no registry has it; a build of its sources was used where that is stated",
    "a real object store, a real network, more than one machine: distances are injected, bandwidth is not",
    "a real loss of power: a cut models the page cache of the kernel, not the cache of a device",
    "Windows, macOS, and processors other than x86_64",
)


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
    first = (
        _start(efforts),
        _table("Where things are", ("path", "what it is"), [(f"`{path}`", what) for path, what in FOLDERS]),
        _major(ledger),
        markdown_list("Warnings to expect", WARNINGS),
        markdown_list("How results may differ elsewhere", ELSEWHERE),
        markdown_list("What was never run", SCOPE),
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
        "You need Linux (x86_64), Python 3.12 (or `uv` or `pip`, which get it), two processors, 8 GB of memory and 10 "
        "GB of disk; no root, no Docker. `./tidemark doctor` shows what your machine lacks; `./tidemark test` runs the "
        "tests. `smoke` shows that a study works, `quick` gives first results. Times are of two processors and begin "
        "when all is set up.\n"
    )
    yield from _table(
        "",
        ("study", "protocol", "series", "time", "command"),
        [
            (each.title, each.protocol, f"{each.series:,}", duration(each.seconds), f"`{each.command}`")
            for each in efforts
        ],
    )


def _major(ledger: Ledger) -> Iterator[str]:
    yield "## Major claims\n"
    listed = ", ".join(
        f"[`{study}`]({claims_page(study)}) ({sum(row.study == study for row in ledger.rows)})"
        for study in ledger.studies()
    )
    yield f"All {len(ledger.rows)} claims, with the environment of the expected results: {listed}.\n"
    head = ("claim", "published", "expected", "of protocol", "time", "disk", "command")
    cells = []
    for row in ledger.rows:
        if row.claim.id in ledger.major:
            of = next((each.about for each in ledger.kept(row.study)), None)
            expected, protocol = (
                (ledger.expected(row, of.stacks[0]), " and ".join(of.protocols)) if of else (NOT_KEPT, "")
            )
            link = f"[`{row.claim.id}`]({claims_page(row.study)}#{row.claim.id}): {row.claim.statement}"
            cells.append((link, row.published_text, expected, protocol, *ledger.costs(row)))
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
            cells.append((name, row.published_text, *verdicts, *ledger.costs(row)))
    yield f"# Claims of the study `{study}`\n"
    yield (
        "Each published claim, what to expect of it, and the command that tests it alone. *Here* says where our method "
        "differs from the publication's so that the claim's meaning changes; a claim that is newer than the reference "
        f"results has {NOT_KEPT}. What is not testable has its reason; its command tests it, but where *{COMPARED}* is "
        "before it: that runs the study, whose numbers cannot judge the claim. "
        "`./tidemark artifact` makes this page from the claims, the plans and `reference/`. "
        "[What the study does](../studies.md).\n"
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
