"""Tests of the ledger of releases: a planted slower release is seen, in the table and on the page of the site."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.results.links import REFERENCE, problems
from tests.runs.runset import DUCKLAKE, Model, batched, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.analysis.statistics import Estimate
from tidemark.errors import ConfigError
from tidemark.pipeline.releases import with_rates
from tidemark.pipeline.site import build_site
from tidemark.results.reference.release_ledger import FOLDER, WITHIN, Release, ReleaseLedger, exceeds
from tidemark.runs.anatomy import Anatomy, Source
from tidemark.runs.runset import RunSet
from tidemark.studies.streams.metrics import QUANTITIES, RATE_OF_FIRST

STACKS = {"1.4.4": "duckdb-1-4-4", "1.5.4": "duckdb-1-5-4", "1.5.5": "duckdb-1-5-5"}
AGAIN = "duckdb-1-5-5-again"
DRIFT = (1.0, 1.2, 0.9, 1.1, 0.95, 1.15, 1.05, 0.98)  # of the machine, in all releases of a round


BOTH = (DUCKLAKE, batched(DUCKLAKE, median_ms=10.0))


def results_of(folder: Path, *slower: float, systems: Sequence[Model] = BOTH[:1]) -> Path:
    """Write the run files of three releases and the last one's copy, each `slower` by a factor than the first."""
    models = [
        replace(
            model,
            stack=stack,
            factors=(1.0, 1.0),
            repeats=tuple(factor * drift * (1 + 0.01 * ((place + number) % 3)) for number, drift in enumerate(DRIFT)),
        )
        for model in systems
        for place, (stack, factor) in enumerate(zip((*STACKS.values(), AGAIN), (*slower, slower[-1]), strict=True))
    ]
    return write_run_set(folder, models, window_s=3.0, config={"stacks": [*STACKS.values(), AGAIN]})


def counted() -> ReleaseLedger:
    """Return the ledger with counts alone: those of DuckLake that are kept, and of another number of statements."""
    kept = Anatomy.read(REFERENCE / "anatomy" / "ducklake.json")
    changed = {number: {source: dict(each) for source, each in of.items()} for number, of in kept.commits.items()}
    for of in changed.values():
        of[Source.SQL]["SQL statements"] = (99, 99)
    last = Release("1.5.5", replace(kept, commits=changed), other_packages=("numpy 2.5.4 → 2.5.5",))
    return ReleaseLedger(
        "ducklake", "DuckLake", "duckdb", (Release("1.4.4", kept), Release("1.5.4", kept), last), stack="thesis"
    )


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> ReleaseLedger:
    """Return the ledger of three releases, the last of which writes 30 % slower."""
    results = results_of(tmp_path_factory.mktemp("releases"), 1.0, 1.0, 1.3, systems=BOTH)
    return with_rates(counted(), results, STACKS, AGAIN)


def test_planted_slower_release_is_a_change_point_and_the_others_are_none(ledger: ReleaseLedger) -> None:
    first, same, slower = ledger.releases
    assert [rate.mode for rate in slower.rates] == ["single", "batch of 1,000"]
    assert all(rate.ratio is None and rate.verdict == "" and rate.value for rate in first.rates)
    for rate in same.rates:
        assert rate.ratio is not None and rate.ratio.contains(1) and not rate.is_change
        assert rate.verdict == "the same within 10 %"
    for rate in slower.rates:
        assert rate.ratio is not None and rate.ratio.contains(1 / 1.3) and rate.is_change
        assert rate.verdict.startswith("slower by at least ") and WITHIN not in rate.verdict
        assert rate.over_first is not None and rate.over_first.contains(1 / 1.3)
    assert ledger.measured is not None and ledger.measured.rounds == len(DRIFT)
    assert set(ledger.measured.floors) == {"single", "batch of 1,000"}
    assert all(0 < floor < 6 for floor in ledger.measured.floors.values())


def test_faster_release_is_seen_and_a_change_below_the_floor_is_said_to_be_within_it(tmp_path: Path) -> None:
    made = with_rates(counted(), results_of(tmp_path, 1.3, 1.0, 1.0), STACKS, AGAIN)
    assert all(rate.is_change and rate.verdict.startswith("faster by at least") for rate in made.releases[1].rates)
    small = with_rates(counted(), results_of(tmp_path / "small", 1.0, 1.0, 1.02), STACKS, AGAIN)
    assert not any(rate.is_change for release in small.releases for rate in release.rates)


@pytest.mark.parametrize(
    ("low", "high", "floor", "seen"),
    [(1.05, 1.2, 4, True), (1.05, 1.2, 6, False), (0.8, 0.95, 5, True), (0.8, 0.95, 6, False), (0.9, 1.2, 0, False)],
)
def test_interval_must_exclude_1_by_more_than_the_floor(low: float, high: float, floor: float, seen: bool) -> None:
    assert exceeds(Estimate((low + high) / 2, low, high, 8, ""), floor) is seen


def test_releases_of_one_system_share_the_variance_of_their_rounds(tmp_path: Path) -> None:
    run_set = RunSet.load(results_of(tmp_path, 1.0, 1.0, 1.0))
    one, other = (run_set.select(mode="single", stack=stack)[0] for stack in ("duckdb-1-4-4", "duckdb-1-5-4"))
    ratio = Measures(run_set, QUANTITIES).ratio(RATE_OF_FIRST, other, one)
    assert ratio.rounds is not None and ratio.rounds.prior is not None
    assert ratio.rounds.degrees == 3 * (len(DRIFT) - 1), "four releases, eight rounds"
    assert ratio.estimate("").half_width_percent < 5, "the machine's drift of 30 % is no part of a ratio"


def test_table_has_counts_before_rates(ledger: ReleaseLedger) -> None:
    heads, rows = ledger.heads(), list(ledger.rows())
    assert heads[:2] == ["Release", "Counts of a commit that changed"] and "Events/s, commits 1 to 100" in heads
    assert all(len(row) == len(heads) for row in rows)
    assert [row[0] for row in rows] == ["duckdb 1.4.4", "", "duckdb 1.5.4", "", "duckdb 1.5.5", ""]
    assert rows[2][1] == "none" and "SQL statements: 99 a commit, before" in rows[4][1]
    notes = " ".join(ledger.notes())
    assert "Change points: 1.5.5 (single: slower by at least" in notes and "numpy 2.5.4 → 2.5.5" in notes
    assert "8 rounds" in notes and "identity" not in notes


def test_release_without_counts_says_why_and_is_in_the_table(ledger: ReleaseLedger) -> None:
    broken = Release("1.5.0", reason="duckdb 1.5.0 is too old")
    first, *others = counted().releases
    made = replace(counted(), releases=(first, broken, *others))
    assert made.heads() == ["Release", "Counts of a commit that changed"]
    assert [row[1] for row in made.rows()][:3] == ["–", "not counted: duckdb 1.5.0 is too old", "none"]
    whole = replace(made, releases=(first, broken, *ledger.releases[1:]), measured=ledger.measured)
    assert {len(row) for row in whole.rows()} == {len(whole.heads())}


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that makes reference results with the text of a ledger."""

    def keep(text: str) -> Path:
        place = tmp_path / "reference"
        shutil.copytree(REFERENCE / "deltars", place / "deltars")
        (place / FOLDER).mkdir()
        (place / FOLDER / "ducklake.json").write_text(text)
        return place

    return keep


def test_site_has_a_page_of_the_kept_ledgers(
    ledger: ReleaseLedger, kept: Callable[[str], Path], tmp_path: Path
) -> None:
    place = kept(ledger.to_json())
    assert ReleaseLedger.read(place / FOLDER / "ducklake.json") == ledger
    site = build_site(place, [], tmp_path / "site").parent
    assert problems(site) == []
    page = (site / "releases" / "ledger" / "index.html").read_text()
    part = page.partition('<h2 id="ducklake">')[2]
    assert "slower by at least" in part and "SQL statements: 99 a commit" in part and "Change points: 1.5.5" in part
    assert "./tidemark releases ducklake 1.4.4 1.5.4 1.5.5 --stack thesis" in part and "method/index.html" in page
    assert 'href="releases/ledger/index.html"' in (site / "index.html").read_text()
    assert 'href="ledger/index.html"' in (site / "releases" / "index.html").read_text()


def test_damaged_ledger_is_named(kept: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ducklake\.json: cannot be read as a ledger of releases"):
        build_site(kept('{"system": 1}'), [], tmp_path / "site")
    assert not (tmp_path / "site").exists()
