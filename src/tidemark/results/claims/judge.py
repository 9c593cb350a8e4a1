"""Rows of the ledger: each claim with its judgement under each software stack."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.errors import ConfigError
from tidemark.progress import Progress
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.claims.claims import NOT_TESTABLE, UNTESTED, VERDICTS, Claim, ClaimSet, load_claims
from tidemark.results.claims.retest import Retest, retest
from tidemark.runs.run import source_runs
from tidemark.runs.runset import RunSet
from tidemark.runs.views import dataset_label, in_order, unfinished

THESIS = "thesis"  # the stack that the claims were made with: if it is the only one, verdicts need no label


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """ClaimVerdict of a claim by the runs of one stack. `ours` is None if they give no value, for `reason`."""

    stack: str
    wanted: str  # criterion for "reproduced", as text
    ours: Estimate | None
    verdict: str
    direction: str | None
    size: str | None
    reason: str | None
    sources: tuple[str, ...]

    @property
    def ours_text(self) -> str:
        return "" if self.ours is None else estimate_text(self.ours)

    @property
    def why(self) -> str:
        """Explanation of the verdict from the interval, in one sentence."""
        if self.ours is None:
            return self.reason or ""
        if self.ours.low is None:
            return "one value has no interval"
        parts = [f"ours {self.ours_text}; reproduced would be {self.wanted}"]
        if self.size is not None and self.size != self.direction:
            parts.append(f"the direction is {self.direction}, the size {self.size}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Row:
    """One claim with a judgement per stack of the plan, the publication's stack first."""

    study: str
    claim: Claim
    judgements: tuple[ClaimVerdict, ...]
    retest: Retest

    @property
    def first(self) -> ClaimVerdict:
        return self.judgements[0]

    @property
    def is_labelled(self) -> bool:
        """Return True if verdicts must be labelled with their stack."""
        return needs_label([judgement.stack for judgement in self.judgements])

    @property
    def differs(self) -> bool:
        """Return True if the verdict depends on the stack."""
        return len({judgement.verdict for judgement in self.judgements}) > 1

    @property
    def published_text(self) -> str:
        return self.claim.published.shown


@dataclass(frozen=True, slots=True)
class ClaimReport:
    rows: tuple[Row, ...]
    stacks: tuple[str, ...]  # in the order of the rows' judgements
    dataset: str
    synthetic: bool
    remarks: tuple[str, ...] = ()  # printed above it

    @property
    def is_labelled(self) -> bool:
        return needs_label(self.stacks)

    def counts(self, place: int = 0) -> dict[str, int]:
        """Return the number of claims per verdict under the stack at `place`, including verdicts with none."""
        found = Counter(row.judgements[place].verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in VERDICTS}


def needs_label(stacks: Sequence[str]) -> bool:
    """Return True if verdicts of `stacks` must be labelled with their stack."""
    return list(stacks) != [THESIS]


def counts_text(counts: Mapping[str, int]) -> str:
    """Return `12 reproduced, 3 not reproduced, ...`."""
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def judge_all(run_set: RunSet, judged_by: Sequence[tuple[ClaimSet, Measures]]) -> ClaimReport:
    """Judge every claim of each book by its study's runs, once per stack of `run_set`, which contains all studies."""
    rows = []
    claims = [(book, measures, claim) for book, measures in judged_by for claim in load_claims(book)]
    with Progress("claims", len(claims)) as progress:
        for done, (book, measures, claim) in enumerate(claims):
            rows.append(judged(claim, book, measures))
            progress.update(done + 1, claim.id)
    synthetic = any(dataset.synthetic for dataset in run_set.datasets)
    remarks = (*unfinished(run_set), *(remark for book, _ in judged_by for remark in book.remarks))
    return ClaimReport(tuple(rows), in_order(run_set), dataset_label(run_set), synthetic, remarks)


def judged(claim: Claim, book: ClaimSet, measures: Measures) -> Row:
    """Return the ledger row of one claim."""
    run_set = measures.run_set
    judgements = tuple(_judge(claim, book.claim_data(measures, stack)) for stack in in_order(run_set))
    return Row(book.study, claim, judgements, retest(claim, book, run_set))


def unjudged(claim: Claim, book: ClaimSet, reason: str) -> Row:
    """Return the row of a claim that no run can test, for `reason`."""
    judgement = ClaimVerdict(THESIS, claim.criterion.words, None, UNTESTED, None, None, reason, ())
    return from_elsewhere(claim, book, [judgement])


def from_elsewhere(claim: Claim, book: ClaimSet, judgements: Sequence[ClaimVerdict]) -> Row:
    """Return the row of a claim whose judgements come from runs that are not available here."""
    return Row(book.study, claim, tuple(judgements), retest(claim, book, None))


def _judge(claim: Claim, claim_data: ClaimData) -> ClaimVerdict:
    ours = verdict = direction = size = reason = None
    try:
        replicates, unit = claim.measure(claim_data)
        _long_enough(claim, claim_data)
        ours = replicates.estimate(unit)
        verdict, direction, size = claim.criterion.judge(ours)
    except NotAvailable as absent:
        reason, verdict = str(absent), NOT_TESTABLE
    sources = tuple(source_runs(claim_data.runs))
    return ClaimVerdict(claim_data.stack, claim.criterion.words, ours, verdict, direction, size, reason, sources)


def _long_enough(claim: Claim, claim_data: ClaimData) -> None:
    if claim.window_seconds is None or not claim_data.runs:
        return
    shortest = min(run.manifest.window_s for run in claim_data.runs)
    if shortest < 0.99 * claim.window_seconds:
        raise NotAvailable(
            f"depends on how much a run writes: needs windows of {claim.window_seconds:g} s, these had {shortest:.0f} s"
        )


def find_claim(identity: str, books: Sequence[ClaimSet]) -> tuple[Claim, ClaimSet]:
    """Return the claim with this id and its book; raise ConfigError for an unknown id."""
    claims = {claim.id: (claim, book) for book in books for claim in load_claims(book)}
    if identity not in claims:
        close = difflib.get_close_matches(identity, claims, 3, 0.4)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigError(f"found no claim '{identity}'; {hint}'./tidemark claims' lists them")
    return claims[identity]


def row_of(run_set: RunSet, claim: Claim, book: ClaimSet) -> Row:
    """Return the row of one claim from the runs of its study, or an untested row if `run_set` has none."""
    if book.study not in run_set.studies:
        return unjudged(claim, book, not_measured(run_set.studies))
    return judged(claim, book, Measures(run_set.of(book.study), book.quantities))


def not_measured(studies: Iterable[str]) -> str:
    """Return the reason why results of other studies cannot test a claim."""
    return f"not measured in these results, which are of {' and '.join(dict.fromkeys(studies))}"
