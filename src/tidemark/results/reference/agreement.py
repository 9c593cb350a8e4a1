"""Comparison of reference results (A) with those of another machine (B): agreement and differences per claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.analysis.statistics import Estimate
from tidemark.results.claims.claims import INCONCLUSIVE, WITHOUT_A_VALUE
from tidemark.results.reference.content import About, Held, Reference
from tidemark.results.tables.table import Column, Table

AGREES = "agrees"  # same verdict, overlapping intervals
SIZE = "same verdict, another size"  # disjoint intervals
UNDECIDED = "inconclusive on one side"
WITHIN = "another verdict, within the intervals"
DIFFERS = "differs"  # the opposite verdict, disjoint intervals
NOTHING = "cannot be compared"
OUTCOMES = (AGREES, SIZE, UNDECIDED, WITHIN, DIFFERS, NOTHING)
COLUMNS = (
    Column("study", "Study"),
    Column("claim", "Claim"),
    Column("stack", "Stack"),
    Column("a", "A", interval=True),
    Column("verdict_a", "Verdict of A"),
    Column("b", "B", interval=True),
    Column("verdict_b", "Verdict of B"),
    Column("outcome", "Result"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """One claim under one stack, from A and from B; `b` is None if B does not have it."""

    study: str
    a: Held
    b: Held | None

    @property
    def outcome(self) -> str:
        if self.b is None or self.a.ours is None or self.b.ours is None:
            return NOTHING
        overlap = overlaps(self.a.ours, self.b.ours)
        if self.a.verdict == self.b.verdict:
            return AGREES if overlap else SIZE
        if INCONCLUSIVE in (self.a.verdict, self.b.verdict):
            return UNDECIDED
        return WITHIN if overlap else DIFFERS

    @property
    def is_decided(self) -> bool:
        """True if it is reproduced, or is not, on both sides."""
        return self.outcome not in (NOTHING, UNDECIDED) and self.a.verdict != INCONCLUSIVE

    @property
    def why_not(self) -> str:
        """Reason why it cannot be compared, from the side that lacks it."""
        if self.b is None:
            return "not measured in B"
        side, held = ("A", self.a) if self.a.ours is None else ("B", self.b)
        return f"{side}: {held.reason or held.verdict}"


def overlaps(a: Estimate, b: Estimate) -> bool:
    """Return True if two intervals overlap; a value without an interval counts as an interval of zero width."""
    low_a, high_a = _ends(a)
    low_b, high_b = _ends(b)
    return low_a <= high_b and low_b <= high_a


def _ends(estimate: Estimate) -> tuple[float, float]:
    low = estimate.value if estimate.low is None else estimate.low
    return low, estimate.value if estimate.high is None else estimate.high


def pairs(a: Sequence[Reference], b: Sequence[Reference]) -> list[Pair]:
    """Return a pair for every claim that A has a result for, in the studies that both have."""
    studies = {reference.about.study for reference in b}
    others = {(reference.about.study, held.key): held for reference in b for held in reference.held}
    return [
        Pair(reference.about.study, held, others.get((reference.about.study, held.key)))
        for reference in a
        if reference.about.study in studies
        for held in reference.held
        if held.verdict not in WITHOUT_A_VALUE
    ]


def agreement(a: Sequence[Reference], b: Sequence[Reference], names: tuple[str, str]) -> Table:
    """Return a table with a row per claim, differing ones first; notes state the counts and each side's origin."""
    found = sorted(pairs(a, b), key=lambda pair: (-_weight(pair), pair.study, pair.a.key))
    rows = tuple(tuple(_cells(pair)) for pair in found)
    dataset = "; ".join(dict.fromkeys(reference.about.dataset for reference in a))
    notes = tuple(_notes(a, b, found, names))
    return Table("agreement", "Published claims: B against A", COLUMNS, rows, (), dataset, notes)


def with_verdict(table: Table, verdict: str) -> Table:
    """Return the rows of such a table that have this verdict of A or of B."""
    sides = [place for place, column in enumerate(COLUMNS) if column.key in ("verdict_a", "verdict_b")]
    return replace(table, rows=tuple(row for row in table.rows if verdict in [row[place] for place in sides]))


def _weight(pair: Pair) -> int:
    return (NOTHING, AGREES, UNDECIDED, SIZE, WITHIN, DIFFERS).index(pair.outcome)


def _cells(pair: Pair) -> Iterator[Cell]:
    yield from (pair.study, pair.a.claim, pair.a.stack)
    for held in (pair.a, pair.b):
        if held is None:
            yield from (MissingCell(pair.why_not), NOTHING)
        else:
            yield from (held.ours if held.ours is not None else MissingCell(held.reason or held.verdict), held.verdict)
    yield pair.outcome


def _notes(
    a: Sequence[Reference], b: Sequence[Reference], found: Sequence[Pair], names: tuple[str, str]
) -> Iterator[str]:
    counts = Counter(pair.outcome for pair in found)
    yield f"Of {len(found):,} claims that A has a value for: " + "; ".join(
        f"{outcome}: {counts[outcome]:,}" for outcome in OUTCOMES
    )
    decided = [pair.a.verdict == pair.b.verdict for pair in found if pair.b is not None and pair.is_decided]
    if decided:
        yield f"Of {len(decided):,} claims that both decide, {sum(decided):,} have the same verdict."
    yield (
        "A and B agree where the verdicts are the same and the 95 % intervals overlap. Left out are claims that only "
        "set a publication's words against its own numbers: these agree everywhere. Intervals cover how runs and "
        "repeats on one machine differ, not how machines do: another machine may well give the same verdict with "
        "another size."
    )
    asked, answered = _studies(a), _studies(b)
    for side, name, references in (("A", names[0], a), ("B", names[1], b)):
        for reference in references:
            if reference.about.study in asked & answered:
                yield from _about(f"{side} ({name})", reference.about)
    for reference in a:
        if reference.about.study in answered:
            yield from _differences(reference.about, [each.about for each in b])
    if unanswered := asked - answered:
        yield f"B has no run of {_listed(unanswered)}."
    if unasked := answered - asked:
        yield f"A has no results of {_listed(unasked)}, of which B has runs."


def _studies(references: Sequence[Reference]) -> set[str]:
    return {reference.about.study for reference in references}


def _listed(studies: Set[str]) -> str:
    return f"the {'study' if len(studies) == 1 else 'studies'} {', '.join(sorted(studies))}"


def _about(side: str, about: About) -> Iterator[str]:
    yield f"{side}, {about.study}: {about.sizes}; {about.all_runs:,} runs, {about.marked_runs:,} of them marked."
    yield f"{side}, {about.study}: {' and '.join(about.machines) or 'no machine'}; {about.dataset}."
    yield from (f"{side}, {about.study}: {remark}" for remark in about.remarks)


def _differences(a: About, others: Sequence[About]) -> Iterator[str]:
    """Yield the differences, other than the machine, between `a` and the entries of `others` on the same study."""
    same = [each for each in others if each.study == a.study]
    for b in same:
        if set(a.stacks) & set(b.stacks):
            yield from _difference(a, b)
    missing = [stack for stack in a.stacks if not any(stack in each.stacks for each in same)]
    if missing:
        yield f"B has no run of {a.study} with the stack {' and '.join(missing)}."


def _difference(a: About, b: About) -> Iterator[str]:
    if (a.commits or a.windows, a.runs) != (b.commits or b.windows, b.runs):
        yield f"WARNING: {a.study}: the sizes differ ({a.sizes}; {b.sizes}): what depends on them cannot be compared."
    if a.dataset != b.dataset:
        yield f"WARNING: {a.study}: the dataset differs ({a.dataset}; {b.dataset})."
    if set(a.harnesses) != set(b.harnesses):
        codes = "; ".join(" and ".join(each.harnesses) for each in (a, b))
        yield f"WARNING: {a.study}: the measuring code differs ({codes})."
    ours, theirs = _versions(a), _versions(b)
    changed = [
        f"{program} ({stack})"
        for stack, program in ours.keys() & theirs.keys()
        if ours[stack, program] != theirs[stack, program]
    ]
    if changed:
        yield f"Versions that differ, {a.study}: {', '.join(sorted(changed))}."


def _versions(about: About) -> dict[tuple[str, str], set[str]]:
    """Return the reported versions by stack and program."""
    found: dict[tuple[str, str], set[str]] = {}
    for each in about.versions:
        found.setdefault((each.stack, each.program), set()).add(each.version)
    return found
