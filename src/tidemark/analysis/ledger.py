"""The ledger of claims: each with the thesis's value, ours with its interval, the verdict, and how to test it alone."""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.claims import CLAIMS, NOT_TESTABLE, VERDICTS, Claim, load_claims
from tidemark.analysis.claims_quantities import Evidence
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Absent
from tidemark.analysis.retest import Retest, retest
from tidemark.analysis.runs import RunSet, source_runs
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.tables import dataset_label
from tidemark.errors import AnalysisError, ConfigError
from tidemark.paths import write_if_changed
from tidemark.progress import Progress, duration


@dataclass(frozen=True, slots=True)
class Row:
    """One claim and what our runs say. `ours` is None when they cannot say anything, for `reason`."""

    claim: Claim
    ours: Estimate | None
    verdict: str
    direction: str | None
    size: str | None
    reason: str | None
    sources: tuple[str, ...]
    retest: Retest

    @property
    def ours_text(self) -> str:
        return "" if self.ours is None else estimate_text(self.ours)

    @property
    def thesis_text(self) -> str:
        thesis = self.claim.thesis
        if thesis.value is None:
            return thesis.text
        return with_unit(f"{thesis.value:,g}", thesis.unit)

    @property
    def why(self) -> str:
        """The verdict in one sentence, from the interval."""
        if self.ours is None:
            return self.reason or ""
        if self.ours.low is None:
            return "one value has no interval"
        parts = [f"ours {self.ours_text}; reproduced would be {self.claim.criterion.words}"]
        if self.size is not None and self.size != self.direction:
            parts.append(f"the direction is {self.direction}, the size {self.size}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Ledger:
    rows: tuple[Row, ...]
    dataset: str
    synthetic: bool

    def counts(self) -> dict[str, int]:
        """How many claims have each verdict, all verdicts listed."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in VERDICTS}


def with_unit(value: str, unit: str) -> str:
    return f"{value} ×" if unit == "x" else f"{value} {unit}".strip()


def estimate_text(estimate: Estimate, digits: int = 3) -> str:
    """`12.3 × [11.9, 12.8]`: the value, its unit and its interval with as many decimals."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if not math.isfinite(value):
        return "not a number"
    size = math.floor(math.log10(abs(value))) if value else 0
    decimals = min(max(digits, 4 if size >= 3 else 0) - 1 - size, 6)

    def spelt(number: float) -> str:
        return f"{round(number, decimals):,.{max(decimals, 0)}f}"

    shown = with_unit(spelt(value), estimate.unit)
    return shown if low is None or high is None else f"{shown} [{spelt(low)}, {spelt(high)}]"


def build_ledger(measures: Measures, claims: Sequence[Claim]) -> Ledger:
    """Judge every claim by the runs of `measures`."""
    run_set = measures.run_set
    rows = []
    with Progress("claims", len(claims)) as progress:
        for done, claim in enumerate(claims):
            rows.append(_row(claim, measures))
            progress.update(done + 1, claim.id)
    return Ledger(tuple(rows), dataset_label(run_set), any(dataset.synthetic for dataset in run_set.datasets))


def _row(claim: Claim, measures: Measures) -> Row:
    evidence = Evidence(measures)
    ours = verdict = direction = size = reason = None
    try:
        replicates, unit = claim.measure(evidence)
        _long_enough(claim, evidence)
        ours = replicates.estimate(unit)
        verdict, direction, size = claim.criterion.judge(ours)
    except Absent as absent:
        reason, verdict = str(absent), NOT_TESTABLE
    sources = tuple(source_runs(evidence.runs))
    return Row(claim, ours, verdict, direction, size, reason, sources, retest(claim, measures.run_set))


def _long_enough(claim: Claim, evidence: Evidence) -> None:
    if claim.window_seconds is None or not evidence.runs:
        return
    shortest = min(run.manifest.window_s for run in evidence.runs)
    if shortest < 0.99 * claim.window_seconds:
        raise Absent(
            f"depends on how much a run writes: needs windows of {claim.window_seconds:g} s, these had {shortest:.0f} s"
        )


def to_json(ledger: Ledger) -> str:
    rows = []
    for row in ledger.rows:
        claim, ours = row.claim, row.ours
        estimate = None
        if ours is not None and math.isfinite(ours.value):
            estimate = {"value": ours.value, "low": ours.low, "high": ours.high, "unit": ours.unit, "n": ours.n}
            estimate |= {"runs": ours.runs}
        rows.append(
            {
                "id": claim.id,
                "section": claim.section,
                "statement": claim.statement,
                "thesis": {"value": claim.thesis.value, "unit": claim.thesis.unit, "text": claim.thesis.text},
                "thesis_text": row.thesis_text,
                "measure": str(claim.measure),
                "criterion": claim.criterion.words,
                "ours": estimate,
                "ours_text": row.ours_text,
                "verdict": row.verdict,
                "direction": row.direction,
                "size": row.size,
                "why": row.why,
                "shown": list(claim.shown),
                "systems": list(claim.measure.systems),
                "modes": list(claim.measure.modes),
                "studies": list(claim.studies),
                "sources": list(row.sources),
                "retest": {
                    "command": row.retest.command,
                    "seconds": row.retest.seconds,
                    "disk_bytes": row.retest.disk_bytes,
                },
            }
        )
    whole = {
        "schema_version": 1,
        "dataset": ledger.dataset,
        "synthetic": ledger.synthetic,
        "counts": ledger.counts(),
        "claims": rows,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(ledger: Ledger) -> str:
    buffer = io.StringIO()
    rows = [_cells(row) for row in ledger.rows]
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _cells(row: Row) -> dict[str, object]:
    claim, ours, thesis = row.claim, row.ours, row.claim.thesis
    return {
        "id": claim.id,
        "section": claim.section,
        "statement": claim.statement,
        "thesis_value": thesis.value,
        "thesis_unit": thesis.unit,
        "thesis_text": thesis.text,
        "ours": ours.value if ours else None,
        "ours_low": ours.low if ours else None,
        "ours_high": ours.high if ours else None,
        "ours_unit": ours.unit if ours else None,
        "n": ours.n if ours else None,
        "runs": ours.runs if ours else None,
        "criterion": claim.criterion.words,
        "direction": row.direction,
        "size": row.size,
        "verdict": row.verdict,
        "reason": row.reason,
        "shown": " ".join(claim.shown),
        "measure": str(claim.measure),
    }


def to_markdown(ledger: Ledger) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in ledger.counts().items())
    lines = [f"**The claims of the thesis, re-tested**: {counts}.", ""]
    lines += [
        "The verdict follows from our 95 % interval: reproduced if all of it fulfils the criterion, not reproduced if "
        "none of it does, else inconclusive. The thesis's values are another machine's.",
        "",
        "| Claim | Section | Thesis | Ours [95 %] | Reproduced would be | Verdict |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in ledger.rows:
        cells = [f"`{row.claim.id}`: {row.claim.statement}", row.claim.section, row.thesis_text]
        cells += [row.ours_text or (row.reason or ""), row.claim.criterion.words, row.verdict]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join([*lines, "", f"- Dataset: {ledger.dataset}"]) + "\n"


def describe(row: Row) -> str:
    """One claim for a terminal: values, verdict, where to look, and how to test it alone."""
    claim = row.claim
    folders = {True: "results/figures", False: "results/tables"}
    links = [f"{folders[name.startswith('figure-')]}/{name}" for name in claim.shown]
    endings = [".svg" if name.startswith("figure-") else ".md" for name in claim.shown]
    about = f" ({claim.thesis.text})" if claim.thesis.value is not None else ""
    lines = [
        f"{claim.id} (section {claim.section})",
        f"  {claim.statement}",
        f"  thesis      {row.thesis_text}{about}, on another machine",
        f"  ours        {row.ours_text or 'nothing: ' + (row.reason or '')}",
        f"  reproduced  would be {claim.criterion.words}",
        f"  verdict     {row.verdict.upper()}"
        + (f" (direction {row.direction}, size {row.size})" if row.size is not None else ""),
        f"  measure     {claim.measure}",
        f"  shown in    {', '.join(f'{link}{ending}' for link, ending in zip(links, endings, strict=True))}",
        f"  from runs   {', '.join(row.sources) or 'none'}",
        f"  test alone  {row.retest.command}",
        f"              about {duration(row.retest.seconds)}, {row.retest.disk_bytes / 1e9:.1f} GB of disk",
    ]
    return "\n".join(lines)


def build_claims(results: Path, claims: Path = CLAIMS) -> Path:
    """Write results/claims.json, .csv and .md, and return the first."""
    ledger = build_ledger(Measures(RunSet.load(results)), load_claims(claims))
    for ending, content in (("csv", to_csv(ledger)), ("md", to_markdown(ledger)), ("json", to_json(ledger))):
        write_if_changed(results / f"claims.{ending}", content)
    return results / "claims.json"


def find_row(results: Path, identity: str) -> Row:
    """The row of one claim from the runs in `results`; without usable runs it says why and how to test the claim.

    ConfigError for an id that no claim has.
    """
    claims = {claim.id: claim for claim in load_claims()}
    if identity not in claims:
        close = difflib.get_close_matches(identity, claims, 3, 0.4)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigError(f"found no claim '{identity}'; {hint}'./tidemark claims' lists them")
    claim = claims[identity]
    try:
        return _row(claim, Measures(RunSet.load(results)))
    except AnalysisError as error:
        return Row(claim, None, NOT_TESTABLE, None, None, str(error), (), retest(claim, None))
