"""Each test belongs to a tier by its folder, says why it is marked alone or long, and asserts no time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import TESTS, pytest_collection_modifyitems, pytest_runtest_protocol, pytest_runtest_teardown
from tests.tiers import CPU, TIERS, alone, paths, tier_of, times

# A comparison of two clock readings with a number that a slow machine exceeds.
UPPER_LIMIT = re.compile(r"assert [^\n]*(monotonic|perf_counter|time\.time)\(\)[^\n]* < ")
WAIT = re.compile(r"\band time\.\w+\(\) < |while .* < ")  # for a state, with a deadline


@pytest.mark.parametrize(
    ("file", "tier"),
    [
        ("test_tiers.py", "default"),
        ("results/test_tables.py", "default"),
        ("results/slow/test_paper.py", "integration"),
        ("studies/ingest/gateway/test_front.py", "default"),
        ("conformance/core/test_core.py", "default"),
        ("conformance/test_writers.py", "integration"),
        ("end_to_end/smoke/test_smoke.py", "default"),
        ("end_to_end/qemu/test_reboot.py", "all"),
    ],
)
def test_nearest_named_folder_decides(file: str, tier: str) -> None:
    assert tier_of(Path(file)).name == tier


def test_folder_without_a_tier_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tests/elsewhere/deep: no tier of tests/tiers\.py names this folder"):
        tier_of(Path("elsewhere/deep/test_it.py"))


def test_every_file_is_collected_by_one_tier() -> None:
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert len(files) > 150
    for file in files:
        place = f"tests/{file.as_posix()}"
        assert any(place.startswith((f"{path}/", path)) for path in paths(tier_of(file))), file
    assert len({name for tier in TIERS for name in tier.folders}) == sum(len(tier.folders) for tier in TIERS)


@pytest.mark.parametrize("mark", ["alone", "long"])
def test_mark_without_a_reason_is_refused(request: pytest.FixtureRequest, mark: str) -> None:
    request.node.add_marker(getattr(pytest.mark, mark))
    with pytest.raises(pytest.UsageError, match=f"give the mark '{mark}' a reason"):
        pytest_collection_modifyitems([request.node])


def test_files_with_tests_that_run_alone_are_found() -> None:
    assert {tier.name: len(alone(tier)) for tier in TIERS} == {"default": 2, "integration": 0, "all": 2}


def test_no_test_asserts_that_something_took_less_than_a_time() -> None:
    planted = "assert time.monotonic() - began < 5"
    assert UPPER_LIMIT.search(planted) and not WAIT.search(planted)
    found = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in TESTS.rglob("*.py")
        if path != Path(__file__)
        for line in path.read_text().splitlines()
        if UPPER_LIMIT.search(line) and not WAIT.search(line) and "deadline" not in line
    ]
    assert found == []


def test_times_of_a_file_are_read_from_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert times(report) == {}
    one = (
        '<testcase classname="a.b" name="{}" time="1.5"><properties><property name="cpu_s" value="2.25"/></properties>'
    )
    cases = "".join(f"{one.format(name)}</testcase>" for name in "cd")
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert times(report) == {"a.b": (4.5, 3.0)}


def test_cpu_time_of_a_test_includes_programs_that_it_ran() -> None:
    item: Any = SimpleNamespace(stash=pytest.Stash(), user_properties=[])
    next(pytest_runtest_protocol(item))
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5:\n    pass"], check=True)
    list(pytest_runtest_teardown(item))
    ((name, seconds),) = item.user_properties
    assert name == CPU and seconds >= 0.45
