"""Tests, with planted faults, of the oracle on created and dropped tables, and of conclusions from kills."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, read
from tidemark.studies.catalogs.findings import crash_sentence
from tidemark.studies.catalogs.metrics import Kills, crashes
from tidemark.studies.catalogs.record import ACKED, FAILED, UNKNOWN, WRONG
from tidemark.studies.catalogs.requests import COLUMNS, CREATIONS, DROPPING, PROPERTIES, RENAMING, Request
from tidemark.studies.catalogs.window.oracle import Finding, Ledger, look
from tidemark.systems.catalogs.base import CatalogReader, Entity, Kept, Names

ROOT = ("root",)
NAMESPACE = Request(CREATIONS[0], ROOT)
CREATED, RENAMED = Request(CREATIONS[1], ROOT, "old"), Request(RENAMING, ROOT, "old", "new")
DROPPED = Request(DROPPING, ROOT, "new")


class Listed(CatalogReader):
    """Reader of one namespace with tables of these names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def namespaces(self, path: Names) -> list[str]:
        del path
        return []

    def names(self, entity: Entity, path: Names) -> list[str]:
        del path
        return self._names if entity is Entity.TABLE else []

    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        del path, name
        return Kept(PROPERTIES, COLUMNS if entity is Entity.TABLE else ())


def found(there: str, *outcomes: str) -> Finding:
    """Return the finding for a namespace with these tables after a create, rename and drop with these outcomes."""
    requests = (NAMESPACE, CREATED, RENAMED, DROPPED)[: 1 + len(outcomes)]
    return look(Listed(there.split()), Ledger.of(requests, (ACKED, *outcomes)), ROOT)


@pytest.mark.parametrize(
    ("there", "outcomes", "wrong"),
    [
        ("new", (ACKED, ACKED), {}),
        ("old", (ACKED, ACKED), {"undead": 1, "lost": 1}),
        ("old new", (ACKED, ACKED), {"undead": 1}),
        ("old", (ACKED, FAILED), {}),
        ("old", (ACKED, UNKNOWN), {}),
        ("new", (ACKED, UNKNOWN), {}),
        ("", (ACKED, UNKNOWN), {"lost": 1}),
        ("old new", (ACKED, UNKNOWN), {"doubled": 1}),
        ("old", (UNKNOWN, UNKNOWN), {}),
        ("", (ACKED, ACKED, ACKED), {}),
        ("new", (ACKED, ACKED, ACKED), {"undead": 1}),
        ("new", (ACKED, ACKED, UNKNOWN), {}),
        ("", (ACKED, ACKED, UNKNOWN), {}),
        ("old", (ACKED, UNKNOWN, FAILED), {}),
        ("new", (ACKED, UNKNOWN, ACKED), {"undead": 1}),
        ("new new", (ACKED, ACKED), {"doubled": 1}),
        ("new other", (ACKED, ACKED), {"phantom": 1}),
    ],
)
def test_table_exists_only_under_its_last_name(there: str, outcomes: tuple[str, ...], wrong: dict[str, int]) -> None:
    finding = found(there, *outcomes)
    assert {name: getattr(finding, name) for name in WRONG if getattr(finding, name)} == wrong, finding
    assert finding.holds is (not wrong)


def test_unknown_outcome_is_resolved_by_the_listed_tables() -> None:
    for there, outcomes, done in (
        ("new", (ACKED, UNKNOWN), 1),
        ("old", (ACKED, UNKNOWN), 0),
        ("", (ACKED, ACKED, UNKNOWN), 1),
        ("new", (ACKED, ACKED, UNKNOWN), 0),
    ):
        finding = found(there, *outcomes)
        assert (finding.resolved_done, finding.resolved_not) == (done, 1 - done)


def kill(
    holds: bool = True, lost: int = 0, title: str = "Server", answered_s: float | None = 1.5, errors: int = 0
) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "in_flight": 8,
        "acknowledged": 40,
        "unknown": 8 + errors,
        "errors": errors,
        "done": 1,
        "not_done": 7,
    }
    counts |= {"again": 16, "again_acked": 0 if errors else 16}
    counts |= {"killed": "server", "moment_s": 1.0, "named": []}
    return {"title": title, "lost": lost, "holds": holds, "answered_s": answered_s, "said": "", **counts}


def run_set(crash: dict[str, Any]) -> RunSet:
    system = SimpleNamespace(name="mine", base="rest-jdbc-h2", options=())
    manifest = SimpleNamespace(system=system, series=SimpleNamespace(protocol="smoke"))
    found = Fields("run.json", {"steps": [], "oracle": {}, "in_flight": 8, "crash": crash}, "found.")
    run = SimpleNamespace(manifest=manifest, record=lambda kind: read(kind, found))
    series = SimpleNamespace(title="Mine", mode="users-8", runs=[run])
    return cast(RunSet, SimpleNamespace(select=lambda **_: [series]))


def test_kills_without_a_loss_bound_its_probability() -> None:
    """The bound for n kills is the exact binomial one, about 3/n."""
    whole = dict.fromkeys(WRONG, 0)
    for count, bound in ((1, 0.95), (3, 0.632), (20, 0.139), (100, 0.0295)):
        (kills,) = crashes(run_set({"kills": [kill()] * count, "window": whole}))
        assert isinstance(kills, Kills) and kills.holds and kills.at_most == pytest.approx(bound, abs=1e-3)
    (one,) = crashes(run_set({"kills": [kill(), kill(holds=False, lost=2), kill()], "window": whole}))
    assert isinstance(one, Kills) and not one.holds and 0.8 < one.at_most < 1.0
    (all_lost,) = crashes(run_set({"kills": [kill(holds=False, lost=2)], "window": whole}))
    assert isinstance(all_lost, Kills) and all_lost.at_most == 1.0


def test_kills_of_a_server_that_takes_no_writes_do_not_count() -> None:
    """Kills of a server that answers most requests with an error give no evidence about the next kill."""
    crash = {"kills": [kill(), kill(errors=90), kill(errors=90)], "window": dict.fromkeys(WRONG, 0)}
    (kills,) = crashes(run_set(crash))
    assert isinstance(kills, Kills) and kills.telling == 1 and kills.at_most == pytest.approx(0.95)
    said = crash_sentence(run_set(crash))
    assert "of 48 at once, 16 succeed; only 1 of its 3 kills could show a loss." in said
    assert "takes few writes" not in crash_sentence(run_set({**crash, "kills": [kill()]}))


def test_loss_is_reported_with_the_setting_that_repeats_it() -> None:
    whole = dict.fromkeys(WRONG, 0)
    kills = [kill(), kill(title="Database"), kill(holds=False, lost=7), kill(title="Database")]
    said = crash_sentence(run_set({"kills": kills, "window": whole}))
    assert "killed 4 times" in said and "Mine does not hold: after 1 of 2 kills of Server, 7 acknowledged" in said
    assert '\'catalogs.systems={"mine": {"like": "rest-jdbc-h2"}}\'' in said and "Mine (Database: 0.78)" in said
    later = crash_sentence(run_set({"kills": [kill()], "window": whole | {"lost_updates": 3}}))
    assert "0 of 1 kills of Server, 3 acknowledged entities and updates are lost" in later
    gone = crash_sentence(run_set({"kills": [kill(holds=False, answered_s=None)], "window": None}))
    assert "it does not answer again" in gone
    with pytest.raises(NotAvailable):
        crash_sentence(run_set({"excused": "keeps nothing"}))
    assert [reason for _, reason in crashes(run_set({"excused": "keeps nothing"}))] == ["keeps nothing"]
