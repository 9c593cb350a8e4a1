"""Tests of findings: shipped evidence decides what is claimed, and each script pins versions of Tidemark's locks."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.cli.documents import PAGES
from tests.runs.runset import DELTA, DUCKLAKE, INLINED, write_run_set

from tidemark.errors import AnalysisError, ConfigError
from tidemark.paths import Workspace
from tidemark.pipeline.build import all_findings
from tidemark.pipeline.reference import FINDINGS, README, STUDIES, build_reference, documents
from tidemark.pipeline.reproduce import reproduce
from tidemark.results.archive.pack import write_archive
from tidemark.results.reference.findings import (
    FOLDER,
    SCRIPTS,
    Attempt,
    Cells,
    Count,
    Evidence,
    Finding,
    Known,
    Script,
    counted,
    declared,
    digest_of,
    page,
    shown,
)
from tidemark.results.reference.front import BEGIN, DARK, END, LIGHT, NONE, OF, OF_STUDIES, study_page
from tidemark.results.reference.releases import anchor
from tidemark.runs.serde import to_json
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.services.programs.tools import tool_lock
from tidemark.software.environments import read_lock
from tidemark.software.stacks import lock_of
from tidemark.studies.study import registry
from tidemark.systems.registry import registry as systems

ROOT = Path(__file__).parents[3]
SCRIPTED = [finding for finding in all_findings() if finding.script]
CELLS = Cells("losses", (("system", ("A",)),), "lost", 0, "runs of the study")


def kept(folder: Path, finding: Finding, seen: int, runs: int, digest: str = "", day: str = "") -> Path:
    """Write reference results in which `seen` of `runs` runs of the script showed the finding, and return `folder`."""
    attempts = tuple(Attempt(number < seen, f"run {number}", 1.0) for number in range(runs))
    evidence = Evidence(finding.id, digest or digest_of(finding), "a machine", (), attempts, {"rows": [1, 2]}, day)
    path = folder / FOLDER / f"{finding.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_json(evidence))
    return folder


def table(folder: Path, rows: list[list[object]]) -> None:
    path = folder / "a-study" / "tables" / "losses.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"columns": [{"key": "system"}, {"key": "lost"}, {"key": "n"}], "rows": rows}))


@pytest.fixture
def finding() -> Finding:
    return replace(SCRIPTED[0], study="a-study", cells=(), title="Something is wrong", published=None)


@pytest.mark.parametrize(("seen", "runs", "is_claimed"), [(8, 10, False), (9, 10, True), (10, 10, True), (9, 9, False)])
def test_finding_seen_in_fewer_than_nine_of_ten_runs_is_not_claimed(
    finding: Finding, seen: int, runs: int, is_claimed: bool, tmp_path: Path
) -> None:
    text = page([shown(finding, kept(tmp_path, finding, seen, runs))])
    assert ("## Something is wrong" in text) is is_claimed
    assert ("## Not claimed" in text) is not is_claimed
    assert f"{seen} of {runs} runs" in text or seen == runs


def test_page_dates_the_runs_and_files_of_earlier_versions_have_no_date(finding: Finding, tmp_path: Path) -> None:
    kept(tmp_path, finding, 10, 10, day="2026-11-28")
    assert "in 10 of 10 runs of its script on 2026-11-28 (" in page([shown(finding, tmp_path)])
    path = tmp_path / FOLDER / f"{finding.id}.json"
    path.write_text(path.read_text().replace('"date"', '"unknown"'))
    assert "in 10 of 10 runs of its script (" in page([shown(finding, tmp_path)])


def test_page_begins_with_a_table_of_the_findings(finding: Finding, tmp_path: Path) -> None:
    kept(tmp_path, finding, 9, 10, day="2026-11-28")
    known = Known("a place", "its words")
    one = replace(finding, systems=("ducklake",), wrong_rows=True, mended="")
    two = replace(finding, title="Sums differ", systems=(), wrong_rows=False, arithmetic=True, mended="1.1")
    text = page([shown(each, tmp_path) for each in (replace(two, published=known), one)])
    rows = [line for line in text.partition("<a id=")[0].splitlines() if line.startswith("| [")]
    link = f"findings.md#{finding.id}"
    assert rows == [
        f"| [Something is wrong]({link}) | [`ducklake`](systems/ducklake.md) | yes | 9 of 10 | 2026-11-28 |  |",
        f"| [Sums differ]({link}) |  | no | by arithmetic | 2026-11-28 | 1.1 |",
    ]
    assert f'<a id="{finding.id}"></a>' in text and not page([]).count("| Finding |")


def test_contradicting_cells_outweigh_a_confirming_script(finding: Finding, tmp_path: Path) -> None:
    one = replace(finding, cells=(CELLS,))
    kept(tmp_path, one, 10, 10)
    table(tmp_path, [["A", 3, 1], ["A", {"value": 2.0}, 1], ["A", 0, 1], ["A", {"missing": "failed"}, 1], ["B", 0, 1]])
    found = shown(one, tmp_path)
    assert [str(count) for count in found.counts] == ["10 of 10 runs of its script", "2 of 3 runs of the study"]
    assert found.why_not == "only 2 of 3 runs of the study show it"


def test_row_counts_as_often_as_its_weight() -> None:
    whole = {"columns": [{"key": "system"}, {"key": "lost"}, {"key": "n"}], "rows": [["A", 1, 7], ["A", 0, 2]]}
    assert counted(replace(CELLS, weight="n"), whole) == Count(7, 9, CELLS.words)
    with pytest.raises(AnalysisError, match="found no column \\['elsewhere'\\]"):
        counted(replace(CELLS, column="elsewhere"), whole)


def test_runs_of_an_outdated_script_do_not_count(finding: Finding, tmp_path: Path) -> None:
    found = shown(finding, kept(tmp_path, finding, 10, 10, digest="0" * 64))
    assert found.why_not == "no run of its script, as it is now, is shipped"


def test_findings_of_wrong_rows_come_first_with_a_workaround(finding: Finding, tmp_path: Path) -> None:
    harmless = replace(finding, title="Something is slow", wrong_rows=False)
    harmful = replace(finding, title="Rows are lost", wrong_rows=True, seen="Rows go.", meanwhile="do not write.")
    known = Known("a place", "its words")
    before = [replace(each, title=f"{each.title} already", published=known) for each in (harmless, harmful)]
    kept(tmp_path, finding, 10, 10)
    text = page([shown(each, tmp_path) for each in (harmless, harmful, *before)])
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)[1:]
    wanted = ["Rows are lost", "Something is slow", "Seen here, published by others before"]
    assert heads == [*wanted, "Rows are lost already", "Something is slow already"]
    assert text.count("Rows go.\n\n**Meanwhile:** do not write.\n") == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"script": None, "repeat": "a command"}, "needs a script"),
        ({"colour": "red"}, "found the keys \\['colour'\\]"),
        ({"repeat": "a command"}, "allowed: one of them"),
        ({"id": "no-such"}, "there is no"),
    ],
)
def test_malformed_finding_is_refused(change: dict[str, object], said: str, tmp_path: Path) -> None:
    item = {"id": SCRIPTED[0].id, "title": "t", "seen": "s", "not_shown": "n", "wrong_rows": True}
    whole = {**item, "script": {"stack": "thesis"}, **change}
    path = tmp_path / "findings.yaml"
    path.write_text(json.dumps([{key: value for key, value in whole.items() if value is not None}]))
    with pytest.raises(AnalysisError, match=said):
        declared("a-study", path)


@pytest.mark.parametrize("finding", SCRIPTED, ids=lambda finding: finding.id)
def test_script_pins_the_locked_versions_and_does_not_import_tidemark(finding: Finding) -> None:
    assert finding.script is not None
    text = finding.path.read_text()
    (block,) = re.findall(r"^# /// script\n(.*?)^# ///$", text, re.DOTALL | re.MULTILINE)
    header = tomllib.loads("".join(line.removeprefix("# ") for line in block.splitlines(keepends=True)))
    pins, *others = (
        {pin.name.lower().replace("_", "-"): pin.version for pin in read_lock(lock_of(stack))}
        for stack in (finding.script.stack, *finding.script.also)
    )
    pins |= {pin.name: pin.version for name in finding.script.tools for pin in read_lock(tool_lock(name))}
    for each in header["dependencies"]:
        name, _, version = each.partition("==")
        assert pins[name.partition("[")[0]] == version, each
        assert all(name.partition("[")[0] in other for other in others), each
    for each in finding.script.jars:
        assert any(f"{jar.group}:{jar.artifact}:{jar.version}" in text for jar in read_jar_lock(jar_lock(each)))
    for path in SCRIPTS.glob("*.py"):
        assert "tidemark." not in path.read_text().replace("./tidemark", ""), path


@pytest.mark.parametrize("path", sorted((ROOT / "reference" / FOLDER).glob("*.json")), ids=lambda path: path.stem)
def test_evidence_contains_no_local_paths(path: Path) -> None:
    assert re.findall(r"(?<![\w.:/])/(?:tmp|home|root|work|var|Users)/[^\"]{0,40}", path.read_text()) == []


def test_script_runs_as_often_as_requested(tmp_path: Path) -> None:
    (labels,) = (each for each in SCRIPTED if each.id == "lhbench-labels")
    said: list[str] = []
    evidence = reproduce(Workspace(tmp_path), labels, 2, said.append)
    assert [each.seen for each in evidence.attempts] == [True, True] and len(said) == 2
    assert "files touched, a hundredth" in evidence.case and date.fromisoformat(evidence.date)
    with pytest.raises(ConfigError, match="has no script"):
        reproduce(Workspace(tmp_path), replace(labels, script=None, repeat="a command"), 1, said.append)


def test_script_receives_the_interpreters_of_other_stacks(
    finding: Finding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.results.reference.findings.SCRIPTS", tmp_path)
    other = replace(finding, id="another", script=Script("thesis", also=("thesis",)))
    line = '{"seen": True, "said": said, "versions": {}, "evidence": {"where": os.getcwd()}}'
    other.path.write_text(f"import json, os, sys\nsaid = sys.argv[1]\nprint(json.dumps({line}))\n")
    evidence = reproduce(Workspace(tmp_path), other, 1, lambda _: None)
    assert evidence.attempts[0].said == f"--python={sys.executable}"
    assert evidence.case["where"] == "." and str(tmp_path) not in str(evidence), "kept results name no folder"


def test_ducklake_over_sqlite_stays_locked_with_the_installed_versions(tmp_path: Path) -> None:
    (lock,) = (each for each in SCRIPTED if each.id == "ducklake-sqlite-lock")
    evidence = reproduce(Workspace(tmp_path), replace(lock, script=Script("thesis")), 1, lambda _: None)
    assert evidence.attempts[0].seen, evidence.attempts[0].said


def test_documents_are_reproduced_from_archives(tmp_path: Path) -> None:
    newer = replace(DUCKLAKE, stack="current", median_ms=3.0)
    archives = [
        write_archive(write_run_set(tmp_path / name, models, window_s=6.0), tmp_path / f"{name}.zip")
        for name, models in (("older", (DUCKLAKE, INLINED, DELTA)), ("newer", (newer,)))
    ]
    made = []
    for name in ("first", "second"):
        for archive in archives:
            build_reference(archive, tmp_path / name / "reference")
        kept(tmp_path / name / "reference", SCRIPTED[0], 10, 10)
        marks = f"{BEGIN}\nwhat was there\n{END}\nbetween\n{OF_STUDIES}\nwhat was there\n{END}"
        (tmp_path / name / README).write_text(f"before\n{marks}\nafter\n")
        (tmp_path / name / STUDIES).mkdir(parents=True)
        for study in registry():
            (tmp_path / name / study_page(study)).write_text(f"{OF.format(study)}\nwhat was there\n{END}\n")
        made.append(documents(ROOT / "config.yaml", tmp_path / name / "reference", tmp_path / name))
    assert made[0] == made[1]
    claims = made[0]["docs/claims/streams.md"]
    assert (
        "windows of 6 s" in claims
        and "expected, stack current" in claims
        and f"## {SCRIPTED[0].title}" in made[0][FINDINGS]
    )
    front = made[0][README]
    assert (
        front.startswith(f"before\n{BEGIN}\n") and front.endswith(f"{END}\nafter\n") and "what was there" not in front
    )
    assert front.count("| System |") == 1 and "| DuckLake |" in front and "DuckLake + inlining" not in front, (
        "the newer"
    )
    assert "Time of a commit" not in front and "than speed.** →" in front, "numbers of no other study are kept"
    assert "[`streams`](docs/studies/streams.md)" in front and "not testable here" in front
    results = made[0][study_page("streams")]
    heads = [line for line in results.splitlines() if line.startswith("| System |")]
    assert len(heads) == 2, "one of each stack"
    assert "Commit 100, single" in heads[0] and "Peak memory" not in heads[0], "few enough for one look"
    assert "../../reference/streams-current/tables/matrix.json" in results
    assert results.count("(../../reference/streams/ages.svg)") == 1 and "what was there" not in results
    assert "[`streams`](../../reference/streams/reference.json)" in results
    assert "[`streams-current`](../../reference/streams-current/reference.json)" in results
    assert all((NONE in made[0][study_page(study)]) == (study != "streams") for study in registry())
    page, listed = made[0]["docs/systems/ducklake.md"], made[0]["docs/systems.md"]
    stacks = re.findall(r"^### streams, stack (\w+)$", page, re.MULTILINE)
    assert stacks == ["current", "thesis"], "today's releases first"
    assert "| Commit 100, single | " in page and "](../claims/streams.md#inlining-single)" in page
    assert "| `inline_rows` | " in page and "- [`inlining-single`]" in page
    assert all(f"](systems/{name}.md)" in listed for name in systems())
    assert "There are none in `reference/`" in made[0]["docs/systems/lance.md"]


def test_committed_documents_match_the_committed_reference_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of claims, plans or reference results, run './tidemark artifact .'."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)  # the documented times are for two processors
    made = documents(ROOT / "config.yaml", ROOT / "reference", ROOT)
    for name, content in made.items():
        assert (ROOT / name).read_text() == content, name


@pytest.mark.parametrize("name", PAGES)
def test_link_targets_of_a_page_exist(name: str) -> None:
    """Check files and, in pages, headings."""
    missing = []
    for target, _, heading in re.findall(r"\]\(([^)#:]*)(#([^)]*))?\)", (ROOT / name).read_text()):
        path = (ROOT / name).parent / target if target else ROOT / name
        text = path.read_text() if path.suffix == ".md" and path.exists() else ""
        headings = map(anchor, re.findall(r"^#+ (.*)$", text, re.MULTILINE))
        if not path.exists() or (heading and heading not in {*headings, *re.findall(r'<a id="([^"]+)"', text)}):
            missing.append(f"{target}#{heading}")
    assert not missing, name


def test_first_page_is_short() -> None:
    readme = (ROOT / README).read_text()
    assert len(readme.splitlines()) <= 250 and len(readme.partition("```")[0].split()) <= 135
    assert all(f'"{picture}"' in readme for picture in (LIGHT, DARK))


def test_pages_of_systems_link_to_their_findings() -> None:
    named = [(finding.id, name) for finding in all_findings() for name in finding.systems]
    pages = {name: (ROOT / "docs" / "systems" / f"{name}.md").read_text() for _, name in named}
    assert named and [pair for pair in named if f"(../findings.md#{pair[0]})" not in pages[pair[1]]] == []
