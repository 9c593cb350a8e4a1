"""Tests of writers that commit at a set interval: their schedule, and the model of refusals, on simulated commits."""

from __future__ import annotations

import numpy as np
import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.studies.ingest.load.schedule import SPREAD, intended
from tidemark.studies.ingest.settings import PACED, PacedSettings
from tidemark.studies.ingest.tables.requests import exposed_s, predicted

SECOND = 1_000_000_000


def paced(writers: int, every_seconds: int) -> PacedSettings:
    return PacedSettings(PACED, 500, 3, writers, every_seconds, 50)


def test_each_interval_has_one_commit_at_a_moment_of_its_own() -> None:
    starts = intended(SPREAD, 0.5, 20, (7, 1))
    assert (starts // (2 * SECOND)).tolist() == list(range(10))
    assert len(set((starts % (2 * SECOND)).tolist())) == 10
    assert (intended(SPREAD, 0.5, 20, (7, 1)) == starts).all() and intended(SPREAD, 0.5, 20, (7, 2))[0] != starts[0]


def simulated(writers: int, every_seconds: int, exposed: float) -> float:
    """Return the share of commits that have another writer's commit in the `exposed` seconds before them."""
    each = [intended(SPREAD, 1 / every_seconds, 20_000.0 * every_seconds, (1, number)) for number in range(writers)]
    hit = []
    for number, own in enumerate(each):
        others = np.sort(np.concatenate([starts for other, starts in enumerate(each) if other != number]))
        last = np.searchsorted(others, own) - 1
        hit.append((own - others[last] < exposed * SECOND) & (last >= 0))
    return float(np.concatenate(hit).mean())


@pytest.mark.parametrize(("few", "many", "every_seconds"), [(4, 16, 1), (2, 32, 5)])
def test_share_refused_with_many_writers_follows_from_few(few: int, many: int, every_seconds: int) -> None:
    found = exposed_s(simulated(few, every_seconds, 0.03), paced(few, every_seconds))
    assert found == pytest.approx(0.03, rel=0.15)
    share = simulated(many, every_seconds, 0.03)
    assert predicted(found, many, every_seconds) == pytest.approx(share, rel=0.15)
    assert predicted(found, 1, every_seconds) == 0


def test_nothing_is_predicted_from_one_writer_or_if_none_or_all_was_refused() -> None:
    with pytest.raises(NotAvailable, match="one writer is never refused"):
        exposed_s(0.0, paced(1, 1))
    with pytest.raises(NotAvailable, match="nothing was refused"):
        exposed_s(0.0, paced(4, 1))
    with pytest.raises(NotAvailable, match="every try was refused"):
        exposed_s(1.0, paced(4, 1))
