"""Rows of the ledger: each claim with its judgement under each software stack, and what a test of it requires."""

from __future__ import annotations

import difflib
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.errors import ConfigError
from tidemark.progress import Progress
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.claims.claims import NOT_TESTABLE, UNTESTED, VERDICTS, Claim, ClaimSet, load_claims
from tidemark.runs.run import Run, source_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import MAIN, SeriesSpec
from tidemark.runs.views import dataset_label, in_order, unfinished
from tidemark.schema import schema, sections

SECONDS_A_WINDOW = 60.0  # for protocols without a window length, whose windows end with their work
EVENT_BYTES = 1_500  # in the topic
PRODUCED_AHEAD = 1.3
OWN_SIZES = "thesis"  # protocol with the publication's sizes
SMALLEST = "smoke"
ALONE = "alone"  # protocol that a claim's own `config` declares
TRIP_BYTES = 60
THESIS = "thesis"  # the stack that the claims were made with: if it is the only one, verdicts need no label


@dataclass(frozen=True, slots=True)
class Retest:
    """Requirements for testing a single claim. `seconds` is by the command's plan, None if none was made."""

    command: str
    disk_bytes: float
    seconds: float | None = None


def retest(claim: Claim, book: ClaimSet, run_set: RunSet | None) -> Retest:
    """Return the command of a retest and its disk space, estimated from the runs if any.

    Windows are as long as the claim needs.
    """
    measure = claim.measure
    protocol = run_set.series[0].protocol if run_set else "quick"
    window, runs = _sizes(run_set, book, protocol)
    words = (
        [] if book.study in schema()["properties"]["studies"]["default"] else [f"studies={json.dumps([book.study])}"]
    )
    known = _section(book)
    shipped = known["systems"].get("default", {}) if "systems" in known else {}
    systems = {name: shipped.get(name, {}) for name in measure.systems}  # a variant also needs its options
    for key, value in (("systems", systems), ("modes", list(measure.modes))):
        if key in known and value:
            words.append(f"{book.study}.{key}={json.dumps(value)}")
    for key, wanted in (*claim.settings, *claim.config):
        section = f"{book.study}." if key.partition(".")[0] in known else ""
        words.append(f"{section}{key}={json.dumps(wanted)}")
    if claim.sweeps:
        words.append(f"{book.study}.sweeps={json.dumps(list(claim.sweeps))}")
        for name in claim.sweeps:
            sweep = known["sweep"]["default"].get(name, {})
            if measure.systems and not set(sweep.get("systems", ())) <= set(measure.systems):
                asked = [system for system in sweep["systems"] if system in measure.systems]
                words.append(f"{book.study}.sweep.{name}={json.dumps({**sweep, 'systems': asked})}")
    if claim.window_seconds is not None and window < claim.window_seconds:
        protocol = OWN_SIZES
        window, runs = _defaults(book)[protocol]
    if sizes := dict(claim.config).get(f"protocols.{ALONE}", {}):
        protocol = ALONE
        window, runs = sizes.get("window_seconds", SECONDS_A_WINDOW), sizes.get("runs", 1)
    if claim.needs_no_run:
        protocol = SMALLEST
    words.append(f"protocol={protocol}")
    stacks = in_order(run_set) if run_set else ()
    if list(stacks) not in ([], schema()["properties"]["stacks"]["default"]):
        words.append(f"stacks={json.dumps(list(stacks))}")
    if claim.sweeps:
        sweep = _section(book)["sweep"]["default"].get(claim.sweeps[0], {})
        window, runs = sweep.get("window_seconds", window), sweep.get("runs", runs)
    weights = [
        _series_bytes(run_set.find(system, mode) if run_set else None, book.rates.get(mode, 0.0), window, runs)
        for system in measure.systems
        for mode in measure.modes
    ]
    tables = max(weights, default=0.0)
    trips = max((dataset.rows for dataset in run_set.datasets), default=0) * TRIP_BYTES if run_set else 0
    quoted = " ".join(shlex.quote(word) for word in words)
    return Retest(f"./tidemark all --config {quoted}", book.set_up_bytes + trips + tables)


def expected_bytes(book: ClaimSet, series: Iterable[SeriesSpec]) -> float:
    """Estimate the disk space that the planned `series` of a study take at most, with what is set up before them."""
    modes = [(each, str(dict(each.settings).get("mode", each.mode))) for each in series]
    tables = (
        _series_bytes(None, book.rates.get(mode, 0.0), each.window_seconds, len(each.numbers)) for each, mode in modes
    )
    return book.set_up_bytes + max(tables, default=0.0)


def _section(book: ClaimSet) -> dict[str, Any]:
    """Return the keys that the study's section of the configuration may have."""
    found: dict[str, Any] = sections()[book.study]["properties"]
    return found


def _defaults(book: ClaimSet) -> dict[str, tuple[float, int]]:
    protocols = _section(book)["protocols"]["default"]
    return {
        name: (sizes.get("window_seconds", SECONDS_A_WINDOW), sizes.get("runs", 1)) for name, sizes in protocols.items()
    }


def _sizes(run_set: RunSet | None, book: ClaimSet, protocol: str) -> tuple[float, int]:
    """Return window seconds and runs of the protocol of the runs, or of the one that would be used."""
    complete = [series for series in run_set.series if series.sweep == MAIN and series.runs] if run_set else []
    if complete:
        repeats = [repeat for series in complete for repeat in series.repeats]
        return complete[0].runs[0].manifest.window_s, max(len(repeat.runs) for repeat in repeats)
    return _defaults(book).get(protocol, _defaults(book)["quick"])


def _series_bytes(series: Series | None, rate: float, window: float, runs: int) -> float:
    """Estimate the peak bytes of topic and tables of one series; metadata of many commits grows faster than assumed.

    `rate`: events per second if it was not measured.
    """
    if series is None or not series.runs:
        return rate * window * (EVENT_BYTES * PRODUCED_AHEAD + 100 * runs)
    last = series.runs[-1]
    scale = window / max(last.manifest.window_s, 1e-9)
    return scale * (last.manifest.events * EVENT_BYTES * PRODUCED_AHEAD + runs * _table_bytes(last))


def _table_bytes(run: Run) -> float:
    footprint = run.manifest.footprint
    if footprint is None:
        return 0.0
    return footprint.data_bytes + footprint.metadata_bytes + (footprint.catalog_bytes or 0)


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
    remarks = (*unfinished(run_set), *run_set.ended, *(remark for book, _ in judged_by for remark in book.remarks))
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
        _comparable(claim, claim_data)
        ours = replicates.estimate(unit)
        verdict, direction, size = claim.criterion.judge(ours)
    except NotAvailable as absent:
        reason, verdict = str(absent), UNTESTED if claim.is_judged else NOT_TESTABLE
    sources = tuple(source_runs(claim_data.runs))
    return ClaimVerdict(claim_data.stack, claim.criterion.words, ours, verdict, direction, size, reason, sources)


def _comparable(claim: Claim, claim_data: ClaimData) -> None:
    """Raise NotAvailable if a run lacks a setting or the length that the claim needs."""
    for key, wanted in claim.settings:
        for run in claim_data.runs:
            if (found := dict(run.manifest.config).get(key)) != wanted:
                raise NotAvailable(f"not comparable: {key} was '{found}', published '{wanted}', and that decides")
    if claim.window_seconds is None or not claim_data.runs:
        return
    shortest = min(min(run.manifest.window_s, run.elapsed_s) for run in claim_data.runs)
    if shortest < 0.99 * claim.window_seconds:
        raise NotAvailable(
            f"not comparable: windows of {shortest:.3g} s, published {claim.window_seconds:g} s, and the length decides"
        )


def find_claim(identity: str, books: Sequence[ClaimSet]) -> tuple[Claim, ClaimSet]:
    """Return the claim with this id and its book; raise ConfigError for an unknown id."""
    claims = {claim.id: (claim, book) for book in books for claim in load_claims(book)}
    if identity not in claims:
        close = difflib.get_close_matches(identity, claims, 3, 0.4)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigError(f"found no claim '{identity}'; {hint}'./tidemark list claims' lists them")
    return claims[identity]


def not_measured(studies: Iterable[str]) -> str:
    """Return the reason why results of other studies cannot test a claim."""
    return f"not measured in these results, which are of {' and '.join(dict.fromkeys(studies))}"
