"""Tests of `claims` and `claim` over all registered claims, with results of one study, reference results, and none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.runs.runset import DUCKLAKE, INLINED, write_run_set
from typer.testing import CliRunner

from tidemark.cli.main import app, main
from tidemark.pipeline import build
from tidemark.pipeline.build import all_claims, build_claims, build_database
from tidemark.results.archive.pack import write_archive
from tidemark.results.claims import judge
from tidemark.results.claims.claims import Claim, load_claims
from tidemark.results.claims.export import describe
from tidemark.results.reference.content import read_references
from tidemark.runs.runset import RunSet
from tidemark.studies.study import registry

REPOSITORY = Path(__file__).parents[3]
REFERENCE = REPOSITORY / "reference"
CLAIMS = {claim.id: claim for claim in all_claims()}


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Cache the files that hundreds of commands read."""
    with pytest.MonkeyPatch.context() as patch:
        of_study = cache(lambda study: load_claims(registry()[study].results.claims))
        patch.setattr(judge, "load_claims", lambda book: of_study(book.study))
        patch.setattr(build, "read_references", cache(read_references))
        patch.setattr(RunSet, "load", cache(RunSet.load))
        yield


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of the study `streams` alone, with judged claims."""
    results = write_run_set(tmp_path_factory.mktemp("claims"), (DUCKLAKE, INLINED), window_s=2.0)
    build_database(results)
    build_claims(results)
    return results


def shown_by(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def label_of(claim: Claim) -> str:
    """Return the label of a claim's command: that of a claim that no run can judge is for comparison."""
    return "test alone" if claim.is_judged else "compare   "


def of(study: str) -> set[str]:
    return {claim.id for claim in load_claims(registry()[study].results.claims)}


def test_every_claim_is_shown_whatever_was_measured(streams: Path) -> None:
    assert len(CLAIMS) > 300
    tested = set()
    for identity, claim in CLAIMS.items():
        text = describe(build.claim(streams, identity))
        assert claim.statement in text and "  published   " in text and f"  {label_of(claim)}  ./tidemark all " in text
        if identity in of("streams"):
            tested.add(identity)
        else:
            assert "nothing: not measured in these results, which are of streams" in text and "NOT TESTED YET" in text
    assert tested == of("streams")


def test_only_claims_of_other_machines_and_servers_are_judged_by_no_run() -> None:
    unjudged = {identity for identity, claim in CLAIMS.items() if not claim.is_judged}
    others = {"iceberg-110-timeouts", "quack-server-retries", "statements-a-write"}
    assert others < unjudged < others | {identity for identity in CLAIMS if identity.startswith("row-")}
    assert len(unjudged) < 60


def test_every_claim_is_shown_with_its_reference_verdicts() -> None:
    held = [each for reference in read_references(REFERENCE) for each in reference.held]
    verdicts = {claim: {each.verdict.upper() for each in held if each.claim == claim} for claim in CLAIMS}
    assert sum(map(bool, verdicts.values())) > 300
    for identity, claim in CLAIMS.items():
        text = describe(build.claim(REFERENCE, identity))
        assert claim.statement in text and f"  {label_of(claim)}  ./tidemark all " in text
        assert all(f"verdict     {verdict}" in text for verdict in verdicts[identity] or {"NOT TESTED YET"}), text
        assert "kept in " in text or not verdicts[identity]


@pytest.mark.parametrize("study", registry())
def test_the_command_shows_a_claim_of_each_study(study: str, streams: Path) -> None:
    identity = sorted(of(study))[0]
    for place in (streams, REFERENCE, REFERENCE / study):
        text = shown_by("show", "claim", identity, "--results", str(place))
        without_time = re.sub(r"about \d.*?, (?=[\d.]+ GB of disk$)", "", text, flags=re.MULTILINE)
        assert without_time == describe(build.claim(place, identity)) + "\n" != text


def test_one_reference_study_is_enough_and_reports_missing_claims() -> None:
    place = str(REFERENCE / "streams")
    assert "from runs   kept in " in shown_by("show", "claim", "inlining-single", "--results", place)
    text = shown_by("show", "claim", sorted(of("lhbench"))[0], "--results", place)
    assert "not measured in these results, which are of streams" in text


def test_claim_is_read_from_an_archive_or_a_workspace(streams: Path, tmp_path: Path) -> None:
    asked = ("show", "claim", "inlining-single", "--results")
    shown = shown_by(*asked, str(streams))
    assert "verdict     REPRODUCED" in shown or "verdict     NOT REPRODUCED" in shown
    assert (
        shown_by(*asked, str(write_archive(streams, tmp_path / "a.zip")))
        == shown_by(*asked, str(streams.parent))
        == shown
    )


def test_list_has_the_verdicts_of_the_given_results(streams: Path) -> None:
    for place, expected in ((REFERENCE, 250), (REFERENCE / "streams", len(of("streams")) // 2), (streams, 15)):
        lines = shown_by("list", "claims", "--results", str(place)).splitlines()
        tested = [line for line in lines if "not tested yet" not in line]
        assert len(tested) >= expected and len(lines) >= len(CLAIMS), (place, len(tested), len(lines))
    assert " current " in shown_by("list", "claims", "--results", str(REFERENCE))


def test_before_the_first_run_claims_are_listed_untested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = shown_by("list", "claims").splitlines()
    assert len(lines) == len(CLAIMS) and all("not tested yet" in line for line in lines)
    text = shown_by("show", "claim", "inlining-single")
    assert "nothing: results: nothing was measured yet" in text and "  published   " in text and "test alone" in text


@pytest.mark.parametrize("command", [("list", "claims"), ("show", "claim", "inlining-single")])
def test_missing_path_is_an_error(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tidemark", *command, "--results", str(tmp_path / "nope")])
    assert main() == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and str(tmp_path / "nope") in err and "allowed:" in err


def test_unrelated_path_has_no_claims(tmp_path: Path) -> None:
    for place in (tmp_path, REPOSITORY / "README.md"):
        done = CliRunner().invoke(app, ["list", "claims", "--results", str(place)])
        assert "found neither plan.json nor reference.json" in str(done.exception), done.output
        assert getattr(done.exception, "exit_code", None) == 2
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / "claims.json").write_text("[1")
    done = CliRunner().invoke(app, ["list", "claims", "--results", str(tmp_path)])
    assert "claims.json: cannot be read as JSON" in str(done.exception)
