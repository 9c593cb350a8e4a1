"""The pipeline is killed at random moments, repeatedly, and still ends with every run once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .conftest import MakeSandbox
from .sandbox import Sandbox, complete

SEED = 20251101


def configuration(systems: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with windows so short that most of the time passes outside them, where more can break."""
    return {
        "protocol": "short",
        "protocols": {"short": {"window_seconds": 0.5, "runs": 2, "rounds": 3, "block": 2}},
        "systems": systems,
        "cold": "none",
    }


def is_provisioning(sandbox: Sandbox) -> bool:
    return (sandbox.cache / "postgres").exists() and not any(sandbox.root.glob(".tidemark/programs/*.json"))


def is_preparing(sandbox: Sandbox) -> bool:
    return any(sandbox.root.glob("data/prepared/*")) and not any(sandbox.root.glob("data/prepared/*/events.json"))


def is_starting_servers(sandbox: Sandbox) -> bool:
    return any(sandbox.work.glob("*/*/*.log"))


def is_running(sandbox: Sandbox) -> bool:
    return sandbox.in_window()


def is_after_the_window(sandbox: Sandbox) -> bool:
    """Return True between the window and the next topic: sync, footprint, flush, oracle and the run's files."""
    position = sandbox.position()
    return position is not None and position.ended and position.consumed > 0


def is_between_runs(sandbox: Sandbox) -> bool:
    """Return True if the series that runs now has its first run's files."""
    position = sandbox.position()
    done = [path.parent for path in sandbox.results.glob("runs/*/*/*/*/run-0")]
    names = {"-".join(folder.relative_to(sandbox.results / "runs").parts) for folder in done}
    return position is not None and position.series.name in names


def is_in_the_last_round_of_a_block(sandbox: Sandbox) -> bool:
    """Return True in a window of round 3, on servers that windows of round 2 were measured on before."""
    before = [sandbox.root / each["directory"] / "outcome.json" for each in sandbox.plan() if each["repeat"] == 2]
    position = sandbox.position()
    in_block = position is not None and "-block-02-" in str(position.series) and sandbox.in_window()
    return in_block and bool(before) and all(path.exists() for path in before)


def is_analysing(sandbox: Sandbox) -> bool:
    return (sandbox.results / "logs/database.log").exists() and not (sandbox.results / "figures/index.json").exists()


@dataclass(frozen=True)
class Phase:
    """Moment of a kill: up to `at_most_s` after `begun`."""

    begun: Callable[[Sandbox], bool]
    at_most_s: float


# Provisioning and preprocessing come first, because they are not repeated once they have succeeded, and rounds before
# series. A series that is due goes through all phases of the third group; the last is reached once none is due.
EARLY = (Phase(is_provisioning, 1.5), Phase(is_preparing, 0.6))
WITHIN_BLOCK = (Phase(is_in_the_last_round_of_a_block, 0.3),)
WITHIN_SERIES = (
    Phase(is_starting_servers, 4.0),
    Phase(is_running, 0.5),
    Phase(is_after_the_window, 0.5),
    Phase(is_between_runs, 1.0),
)
LATE = (Phase(is_analysing, 3.0),)


@dataclass
class Tally:
    """Kills by phase, and the runs that existed at each of them."""

    kills: dict[str, int] = field(default_factory=dict)
    written: dict[Path, int] = field(default_factory=dict)  # the inode of each run: it is written once

    def note_runs(self, sandbox: Sandbox) -> None:
        for path in sandbox.results.glob("runs/*/*/*/*/run-*/run.json"):
            assert self.written.setdefault(path, path.stat().st_ino) == path.stat().st_ino, f"{path}: written twice"


def kill_once(sandbox: Sandbox, phase: Phase, delay_s: float, tally: Tally) -> None:
    """Start `all` and kill its process group `delay_s` after `phase` began, unless it has ended by then."""
    name = phase.begun.__name__
    process = sandbox.start("all", output=subprocess.DEVNULL)
    deadline = time.monotonic() + 600  # first results are made before a last round, on a busy machine
    while process.poll() is None and not phase.begun(sandbox):
        assert time.monotonic() < deadline, f"{name} never came"
        time.sleep(0.02)  # what it looks at takes some milliseconds
    time.sleep(delay_s)
    if process.poll() is None:
        tally.kills[name] = tally.kills.get(name, 0) + 1
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert sandbox.left_running() == [], f"after a kill in {name}"
    tally.note_runs(sandbox)


def kill_again_and_again(sandbox: Sandbox, seed: int = SEED) -> Tally:
    """Kill in all phases; within each group except the first, their order is drawn from `seed`."""
    chance, tally = random.Random(seed), Tally()
    for group in (EARLY, WITHIN_BLOCK, WITHIN_SERIES, LATE):
        due = list(group)
        if group is not EARLY:
            chance.shuffle(due)
        for phase in due:
            kill_once(sandbox, phase, chance.uniform(0.0, phase.at_most_s), tally)
    return tally


def copy_of_jars(cache: Path, target: Path) -> Path:
    """Make a cache that has only the jars, so that provisioning has PostgreSQL to unpack."""
    for jar in (cache / "jars").rglob("*.jar"):
        place = target / jar.relative_to(cache)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(jar, place)
        except OSError:  # another file system
            shutil.copyfile(jar, place)
    return target


def check_the_end(sandbox: Sandbox, tally: Tally) -> None:
    """Check that a plain `all`, with nothing unlocked or removed by hand before, ends with every planned run once."""
    last = sandbox.run("all")
    assert last.returncode == 0, last.stdout
    assert list(complete(sandbox)) == []
    tally.note_runs(sandbox)
    assert len(tally.written) == len(sandbox.runs())
    assert sandbox.left_running() == []


def test_kills_at_any_moment_lose_and_duplicate_nothing(make_sandbox: MakeSandbox, cache: Path, tmp_path: Path) -> None:
    systems: dict[str, Any] = {"null": {}, "ducklake": {}}
    sandbox = make_sandbox(configuration(systems), copy_of_jars(cache, tmp_path / "cache"))
    sandbox.know("null", 50_000)  # the other one is probed, and killed during the probe as well
    tally = kill_again_and_again(sandbox)
    print(f"killed: {tally.kills}")
    assert sum(tally.kills.values()) >= 7 and tally.kills[is_in_the_last_round_of_a_block.__name__] == 1
    check_the_end(sandbox, tally)
    log = (sandbox.results / "logs/streams-block-02-thesis/postgres.log").read_text()
    assert "checkpoint starting: immediate force wait" in log, "one is written before each window of a block"
    assert len(sandbox.runs()) == 2 * (2 + 3 + 2), "null by itself, and the other one in three rounds and by itself"


@pytest.mark.long(reason="every table system, killed five times each")
def test_kills_at_any_moment_with_every_system(make_sandbox: MakeSandbox, cache: Path, tmp_path: Path) -> None:
    systems: dict[str, Any] = {name: {} for name in of_kind(TableSystem)}
    sandbox = make_sandbox(configuration(systems), copy_of_jars(cache, tmp_path / "cache"))
    chance, tally, done = random.Random(SEED), Tally(), -1

    def one_more_is_done(sandbox: Sandbox) -> bool:
        return len(sandbox.outcomes()) > done

    while done < len(sandbox.plan()):
        for phase in chance.sample(WITHIN_SERIES, 2):
            kill_once(sandbox, phase, chance.uniform(0.0, phase.at_most_s), tally)
        done = len(sandbox.outcomes())
        kill_once(sandbox, Phase(one_more_is_done, 1.0), chance.uniform(0.0, 1.0), tally)
        done = len(sandbox.outcomes())
    print(f"killed: {tally.kills}")
    check_the_end(sandbox, tally)
