"""Files of the claims ledger, and the row of a single claim."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.errors import ConfigError
from tidemark.paths import write_if_changed
from tidemark.results.claims.claims import Claim, ClaimBook, load_claims
from tidemark.results.claims.export import to_csv, to_json, to_markdown
from tidemark.results.claims.judge import Row, judge_all, judged, unjudged
from tidemark.runs.runset import RunSet


def write_claims(run_set: RunSet, judged_by: Sequence[tuple[ClaimBook, Measures]]) -> Path:
    """Write claims.json, .csv and .md to the results folder, and return the path of the first."""
    results = run_set.results
    ledger = judge_all(run_set, judged_by)
    for ending, content in (("csv", to_csv(ledger)), ("md", to_markdown(ledger)), ("json", to_json(ledger))):
        write_if_changed(results / f"claims.{ending}", content)
    return results / "claims.json"


def find_claim(identity: str, books: Sequence[ClaimBook]) -> tuple[Claim, ClaimBook]:
    """Return the claim with this id and its book; raise ConfigError for an unknown id."""
    claims = {claim.id: (claim, book) for book in books for claim in load_claims(book)}
    if identity not in claims:
        close = difflib.get_close_matches(identity, claims, 3, 0.4)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigError(f"found no claim '{identity}'; {hint}'./tidemark claims' lists them")
    return claims[identity]


def row_of(run_set: RunSet, claim: Claim, book: ClaimBook) -> Row:
    """Return the row of one claim from the runs of its study, or an untested row if `run_set` has none."""
    if book.study not in run_set.studies:
        return unjudged(claim, book, not_measured(run_set.studies))
    return judged(claim, book, Measures(run_set.of(book.study), book.quantities))


def not_measured(studies: Iterable[str]) -> str:
    """Return the reason why results of other studies cannot test a claim."""
    return f"not measured in these results, which are of {' and '.join(dict.fromkeys(studies))}"
