"""The ledger of claims: each with the thesis's value, ours with its interval, the verdict, and how to test it alone."""

from __future__ import annotations

import difflib
from pathlib import Path

from tidemark.analysis.claims import CLAIMS, load_claims
from tidemark.analysis.ledger_forms import describe, to_csv, to_json, to_markdown
from tidemark.analysis.ledger_rows import Judgement, Ledger, Row, build_ledger, estimate_text, judged, unjudged
from tidemark.analysis.measures import Measures
from tidemark.analysis.runs import RunSet
from tidemark.errors import AnalysisError, ConfigError
from tidemark.paths import write_if_changed

__all__ = ["Judgement", "Ledger", "Row", "build_claims", "build_ledger", "describe", "estimate_text", "find_row"]


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
        return judged(claim, Measures(RunSet.load(results)))
    except AnalysisError as error:
        return unjudged(claim, str(error))
