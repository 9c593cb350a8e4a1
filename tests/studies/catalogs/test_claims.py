"""Tests of the published report: its rows are complete, and its mistakes are found with its own appendix."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tidemark.analysis.statistics import BootstrapEstimate, counted, known
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, load_claims
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.claims import CatalogClaimData
from tidemark.studies.catalogs.results import RESULTS

# By the id of the claim: the verdict of the appendix on the text.
OF_ITSELF = {
    "printed-catalog": REPRODUCED,
    "printed-namespace": REPRODUCED,
    "printed-table": REPRODUCED,
    "printed-view": REPRODUCED,
    "printed-write-50": NOT_REPRODUCED,
    "printed-write-99": NOT_REPRODUCED,
    "printed-gain-catalog": NOT_REPRODUCED,
    "printed-consistent-reads": NOT_REPRODUCED,
    "printed-consistent-writes": NOT_REPRODUCED,
}


def test_appendix_is_complete() -> None:
    rows = published.rows()
    assert len(rows) == 32 == len({(row.mode, row.case, row.system, row.query) for row in rows})
    assert all(row.requests == row.succeeded + row.failed for row in rows)
    assert sum(row.succeeded for row in rows if row.mode == "sequential" and row.case[0] == "D") == 2 * 25_075
    for row in rows:
        if row.succeeded:
            assert row.minimum_ms <= row.median_ms <= row.maximum_ms and row.minimum_ms <= row.mean_ms <= row.maximum_ms


def test_every_row_is_a_separate_claim() -> None:
    claims = {claim.id: claim for claim in load_claims(RESULTS.claims)}
    rows = [claim for name, claim in claims.items() if name.startswith("row-")]
    assert len(rows) == 32
    assert {claim.published.value for claim in rows} >= {63, 3663, 685, 85}


def test_text_is_checked_against_its_appendix() -> None:
    claims = {claim.id: claim for claim in load_claims(RESULTS.claims)}
    for name, expected in OF_ITSELF.items():
        claim_data: CatalogClaimData = None  # type: ignore[assignment]  # no measured evidence is used
        replicates, unit = claims[name].measure(claim_data)
        verdict, _, _ = claims[name].criterion.judge(replicates.estimate(unit))
        assert verdict == expected, name


def test_the_published_signs_stay_as_printed() -> None:
    written = {item["id"]: item for item in yaml.safe_load(Path(RESULTS.claims.path).read_text())}
    assert written["printed-write-50"]["published"]["value"] == -23
    assert written["printed-write-99"]["published"]["value"] == -46


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (counted(50), REPRODUCED),
        (counted(46), REPRODUCED),
        (counted(45), NOT_REPRODUCED),
        (counted(8), NOT_REPRODUCED),
        (known(50.0), INCONCLUSIVE),
    ],
)
def test_a_count_is_judged_as_exact(found: BootstrapEstimate, verdict: str) -> None:
    """A count of 50 requests in flight is exact; a single time has no interval to be judged by."""
    claim = next(claim for claim in load_claims(RESULTS.claims) if claim.id == "in-flight")
    assert claim.criterion.judge(found.estimate("requests"))[0] == verdict
