"""Output formats of the claims ledger: files in JSON, CSV and Markdown, and lines for a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from tidemark.analysis.formatting import Cell
from tidemark.analysis.measures import Measures
from tidemark.paths import write_if_changed
from tidemark.progress import duration
from tidemark.results.claims.claims import UNTESTED, Claim, ClaimSet
from tidemark.results.claims.judge import THESIS, ClaimReport, ClaimVerdict, Row, counts_text, judge_all, needs_label
from tidemark.results.tables.table import Column, Table, markdown_grid
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields

OURS = {"ours": "value", "ours_low": "low", "ours_high": "high", "ours_unit": "unit", "n": "n", "runs": "runs"}


class Listed(NamedTuple):
    """Verdict on a claim under one stack, as text."""

    stack: str
    verdict: str
    ours: str


def write_claims(run_set: RunSet, judged_by: Sequence[tuple[ClaimSet, Measures]]) -> Path:
    """Write claims.json, .csv and .md to the results folder, and return the path of the first."""
    results = run_set.results
    ledger = judge_all(run_set, judged_by)
    for ending, content in (("csv", to_csv(ledger)), ("md", to_markdown(ledger)), ("json", to_json(ledger))):
        write_if_changed(results / f"claims.{ending}", content)
    return results / "claims.json"


def to_json(ledger: ClaimReport) -> str:
    """Return one object per claim: the first stack's judgement in its top-level keys, other stacks' in `others`."""
    whole = {
        "schema_version": 1,
        "dataset": ledger.dataset,
        "synthetic": ledger.synthetic,
        "labelled": ledger.is_labelled,
        "counts": ledger.counts(),
        "stacks": [{"stack": stack, "counts": ledger.counts(place)} for place, stack in enumerate(ledger.stacks)],
        "claims": [record(row) for row in ledger.rows],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def record(row: Row) -> dict[str, object]:
    """Return a claim with its judgements as one object of claims.json."""
    claim = row.claim
    return {
        "id": claim.id,
        "study": row.study,
        "section": claim.section,
        "statement": claim.statement,
        "published": asdict(claim.published),
        "published_text": claim.published.shown,
        "measure": str(claim.measure),
        "criterion": claim.criterion.words,
        "differs": claim.differs,
        **_judgement(row.first),
        "others": [_judgement(judgement) for judgement in row.judgements[1:]],
        "shown": list(claim.shown),
        "systems": list(claim.measure.systems),
        "modes": list(claim.measure.modes),
        "sweeps": list(claim.sweeps),
        "retest": asdict(row.retest),
    }


def _judgement(judgement: ClaimVerdict) -> dict[str, object]:
    ours = judgement.ours
    estimate = None
    if ours is not None and math.isfinite(ours.value):
        estimate = {"value": ours.value, "low": ours.low, "high": ours.high, "unit": ours.unit, "n": ours.n}
        estimate |= {"runs": ours.runs}
    return {
        "stack": judgement.stack,
        "ours": estimate,
        "ours_text": judgement.ours_text,
        "verdict": judgement.verdict,
        "direction": judgement.direction,
        "size": judgement.size,
        "why": judgement.why,
        "sources": list(judgement.sources),
    }


def to_csv(ledger: ClaimReport) -> str:
    """Return one line per claim; columns of stacks after the first have the stack's name as suffix."""
    rows = [_cells(row) for row in ledger.rows]
    columns = tuple(Column(key, key) for key in rows[0])
    cells = tuple(tuple(row.get(column.key) for column in columns) for row in rows)
    return Table("claims", "Published claims, re-tested", columns, cells, (), ledger.dataset).csv()


def _cells(row: Row) -> dict[str, Cell]:
    claim, published = row.claim, row.claim.published
    cells: dict[str, Cell] = {
        "id": claim.id,
        "study": row.study,
        "section": claim.section,
        "statement": claim.statement,
        **{f"published_{name}": given for name, given in asdict(published).items()},
        **({"stack": row.first.stack} if row.is_labelled else {}),
        **_value(row.first),
        "criterion": claim.criterion.words,
        **_verdict(row.first),
        "shown": " ".join(claim.shown),
        "measure": str(claim.measure),
    }
    for judgement in row.judgements[1:]:
        cells |= {f"{key}_{judgement.stack}": value for key, value in (_value(judgement) | _verdict(judgement)).items()}
    return cells


def _value(judgement: ClaimVerdict) -> dict[str, Cell]:
    return {name: getattr(judgement.ours, key, None) for name, key in OURS.items()}


def _verdict(judgement: ClaimVerdict) -> dict[str, Cell]:
    return {key: getattr(judgement, key) for key in ("direction", "size", "verdict", "reason")}


def to_markdown(ledger: ClaimReport) -> str:
    """Return a table with two columns per stack, preceded by the counts of verdicts."""
    named = ledger.is_labelled
    counts = [
        (f"with the stack `{stack}` " if named else "") + counts_text(ledger.counts(place))
        for place, stack in enumerate(ledger.stacks)
    ]
    lines = [f"**Published claims, re-tested**: {'; '.join(counts)}.", ""]
    lines += [
        "The verdict follows from our 95 % interval: reproduced if all of it fulfils the criterion, not reproduced if "
        "none of it does, else inconclusive; a count is its own interval. Published values are another machine's. "
        "Where the runs give no value, the reason is in its place, and `./tidemark show claim ID` prints the command.",
        "",
        *(line for remark in ledger.remarks for line in (remark, "")),
    ]
    if len(ledger.stacks) > 1:
        changed = [f"`{row.claim.id}`" for row in ledger.rows if row.differs]
        which = f"{len(changed)} of {len(ledger.rows)}: {', '.join(changed)}" if changed else "none"
        lines += [f"Claims whose verdict depends on the stack: {which}.", ""]
    heads = ["Claim", "Section", "Published"]
    for place, stack in enumerate(ledger.stacks):
        suffix = f", stack {stack}" if named else ""
        heads += [f"Ours [95 %]{suffix}", *(["Reproduced would be"] if place == 0 else []), f"Verdict{suffix}"]
    rows = []
    for row in ledger.rows:
        cells = [f"`{row.claim.id}`: {row.claim.in_words}", row.claim.section, row.claim.published.shown]
        for place, judgement in enumerate(row.judgements):
            cells.append(judgement.ours_text or (judgement.reason or ""))
            cells += [row.claim.criterion.words] if place == 0 else []
            cells.append(judgement.verdict)
        rows.append(cells)
    return "\n".join([*lines, markdown_grid(heads, rows), "", f"- Dataset: {ledger.dataset}"]) + "\n"


def describe(row: Row) -> str:
    """Return one claim as terminal text: values, verdict per stack, its tables and figures, and its retest command."""
    claim = row.claim
    links = [
        f"results/figures/{row.study}/{name}.svg"
        if name.startswith("figure-")
        else f"results/tables/{row.study}/{name}.md"
        for name in claim.shown
    ]
    time = "" if row.retest.seconds is None else f"about {duration(row.retest.seconds)}, "
    about = "" if claim.published.shown == claim.published.text else f": {claim.published.text}"
    lines = [
        f"{claim.id} (section {claim.section})",
        f"  {claim.statement}",
        f"  published   {claim.published.shown}{about} ({claim.published.origin}), on another machine",
        f"  reproduced  would be {claim.criterion.words}",
        *([f"  here        {claim.differs}"] if claim.differs else []),
    ]
    for judgement in row.judgements:
        parts = f" (direction {judgement.direction}, size {judgement.size})" if judgement.size is not None else ""
        lines += [f"  with the software stack '{judgement.stack}':"] if row.is_labelled else []
        lines += [
            f"  ours        {judgement.ours_text or 'nothing: ' + (judgement.reason or '')}",
            f"  verdict     {judgement.verdict.upper()}{parts}",
            f"  from runs   {', '.join(judgement.sources) or 'none'}",
        ]
    lines += [
        f"  measure     {claim.measure}",
        f"  shown in    {', '.join(links)}",
        f"  {'test alone' if claim.is_judged else 'compare   '}  {row.retest.command}",
        f"              {time}{row.retest.disk_bytes / 1e9:.1f} GB of disk",
    ]
    return "\n".join(lines)


def overview(claims: Sequence[Claim], judged: Mapping[str, Sequence[Listed]]) -> str:
    """Return a line per claim: id, section, verdict, Tidemark's value, statement; one more line per further stack.

    `judged` maps the id of a claim to its verdicts.
    """
    named = needs_label(list(dict.fromkeys(each.stack for group in judged.values() for each in group)) or [THESIS])
    lines = []
    for claim in claims:
        for place, judgement in enumerate(judged.get(claim.id) or [Listed("", UNTESTED, "")]):
            identity, section, statement = (claim.id, claim.section, claim.statement) if place == 0 else ("", "", "")
            stack = f"{judgement.stack:12} " if named else ""
            verdict = f"{stack}{judgement.verdict:18} {judgement.ours:32}"
            lines.append(f"{identity:40} {section:6} {verdict} {statement}".rstrip())
    return "\n".join(lines)


def listed(path: Path) -> dict[str, list[Listed]]:
    """Return the verdicts on each claim from claims.json; raise AnalysisError if it is not such a file."""
    return {
        row.text("id"): [
            Listed(each.text("stack"), each.text("verdict"), each.text("ours_text"))
            for each in (row, *row.parts("others"))
        ]
        for row in Fields.read(path).parts("claims")
    }
