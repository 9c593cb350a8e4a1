"""Tests of the sentences about kills, from the records of runs."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import known
from tidemark.results.claims.claim_data import ClaimData
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, read
from tidemark.studies.ingest import claims
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.tables import faults as kills_module
from tidemark.studies.ingest.tables.faults import (
    costly,
    kept_sentence,
    killed_of,
    retry_of,
    twice,
)


def kill(title: str, moment_s: float, **changed: Any) -> dict[str, Any]:
    plain = {
        "victim": "victim",
        "title": title,
        "moment_s": moment_s,
        "down_s": 2.0,
        "started_s": 1.0,
        "in_flight": 2,
        "acked": 50,
    }
    counts = dict.fromkeys(("unknown", "done", "not_done", "lost", "doubled", "partial"), 0)
    return {**plain, **counts, "holds": True, "said": "", **changed}


def series(*kills: dict[str, Any], undisturbed: bool = True, title: str = "DuckLake", mode: str = "faults-2") -> Any:
    before = {"lost": 0 if undisturbed else 30, "doubled": 0, "partial": 0, "holds": undisturbed, "said": ""}
    found = {"faults": {"kills": list(kills), "undisturbed": before}, "referenced_files": 40, "oracle": {"words": "?"}}
    run = SimpleNamespace(
        record=lambda kind: read(kind, Fields("run.json", found)), footprint=SimpleNamespace(data_files=43)
    )
    return SimpleNamespace(runs=(run,), title=title, id=title, mode=mode, settings=(), missing=lambda: "not measured")


@pytest.fixture
def run_set(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes a run set of given series."""

    def of(*found: Any) -> RunSet:
        monkeypatch.setattr(kills_module, "series_with_kills", lambda _run_set: found)
        return cast(RunSet, None)

    return of


def test_kills_are_grouped_by_their_victim() -> None:
    (killed,) = killed_of(series(kill("a writer", 1), kill("PostgreSQL", 2, holds=False, lost=20), kill("a writer", 3)))
    writer, postgres = killed.kills
    assert (len(writer.each), writer.with_loss, writer.total("acked")) == (2, 0, 100)
    assert (postgres.with_loss, postgres.total("lost"), postgres.at_most) == (1, 20, 1.0)
    assert killed.orphans == 3 and killed.with_loss == 1
    assert [each.moment_s for each in killed.each] == [1, 2, 3]


def test_twenty_kills_without_a_loss_give_a_tighter_bound_than_three() -> None:
    for count, high in ((3, 0.53), (20, 0.12)):
        found = costly(series(*(kill("a writer", moment) for moment in range(count)))).estimate("")
        assert found.value == 0 and found.high == pytest.approx(high, abs=0.02)
    assert costly(series(kill("a writer", 1, holds=False))).estimate("").value == 1
    with pytest.raises(NotAvailable, match="without any kill"):
        costly(series(kill("a writer", 1), undisturbed=False))


def test_sentence_names_systems_that_kept_and_lost_rows(run_set: Any) -> None:
    loses = series(kill("PostgreSQL", 2, holds=False, lost=20), title="Lossy")
    said = kept_sentence(run_set(series(kill("a writer", 1)), loses))
    assert "killed 2 times" in said and "Lossy does not hold: after 1 of 1 kills of PostgreSQL, 20 acknowledged" in said
    assert "there once in DuckLake (a writer 0.95)" in said and "without any kill" not in said
    also = series(kill("a writer", 1, holds=False, lost=10), undisturbed=False)
    assert "10 acknowledged rows are lost and 0 doubled, as it does without any kill" in kept_sentence(run_set(also))
    unread = series(kill("PostgreSQL", 1), kill("PostgreSQL", 2, holds=False, said="FileNotFoundError: gone"))
    assert "after 1 of 2 kills of PostgreSQL, no client can read the table any more." in kept_sentence(run_set(unread))
    with pytest.raises(NotAvailable):
        kept_sentence(run_set())


def test_duplicated_row_is_reported_with_the_retry_policy(run_set: Any) -> None:
    doubled = kill("PostgreSQL", 2, holds=False, doubled=10)
    blind, check = series(doubled, mode="faults-2-blind"), series(*[kill("PostgreSQL", 2)] * 20, mode="faults-2-check")
    said = kept_sentence(run_set(blind, check))
    assert "DuckLake, sent again blindly does not hold" in said and "once in DuckLake, sent again after a look" in said
    assert [retry_of(each) for each in (blind, check, series(doubled))] == [BLIND, CHECK, NEVER]
    assert twice([blind]).estimate("").value == 1 and twice([check]).estimate("").high < 0.15
    with pytest.raises(NotAvailable, match="sent a batch"):
        twice([])


@dataclass(frozen=True)
class TwoStacks:
    """Series of two stacks, from which `RunSet.select` takes those of one."""

    series: tuple[Any, ...]
    stack: str = "thesis"
    select = RunSet.select


def claimed(name: str, *found: Any, **arguments: Any) -> dict[str, Any]:
    """Return the value that the claim measure `name` has under each stack, and the series whose runs it names."""
    values: dict[str, Any] = {}
    for stack in ("thesis", "current"):
        measures = SimpleNamespace(run_set=TwoStacks(found), value=lambda _quantity, own: known(own.seconds))
        named: list[Any] = []
        claim_data = SimpleNamespace(
            measures=measures, stack=stack, runs=named, require_runs=lambda own, _which: own[0]
        )
        value, _ = claims.OWN[name].compute(cast(ClaimData, claim_data), **arguments)
        values[stack] = round(value.value, 3), len(named)
    return values


def of_stack(stack: str, *kills: dict[str, Any], mode: str = "faults-2", system: str = "ducklake") -> Any:
    own = series(*kills, mode=mode)
    own.__dict__.update(stack=stack, system=system, sweep="main", batch_size=1, is_null_baseline=False)
    return own


def test_claims_on_kills_are_of_their_own_stack() -> None:
    lost, doubled = (kill("PostgreSQL", 2, holds=False, **{each: 10}) for each in ("lost", "doubled"))
    held = kill("PostgreSQL", 1)
    found = (
        of_stack("thesis", held),
        of_stack("thesis", doubled, mode="faults-2-blind"),
        of_stack("current", held, lost),
        of_stack("current", doubled, held, mode="faults-2-blind"),
    )
    assert claimed("killed", *found, system="ducklake") == {"thesis": (0.0, 0), "current": (0.5, 0)}
    assert claimed("sent-twice", *found, retry=BLIND) == {"thesis": (1.0, 1), "current": (0.5, 1)}


def test_claim_on_maintenance_divides_rounds_of_its_own_stack() -> None:
    found = []
    for stack, times in (("thesis", (6.0, 2.0)), ("current", (5.0, 10.0))):
        for system, seconds in zip(("delta-rs", "ducklake"), times, strict=True):
            for mode in ("maintained-3", "left-3"):
                own = of_stack(stack, mode=mode, system=system)
                own.seconds = seconds if mode == "maintained-3" else 1000.0
                found.append(own)
    ratios = claimed("rounds-ratio", *found, system="delta-rs", vs="ducklake")
    assert ratios == {"thesis": (3.0, 0), "current": (0.5, 0)}
