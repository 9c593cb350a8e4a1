"""`cold: reboot` with a manual restart of the machine; here the recorded boot id is changed instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .conftest import MakeSandbox
from .sandbox import MEASURE_ONLY, Sandbox, complete

OTHER_BOOT = "00000000-0000-0000-0000-000000000000"
CONFIG = {
    "protocol": "short",
    "protocols": {"short": {"window_seconds": 0.5, "runs": 2}},
    "systems": {"null": {}},
    "cold": "reboot",
}


@pytest.fixture(scope="module")
def sandbox(make_sandbox: MakeSandbox) -> Sandbox:
    return make_sandbox(CONFIG)


def pretend_a_restart(sandbox: Sandbox) -> None:
    path = sandbox.root / ".tidemark/reboots.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot_id": OTHER_BOOT}))


def states(sandbox: Sandbox) -> list[str]:
    return [line.split()[-5] for line in sandbox.run("list", "series").stdout.splitlines()[:-1]]


def plain(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake without `tidemark all` around it."""
    environment = {**os.environ, "PYTHONPATH": str(sandbox.root / "src"), "TIDEMARK_CACHE": str(sandbox.cache)}
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *words]
    return subprocess.run(
        command,
        cwd=sandbox.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
    )


def test_restart_options_require_cold_reboot(sandbox: Sandbox) -> None:
    assert sandbox.run("all", "--allow-reboot", "--wait-for-reboot").returncode == 2
    sandbox.configure({**CONFIG, "cold": "none"})
    assert sandbox.run("all", "--wait-for-reboot").returncode == 2
    assert sandbox.plan() == []
    sandbox.configure(CONFIG)


def test_each_series_waits_for_a_separate_boot(sandbox: Sandbox) -> None:
    for expected, option in ((["waiting", "pending"], []), (["complete", "waiting"], ["--wait-for-reboot"])):
        stopped = sandbox.run("all", *option)
        assert stopped.returncode == 11, stopped.stdout
        assert "Restart the machine and type the same command again" in stopped.stdout
        assert states(sandbox) == expected
        if option:
            assert sandbox.run("all", *option).returncode == 11 and states(sandbox) == expected, "no restart so far"
        pretend_a_restart(sandbox)
    last = sandbox.run("all", "--wait-for-reboot", *MEASURE_ONLY)
    assert last.returncode == 0, last.stdout
    assert states(sandbox) == ["complete", "complete"]
    assert list(complete(sandbox)) == []
    assert {run["cold_proof"]["method"] for run in sandbox.runs().values()} == {"reboot"}


def test_plain_snakemake_ends_at_the_restart_that_it_needs(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(CONFIG)
    for expected in (["waiting", "pending"], ["complete", "waiting"]):
        stopped = plain(sandbox, "all")
        assert stopped.returncode == 11, stopped.stdout
        assert stopped.stdout.count("waits for a restart") == 1 and "Error" not in stopped.stdout, stopped.stdout
        assert "Restart the machine and type the same command again" in stopped.stdout.splitlines()[-1]
        assert states(sandbox) == expected
        if expected == ["waiting", "pending"]:
            pretend_a_restart(sandbox)
    first, second = (sandbox.root / series["directory"] / "outcome.json" for series in sandbox.plan())
    by_name = plain(sandbox, str(second.relative_to(sandbox.root)))
    assert by_name.returncode == 11 and "waits for a restart" in by_name.stdout, by_name.stdout

    # A failed series takes no boot from the one that waits.
    first.write_text(json.dumps(json.loads(first.read_text()) | {"status": "failed", "reason": "x", "exit_code": 7}))
    pretend_a_restart(sandbox)
    last = plain(sandbox, "all", *MEASURE_ONLY)
    assert last.returncode == 0, last.stdout
    assert states(sandbox) == ["failed", "complete"]
    assert plain(sandbox, "all", *MEASURE_ONLY).returncode == 0
    assert states(sandbox) == ["complete", "complete"], "it is measured again once nothing else waits"


@pytest.mark.long(reason="two rounds with all results; tests/end_to_end/test_rounds.py has the rounds")
def test_results_of_a_round_are_made_before_the_restart_for_the_next(sandbox: Sandbox) -> None:
    often = {"short": {"window_seconds": 0.5, "runs": 2, "repeats": 2}}
    sandbox.configure({**CONFIG, "protocols": often, "systems": {"twice": {"like": "delta-rs"}}, "modes": ["single"]})
    pretend_a_restart(sandbox)
    first = sandbox.run("all", "--wait-for-reboot")
    assert first.returncode == 11, first.stdout
    assert states(sandbox) == ["complete", "waiting"]
    assert "round 1 of 2 is measured" in first.stdout
    assert json.loads((sandbox.results / "plan.json").read_text())["round"] == {"number": 1, "of": 2}
    pretend_a_restart(sandbox)
    last = sandbox.run("all", "--wait-for-reboot")
    assert last.returncode == 0 and "round 1 of 2" not in last.stdout, last.stdout
    assert "round" not in json.loads((sandbox.results / "plan.json").read_text())
