"""Counts of commits are compared in words: each planted difference is named, and what may differ is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from tidemark.errors import ConfigError, Incomparable
from tidemark.measure.anatomy.client import batches
from tidemark.measure.anatomy.session import exchanged, kind_of, steps, waits, written
from tidemark.measure.anatomy.writers import is_commit
from tidemark.runs.anatomy import CLIENT, SERVER, Anatomy, Source, Step, merged
from tidemark.services.proxies import Exchange

FSYNC, SENT = "fsync by the client", "bytes to PostgreSQL"


def anatomy(**counts: dict[str, tuple[int, int]]) -> Anatomy:
    """Return an anatomy of commit 10 with these counts, by source in lower case."""
    commits = {10: {Source[name]: each for name, each in counts.items()}}
    return Anatomy("delta-rs", "Delta", "thesis", {"delta-rs": "1.6.6"}, {}, 1, 21, 2, commits)


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        ((2, 2), (2, 2), None),
        ((3, 3), (2, 2), "fsync by the client: 3 a commit, kept 2 (commit 10)"),
        ((0, 0), (2, 2), "fsync by the client: 0 a commit, kept 2 (commit 10)"),
        ((2, 3), (3, 4), None),
        ((2, 3), (4, 5), "fsync by the client: 2-3 a commit, kept 4-5 (commit 10)"),
        ((4, 4), (2, 3), "fsync by the client: 4 a commit, kept 2-3 (commit 10)"),
    ],
)
def test_counts_differ_if_their_ranges_do_not_overlap(
    now: tuple[int, int], then: tuple[int, int], said: str | None
) -> None:
    found = list(anatomy(CALLS={FSYNC: now}).differences(anatomy(CALLS={FSYNC: then})))
    assert found == ([] if said is None else [said])


def test_count_that_only_one_of_both_has_differs() -> None:
    with_one, without = anatomy(CALLS={FSYNC: (1, 1)}), anatomy(CALLS={})
    assert list(with_one.differences(without)) == ["fsync by the client: 1 a commit, kept 0 (commit 10)"]
    assert list(without.differences(with_one)) == ["fsync by the client: 0 a commit, kept 1 (commit 10)"]


def test_bytes_may_differ_by_five_per_cent_and_memory_by_anything() -> None:
    kept = anatomy(NETWORK={SENT: (1000, 1000)}, MEMORY={"peak": (1, 1)})
    assert list(anatomy(NETWORK={SENT: (1050, 1050)}, MEMORY={"peak": (9, 9)}).differences(kept)) == []
    (said,) = anatomy(NETWORK={SENT: (1051, 1060)}, MEMORY={"peak": (1, 1)}).differences(kept)
    assert said == "bytes to PostgreSQL: 1,051-1,060 a commit, kept 1,000 (commit 10)"


def test_sources_that_only_one_of_both_counted_are_left_out() -> None:
    kept = anatomy(CALLS={FSYNC: (1, 1)})
    found = replace(anatomy(), not_counted={Source.CALLS: "strace is not installed"})
    assert list(found.differences(kept)) == []
    assert found.left_out(kept) == {Source.CALLS: "strace is not installed"}
    assert kept.left_out(found) == {Source.CALLS: "kept without: strace is not installed"}
    assert found.left_out(found) == {}


def test_counts_of_different_work_are_not_compared() -> None:
    kept = anatomy()
    for change in ({"system": "ducklake"}, {"rows": 2}, {"options": {"storage": "s3"}}, {"commits": {1: {}, 10: {}}}):
        with pytest.raises(Incomparable):
            list(replace(kept, **change).differences(kept))
    assert list(replace(kept, versions={"delta-rs": "2"}, stack="mine").differences(kept)) == []


def test_json_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = anatomy(CALLS={FSYNC: (1, 2)}, FILES={"data files": (1, 1)})
    path = tmp_path / "kept.json"
    path.write_text(made.to_json())
    assert Anatomy.read(path) == made
    for text in ("{}", "nonsense", made.to_json().replace('"rows": 1', '"rows": "one"')):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"kept\.json: cannot be read as an anatomy"):
            Anatomy.read(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Anatomy.read(tmp_path / "none")


def test_range_covers_all_runs_and_what_one_did_not_see_is_zero() -> None:
    runs = [{"files": {"log files": 1}}, {"files": {"log files": 1, "checkpoint files": 2}}]
    assert merged(runs) == {"files": {"log files": (1, 1), "checkpoint files": (0, 2)}}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("table/part-0.snappy.parquet", "data"),
        ("table/_delta_log/00000000000000000010.json", "log"),
        ("table/_delta_log/00000000000000000010.checkpoint.parquet", "checkpoint"),
        ("table/_delta_log/_last_checkpoint", "checkpoint"),
        ("table/data/00000-0.parquet", "data"),
        ("table/metadata/snap-1-0-a.avro", "manifest list"),
        ("table/metadata/a-m0.avro", "manifest"),
        ("table/metadata/00001-a.metadata.json", "metadata"),
        ("table/metadata/.00001-a.metadata.json.crc", "checksum"),
        ("catalog.ducklake.wal", "catalog"),
        ("data/main/trips/ducklake-1.parquet", "data"),
        ("table/_versions/2.manifest", "manifest"),
        ("table/_transactions/1-a.txn", "log"),
        ("trips/manifest/manifest-list-a-0", "manifest list"),
        ("trips/manifest/manifest-a-0", "manifest"),
        ("trips/snapshot/snapshot-2", "metadata"),
        ("notes.txt", "other"),
    ],
)
def test_kind_of_a_file_is_told_by_its_name(path: str, kind: str) -> None:
    assert kind_of(PurePath(path)) == kind


def test_new_changed_and_removed_files_are_counted_with_the_bytes_written() -> None:
    before = {"a.parquet": (10, 1, 1), "catalog.sqlite": (100, 1, 2), "_last_checkpoint": (7, 1, 3), "old": (1, 1, 4)}
    same = {"a.parquet": (10, 1, 1)}
    after = {**same, "b.parquet": (20, 2, 5), "catalog.sqlite": (130, 2, 2), "_last_checkpoint": (9, 2, 6)}
    files, sizes = written(before, after)
    assert files == {"data files": 1, "catalog files": 1, "checkpoint files": 1, "removed files": 1}
    assert sizes == {"bytes of data files": 20, "bytes of catalog files": 30, "bytes of checkpoint files": 9}
    more, _ = written(before, {**after, "c.parquet": (1, 2, 7)})
    assert more["data files"] == 2
    assert written(before, before) == ({}, {})


def test_steps_of_all_servers_are_in_order_of_time() -> None:
    first, later = Exchange(None, 2.0, 2.5, 10, 20, "BEGIN"), Exchange("GET", 2.25, 2.5, 30, 40, "GET /x")
    assert steps({(SERVER, "A"): [later], (CLIENT, "B"): [first]}) == (
        Step("B", "BEGIN", 0.0, 500.0, 10, 20),
        Step("A", "GET /x", 250.0, 250.0, 30, 40, SERVER),
    )
    assert steps({}) == steps({(CLIENT, "A"): []}) == ()


def at(began: float, ended: float, method: str | None = None) -> Exchange:
    return Exchange(method, began, ended, 10, 20)


def test_round_trips_of_a_catalogs_server_are_waited_for_within_its_answer() -> None:
    asked, sent = at(10, 20, "POST"), at(1, 5, "PUT")
    within, after = [at(11, 13), at(13, 16), at(12, 15)], at(21, 22)
    whole = {
        (CLIENT, "Catalog"): [asked],
        (CLIENT, "Store"): [sent],
        (SERVER, "Base"): [*within, after],
        (SERVER, "Store"): [at(17, 19, "GET")],
    }
    series = "round trips in series"
    assert waits(whole) == {
        series: 5,
        f"{series} to Base": 2,
        f"{series} to Catalog": 1,
        f"{series} to Store": 2,
    }
    assert waits({(CLIENT, "Store"): [sent]}) == {series: 1}, "it would be said twice"
    assert waits({(SERVER, "Base"): within}) == waits({}) == {}
    one_more = {**whole, (SERVER, "Base"): [*within, at(16, 16.5)]}
    assert waits(one_more)[series] == 6


def test_each_asker_has_counts_of_its_own() -> None:
    whole = {(CLIENT, "Store"): [at(1, 2, "PUT")], (SERVER, "Store"): [at(3, 4, "GET"), at(4, 5)]}
    assert exchanged(whole, CLIENT) == {
        "PUT requests to Store": 1,
        "bytes from Store": 20,
        "bytes to Store": 10,
        "round trips to Store": 1,
    }
    assert exchanged(whole, SERVER) == {
        "GET requests to Store by the catalog's server": 1,
        "bytes from Store by the catalog's server": 40,
        "bytes to Store by the catalog's server": 20,
        "round trips to Store by the catalog's server": 2,
    }


@pytest.mark.parametrize(
    ("asked", "answered", "found"),
    [
        ("POST /v1/namespaces/one/tables/trips", 9, True),
        ("POST /v1/namespaces/one/tables/trips", 0, False),
        ("GET /v1/namespaces/one/tables/trips", 9, False),
        ("POST /v1/namespaces/one/tables/trips/metrics", 9, False),
        ("POST /v1/namespaces/one/tables", 9, False),
    ],
)
def test_commit_to_a_catalog_is_told_by_its_request(asked: str, answered: int, found: bool) -> None:
    assert is_commit(Exchange(asked.split()[0], 1.0, 2.0, 10, answered, asked)) is found


@pytest.mark.parametrize("columns", [2, 21, 100])
def test_rows_have_the_columns_that_are_asked_for(columns: int) -> None:
    batch, trips = batches(3, columns), batches(3, 21)
    second = batch(1)
    assert second.column("id").to_pylist() == [3, 4, 5]
    assert second.num_columns == len({name.lower() for name in second.column_names}) == columns
    fewest = min(columns, 21)
    assert second.select(range(fewest)) == trips(1).select(range(fewest))
    if columns > 21:
        assert second.column("VendorID_2") == trips(1).column("VendorID")
