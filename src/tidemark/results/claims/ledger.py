"""The ledger of claims as files, and the row of a single claim."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.errors import AnalysisError, ConfigError
from tidemark.paths import write_if_changed
from tidemark.results.claims.claims import ClaimBook, load_claims
from tidemark.results.claims.forms import to_csv, to_json, to_markdown
from tidemark.results.claims.judge import Row, judge_all, judged, unjudged
from tidemark.runs.runset import RunSet


def write_claims(run_set: RunSet, judged_by: Sequence[tuple[ClaimBook, Measures]]) -> Path:
    """Write claims.json, .csv and .md beside the runs, and return the first."""
    results = run_set.results
    ledger = judge_all(run_set, judged_by)
    for ending, content in (("csv", to_csv(ledger)), ("md", to_markdown(ledger)), ("json", to_json(ledger))):
        write_if_changed(results / f"claims.{ending}", content)
    return results / "claims.json"


def find_row(results: Path, identity: str, books: Sequence[ClaimBook]) -> Row:
    """The row of one claim from the runs in `results`; without usable runs it says why and how to test the claim.

    ConfigError for an id that no claim has.
    """
    claims = {claim.id: (claim, book) for book in books for claim in load_claims(book)}
    if identity not in claims:
        close = difflib.get_close_matches(identity, claims, 3, 0.4)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise ConfigError(f"found no claim '{identity}'; {hint}'./tidemark claims' lists them")
    claim, book = claims[identity]
    try:
        return judged(claim, book, Measures(RunSet.load(results).of(book.study), book.quantities))
    except AnalysisError as error:
        return unjudged(claim, book, str(error))
