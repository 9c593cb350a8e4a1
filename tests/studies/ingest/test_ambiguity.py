"""Tests of the counts of hits by hand, of the planned cells, and of the sentences and verdicts about them."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import exact_share, product
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.machine import strace
from tidemark.pipeline.plan import make_plan
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, read, written
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.parts import AMBIGUITY, KILLED_ALONE, NO_SERVER, AmbiguitySettings, part_name
from tidemark.studies.ingest.record import LOCAL_DISK, Ambiguity, Outcomes
from tidemark.studies.ingest.study import Ingest
from tidemark.studies.ingest.tables import ambiguity as results
from tidemark.studies.ingest.tables.ambiguity import (
    Cuts,
    Hits,
    at_least,
    cuts_sentence,
    harmed_sentence,
    is_whole,
    safe_sentence,
    verdict,
)
from tidemark.studies.ingest.window.ambiguity import Attempted, Contents, outcomes
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.registry import variant_of

SHIPPED = Path(__file__).parents[3] / "config.yaml"
TOKEN = 1 << 40


def row(table: int = 1, **own: Any) -> Attempted:
    plain = {"fault": "after", "retry": CHECK, "token": TOKEN, "start_ns": 0, "elapsed_ns": 1, "rows": 1, "tries": 1}
    rest = {"copies": 1, "earlier": 3, "earlier_lost": 0, "unread": "", "stuck": "", "said": "Error: lost"}
    return Attempted(**{**plain, **rest, "table": table, **own})


def test_each_kind_of_harm_is_counted_once_for_its_hit() -> None:
    rows = [
        row(), row(copies=0), row(copies=3), row(rows=0, copies=2), row(rows=0, copies=0), row(rows=0),
        row(2, unread="OSError: gone", copies=0, rows=0, earlier_lost=2), row(3, stuck="Error: closed"),
    ]  # fmt: skip
    (found,) = outcomes(rows)
    assert (found.acked_once, found.acked_twice, found.acked_absent) == (2, 1, 1)
    assert (found.error_once, found.error_twice, found.error_absent) == (1, 1, 2)
    assert (found.hits, found.tables, found.harmed) == (8, 3, 5)
    assert (found.unreadable, found.stuck, found.earlier, found.earlier_lost) == (1, 1, 24, 2)
    assert (found.said, found.unread) == ("Error: lost", "OSError: gone")
    assert [row(rows=0, copies=0).is_harmed, row(copies=2).is_broken, rows[-1].is_broken] == [False, False, True]
    both = outcomes([row(), row(retry=BLIND), row()])
    assert [(each.retry, each.hits) for each in both] == [(CHECK, 2), (BLIND, 1)]
    kept = written(Ambiguity("PostgreSQL", both))
    assert read(Ambiguity, Fields("run.json", kept)) == Ambiguity("PostgreSQL", both)


def test_rows_are_counted_in_a_table_and_in_the_files_of_one_that_cannot_be_read(table: DeltaRs, trips: Path) -> None:
    rows = pq.read_table(trips)
    for numbers in ([1], [2, 2], [3]):
        table.write(rows.take(pa.array(numbers)))
    folder = table.place
    whole = Contents.of(table, folder)
    assert not whole.unread and [whole.copies(number) for number in (1, 2, 3, 4)] == [1, 2, 1, 0]
    assert whole.missing([1, 2, 4, 5]) == 2
    gone = next(path for path in folder.glob("*.parquet") if pq.read_table(path)["id"].to_pylist() == [3])
    gone.unlink()
    broken = Contents.of(table, folder)
    assert gone.name in broken.unread and [broken.copies(number) for number in (1, 2, 3)] == [1, 2, 0]
    assert broken.missing([1, 2, 3]) == 1


def planned(*overrides: str) -> list[Any]:
    every = make_plan(load(SHIPPED, ["studies=[ingest]", *overrides])).series
    return [each for each in every if part_name(each) == AMBIGUITY]


HTTP = ["after", "before", "twice", "status"]
AS_LOCAL = ["after", "before"]


def test_each_system_is_hit_in_the_ways_that_it_can_be_and_others_say_why_not() -> None:
    series = {(each.name, each.mode): each for each in planned("protocol=quick")}
    refused = {name: Ingest.unavailable(each, variant_of(each)) for name, each in series.items()}
    assert set(refused.values()) == {strace.why_not(), None}
    ways = {name: AmbiguitySettings.of(each).ways(variant_of(each)) for name, each in series.items()}
    assert ways == {
        ("ducklake", "answers-10"): AS_LOCAL,
        ("ducklake-inlined-postgres", "answers-10"): AS_LOCAL,
        ("iceberg-pyiceberg", "answers-10"): HTTP,
        ("iceberg-duckdb", "answers-10"): [*HTTP, "late"],
        ("delta-rs", "answers-10"): [*HTTP, "late"],
        ("delta-rs", "killed-10"): AS_LOCAL,
        ("delta-duckdb", "killed-10"): AS_LOCAL,
    }
    stored = {name: dict(each.options).get("storage") for name, each in series.items()}
    assert stored["delta-rs", "answers-10"] == "s3" and stored["delta-rs", "killed-10"] == "local"
    others = {
        name: [cell for cell in AmbiguitySettings.of(each).planned(variant_of(each)) if cell[0] not in ways[name]]
        for name, each in series.items()
    }
    restarts, cut = [("restart", retry, 3) for retry in (NEVER, BLIND, CHECK)], ("cut", BLIND, 60)
    assert others["ducklake", "answers-10"] == others["iceberg-duckdb", "answers-10"] == [*restarts, cut]
    assert (others["delta-rs", "answers-10"], others["delta-rs", "killed-10"]) == ([cut], [])
    assert {each.runs for each in series.values()} == {1}
    settings = AmbiguitySettings.of(series["ducklake", "answers-10"])
    assert (settings.faults, settings.retries) == ("after before twice status late", "never blind check")
    assert not planned("protocol=quick", "ingest.systems={null: {}}")
    (own,) = planned("protocol=quick", "ingest.systems={delta-rs: {storage: s3}}")
    assert own.mode == "answers-10", "a table that is in a server alone"


def test_clients_of_iceberg_go_through_nessie_as_well() -> None:
    sizes = "{writers: [], runs: 1, window_seconds: 1, ambiguity: {systems: [%s], catalogs: [nessie], cuts: 5}}"
    named = "ducklake, delta-rs, iceberg-duckdb, own"
    systems = "ingest.systems={iceberg-duckdb: {}, own: {like: iceberg-pyiceberg, catalog: reference}, delta-rs: {}}"
    found = planned("protocol=smoke", systems, f"ingest.protocols.smoke={sizes % named}")
    modes = {"iceberg-duckdb/answers-2", "iceberg-duckdb/answers-2-nessie", "own/answers-2"}
    assert {f"{each.name}/{each.mode}" for each in found if "delta" not in each.name} == modes
    (nessie,) = [each for each in found if each.mode.endswith("nessie")]
    assert [kind.name for kind in variant_of(nessie).needs] == ["nessie-tables"]
    settings, options = AmbiguitySettings.of(nessie), dict(nessie.options)
    assert (options["storage"], options["catalog"], settings.through) == ("s3", "nessie", "nessie")
    assert settings.refused_by(variant_of(nessie)) is None
    assert [*settings.planned(variant_of(nessie))][-1] == ("cut", BLIND, 5)


def test_local_system_whose_commit_is_no_link_says_so() -> None:
    sizes = "{writers: [1], runs: 1, window_seconds: 1, ambiguity: {systems: [ducklake-inlined, delta-duckdb], %s}}"
    systems = "ingest.systems={ducklake-inlined: {}, delta-duckdb: {}}"
    for faults, expected in {
        "hits: 1": (NO_SERVER, strace.why_not()),
        "faults: [late]": (NO_SERVER, strace.why_not() or KILLED_ALONE),
    }.items():
        found = planned("protocol=smoke", systems, f"ingest.protocols.smoke={sizes % faults}")
        refused = {each.name: AmbiguitySettings.of(each).refused_by(variant_of(each)) for each in found}
        assert refused == dict(zip(("ducklake-inlined", "delta-duckdb"), expected, strict=True))


def test_server_that_cannot_be_hit_is_named() -> None:
    (outside,) = planned("protocol=smoke", "services.postgres_address=host=db user=me",
                         "ingest.systems={ducklake: {}}")  # fmt: skip
    settings = AmbiguitySettings.of(outside)
    assert settings.refused_by(variant_of(outside)) == (
        "no proxy can be put before PostgreSQL, which was not started here"
    )
    twice = replace(settings, outside="", faults="twice status")
    assert twice.refused_by(variant_of(outside)) == (
        "commits to PostgreSQL can be hit in these ways alone: after, before"
    )
    late = replace(settings, outside="", faults="late")
    assert late.refused_by(variant_of(outside)) == twice.refused_by(variant_of(outside)), "it has no time limit"
    sizes = "{writers: [1], runs: 1, window_seconds: 1, ambiguity: {systems: [ducklake], faults: [later]}}"
    with pytest.raises(ConfigError, match=r'ambiguity\.faults.*found "later"'):
        planned("protocol=smoke", f"ingest.protocols.smoke={sizes}")


def cell(retry: str, fault: str = "after", **own: int) -> Outcomes:
    return Outcomes(fault=fault, retry=retry, hits=10, tables=1, **own)


def hits(title: str, system: str, *cells: Outcomes) -> Hits:
    return Hits(cast(Any, SimpleNamespace(title=title, system=system, settings=())), "PostgreSQL", cells)


FILES = hits(
    "DuckLake", "ducklake", cell(CHECK, acked_absent=10, unreadable=10, harmed=10),
    cell(CHECK, "before", acked_once=10), cell(BLIND, acked_once=10, unreadable=10, harmed=10),
    cell(NEVER, error_absent=10, unreadable=10, harmed=10),
)  # fmt: skip
INLINED = hits(
    "DuckLake + inlining", "ducklake-inlined-postgres", cell(CHECK, acked_once=10),
    cell(CHECK, "before", acked_once=10), cell(BLIND, acked_twice=10, harmed=10), cell(BLIND, "before", acked_once=10),
    cell(NEVER, error_once=10), cell(NEVER, "before", error_absent=10),
)  # fmt: skip


def test_verdict_and_bounds_follow_from_the_counts() -> None:
    assert verdict(FILES.cells[0]) == "HARMED: 10 tables cannot be read, 10 acknowledged rows lost"
    assert [verdict(each) for each in INLINED.cells[2:]] == [
        "HARMED: 10 rows twice", "each row once", "each row once, though reported as an error",
        "rows missing, each reported as an error",
    ]  # fmt: skip
    assert at_least(FILES.cells[0]) == pytest.approx(0.741, abs=1e-3) and at_least(INLINED.cells[0]) == 0
    assert [is_whole(each) for each in INLINED.cells] == [True, True, False, True, True, False]
    assert (INLINED.safe, FILES.safe, FILES.what_is_safe) == ([CHECK], [], "none of these")


def test_harm_of_a_cut_is_that_of_a_lost_answer_times_its_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Outcomes("cut", BLIND, 100, 1, acked_once=91, acked_twice=9, harmed=9, lost=9, lost_harmed=8)
    cut = hits("DuckLake", "ducklake", *INLINED.cells, lost)
    assert [cell.fault for cell in cut.by(BLIND)] == ["after", "before"] and cut.safe == [CHECK], "aimed hits alone"
    check, blind, never = Cuts.of(cut)
    found = blind.lost()
    assert (found.value, found.low, found.high) == pytest.approx((0.09, 0.0420, 0.1640), abs=1e-4)
    assert (blind.harm().low, blind.harm().high) == pytest.approx((0.6915, 1), abs=1e-4) and check.harm().high < 0.31
    both = blind.both
    assert both.value == found.value and both.low == blind.lost(0.975).low * blind.harm(0.975).low < found.low
    assert [each.seen for each in (check, blind, never)] == [None, 9, None] and blind.lost_seen == 8
    monkeypatch.setattr(results, "all_hits", lambda _run_set: [cut, INLINED])
    assert "DuckLake: 9 of 100 (0.042 to 0.16)." in cuts_sentence(cast(RunSet, None))
    assert "100 commits" not in (said := harmed_sentence(cast(RunSet, None))) and "120 commits were hit" in said
    monkeypatch.setattr(results, "all_hits", lambda _run_set: [INLINED])
    with pytest.raises(NotAvailable, match="no connection was cut"):
        cuts_sentence(cast(RunSet, None))
    assert Cuts.of(INLINED) == []
    without = Cuts.of(hits("DuckLake", "ducklake", cell(BLIND, "before", acked_once=10), lost))[0]
    with pytest.raises(NotAvailable, match="on purpose"):
        without.harm()


def test_interval_of_a_product_contains_it_in_95_of_100_cases() -> None:
    for cuts, aimed, lost, harm in ((60, 10, 0.03, 0.9), (60, 10, 0.2, 0.05), (20, 5, 0.5, 0.5)):
        held = 0.0
        for many in range(cuts + 1):
            first = exact_share(many, cuts, results.BOTH)
            for some in range(aimed + 1):
                both = product(first, exact_share(some, aimed, results.BOTH))
                chance = comb(cuts, many) * lost**many * (1 - lost) ** (cuts - many)
                chance *= comb(aimed, some) * harm**some * (1 - harm) ** (aimed - some)
                held += chance * bool(both.contains(lost * harm))
        assert held >= 0.95, (cuts, aimed, lost, harm)


def test_sentences_say_what_is_harmed_and_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "all_hits", lambda _run_set: [FILES, INLINED])
    said = harmed_sentence(cast(RunSet, None))
    assert (
        said.startswith("100 commits were hit")
        and "harmed with blind: 10 of 10 after (10 rows twice; above 0.74)" in said
    )
    advice = safe_sentence(cast(RunSet, None))
    assert "looks for the row before it sends it again (check) has each row once in DuckLake + inlining" in advice
    assert "For DuckLake, no policy of the writer is enough; with the best of them, check" in advice
    assert "DuckLake + inlining is safe, with each row in the catalog, until a flush whose answer is lost" in advice
    local = Hits(INLINED.series, LOCAL_DISK, INLINED.cells)
    monkeypatch.setattr(results, "all_hits", lambda _run_set: [INLINED, local])
    both = "each row once in DuckLake + inlining and DuckLake + inlining, local files"
    assert both in safe_sentence(cast(RunSet, None))
    monkeypatch.setattr(results, "all_hits", lambda _run_set: [hits("Iceberg", "i", cell(CHECK, acked_once=10))])
    assert "No hit did harm in Iceberg (0.26)" in harmed_sentence(cast(RunSet, None))
    monkeypatch.undo()
    monkeypatch.setattr(results, "series_with_hits", lambda _run_set: ())
    with pytest.raises(NotAvailable, match="no commit was hit"):
        safe_sentence(cast(RunSet, None))
