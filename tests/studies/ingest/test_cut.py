"""Tests of the losses of a power cut worked out by hand, of the planned cells, and of the sentences about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.analysis.formatting import MissingCell
from tidemark.analysis.metrics import NotAvailable
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.machine import power
from tidemark.pipeline.plan import make_plan
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, read
from tidemark.studies.ingest.load.records import ACKED, CONFLICT, NUMBERS, SENT
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.parts import CutSettings
from tidemark.studies.ingest.record import FLUSHED
from tidemark.studies.ingest.tables import faults as results
from tidemark.studies.ingest.tables.faults import Cuts, costly_cuts, cut_sentence
from tidemark.studies.ingest.window.power_failure import Remains, cost

SHIPPED = Path(__file__).parents[3] / "config.yaml"
ROWS, SYNCED, CUT_NS = 2, 1, 5_000_000_000
NOTHING = Remains(np.zeros(0, np.int64), 0, 0)
# Per attempt: start and duration in seconds, batch, attempt number, and outcome.
ONE = [(1, 1, 0, 1, NUMBERS[ACKED]), (2, 1, 1, 1, NUMBERS[CONFLICT]), (3, 1, 1, 2, NUMBERS[ACKED]), (4, 0, 2, 1, SENT)]
TWO = [(1, 2, 0, 1, NUMBERS[ACKED])]


def records(attempts: list[tuple[int, ...]]) -> np.ndarray:
    second = 1_000_000_000
    return np.array([(second * start, second * took, *rest, -1) for start, took, *rest in attempts], np.int64)


def ids(*batches: tuple[int, int]) -> np.ndarray:
    return np.array([(writer << ID_BITS) + ROWS * batch + row for writer, batch in batches for row in range(ROWS)])


def paid(seen: np.ndarray | None, said: str = "", remains: Remains = NOTHING) -> Any:
    return cost([records(ONE), records(TWO)], CUT_NS, SYNCED, ROWS, seen, said, remains)


def test_acknowledged_rows_are_stored_or_lost() -> None:
    whole = paid(ids((0, 0), (1, 0), (1, 1), (2, 0)))
    assert whole.holds and (whole.acked, whole.lost, whole.oldest_lost_s) == (6, 0, None)
    assert (whole.unknown, whole.done) == (1, 0)
    some = paid(ids((0, 0), (1, 0), (1, 2))[:-1])
    assert not some.holds and (some.lost, some.synced_lost, some.oldest_lost_s) == (4, 0, 2.0)
    assert (some.unknown, some.done, some.partial) == (1, 1, 1)
    twice = paid(np.concatenate([ids((0, 0), (1, 0), (1, 1), (2, 0)), ids((2, 0))]))
    assert not twice.holds and twice.doubled == ROWS


def test_unreadable_table_holds_nothing_whatever_its_files_contain() -> None:
    unread = paid(None, "OSError: gone", Remains(ids((1, 0)), 3, 2))
    assert not unread.holds and (unread.lost, unread.synced_lost, unread.left_in_files) == (6, 2, 2)
    assert unread.said == "OSError: gone" and unread.oldest_lost_s == 3.0


def test_files_are_read_one_by_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [7, 8]}), tmp_path / "whole.parquet")
    (tmp_path / "below").mkdir()
    (tmp_path / "below/empty.parquet").touch()
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(whole[:-9] + b"\0" * 9)
    remains = Remains.below(tmp_path)
    assert (remains.files, remains.unreadable, remains.ids.tolist()) == (3, 2, [7, 8])


def planned(*overrides: str) -> list[Any]:
    series = make_plan(load(SHIPPED, ["studies=[ingest]", *overrides])).series
    return [each for each in series if each.mode.startswith("cut-")]


def test_each_system_is_cut_with_default_and_full_durability() -> None:
    sizes = "writers: [1], runs: 2, window_seconds: 5"
    cut = "{systems: [ducklake, 'null', delta-rs], cuts: 2, window_seconds: 3}"
    series = planned(f"ingest.protocols={{small: {{{sizes}, cut: {cut}}}}}", "protocol=small")
    assert {(each.window_seconds, each.runs) for each in series} == {(3.0, 1)}
    asked = [(each.name, each.mode, dict(each.options).get("durability"), each.repeat) for each in series]
    both = [("cut-2", "default", 1), ("cut-2", "default", 2), ("cut-2-full", "full", 1), ("cut-2-full", "full", 2)]
    wanted = [(name, *each) for name in ("delta-rs", "ducklake") for each in both]
    assert sorted(asked) == wanted  # and none of a system that stores nothing
    already = planned(
        "protocol=small", CHOOSING.format("full"), "ingest.systems={full: {like: delta-rs, durability: full}}"
    )
    assert [each.mode for each in already] == ["cut-2"]
    with pytest.raises(ConfigError, match=r"small\.cut\.systems.*found 'duck'"):
        planned("protocol=small", CHOOSING.format("duck"))


CHOOSING = "ingest.protocols={{small: {{writers: [1], runs: 2, window_seconds: 5, cut: {{systems: [{}]}}}}}}"


def test_impossible_power_cut_states_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = planned("protocol=smoke", "services.postgres_address=host=db user=me", "ingest.systems={ducklake: {}}")
    assert CutSettings.of(outside[0]).refused_by(cast(Any, None)) == (
        "its power is not ours to cut: PostgreSQL was not started here"
    )
    ours = CutSettings.of(planned("protocol=smoke", "ingest.systems={ducklake: {}}")[0])
    monkeypatch.setattr(power, "why_not", lambda: "only root may mount a disk")
    assert ours.refused_by(cast(Any, None)) == "no power can be cut here: only root may mount a disk"
    monkeypatch.setattr(power, "why_not", lambda: None)
    assert ours.refused_by(cast(Any, None)) is None


def cut(paid: Any) -> Callable[[type], Any]:
    """Return the method that decodes the results of a run with this cost."""
    also = {"moment_s": 4.0, "copies": 2, "data_files": 3, "unreadable_files": 0}
    found = {"cut": {**asdict(paid), **also, "at_acknowledgement": {"excused": "no such kernel"}}}
    return lambda kind: read(kind, Fields("run.json", found))


def series(title: str, level: str, *costs: Any, marks: tuple[str, ...] = ()) -> Any:
    manifest = SimpleNamespace(system=SimpleNamespace(durability_level=level), marks=marks)
    runs = tuple(SimpleNamespace(manifest=manifest, record=cut(each)) for each in costs)
    return SimpleNamespace(title=title, id=f"{title}-{level}", runs=runs, missing=lambda: "only root may mount a disk")


def test_sentence_names_the_losses_of_each_system(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = paid(ids((0, 0), (1, 0), (1, 1), (2, 0)))
    unread, some = paid(None, "OSError: gone"), paid(ids((0, 0), (1, 0)))
    found = [
        series("DuckLake", "default", unread, unread),
        series("DuckLake (durability: full)", "full", whole, whole),
        series("Delta", "default", some, whole),
    ]
    monkeypatch.setattr(results, "series_with_cuts", lambda _run_set: found)
    said = cut_sentence(cast(RunSet, None))
    assert "cut 6 times" in said and "DuckLake loses 12 of 12 acknowledged rows in 2 of 2, and no client can" in said
    assert "Delta loses 4 of 12 acknowledged rows in 1 of 2." in said
    assert "there once in DuckLake (durability: full) (0.78)" in said
    assert Cuts.of(found[0]).level == MissingCell("not measurable here: no such kernel")
    assert costly_cuts(found[0]).estimate("").value == 1 and costly_cuts(found[1]).estimate("").value == 0
    monkeypatch.setattr(results, "series_with_cuts", lambda _run_set: [series("DuckLake", "default")])
    with pytest.raises(NotAvailable, match="only root"):
        cut_sentence(cast(RunSet, None))


def test_cut_after_a_flush_of_the_disk_counts_only_if_there_is_no_other() -> None:
    some, whole = paid(ids((0, 0), (1, 0))), paid(ids((0, 0), (1, 0), (1, 1), (2, 0)))
    flushed = series("DuckLake", "default", whole, marks=(FLUSHED,))
    assert len(Cuts.of(flushed).each) == 1 and costly_cuts(flushed).estimate("").value == 0
    flushed.runs += series("DuckLake", "default", some).runs
    assert len(Cuts.of(flushed).each) == 1 and costly_cuts(flushed).estimate("").value == 1
