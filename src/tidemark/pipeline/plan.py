"""Plan of a configuration: the series that it requests, in the order in which they run."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from tidemark import __version__, code
from tidemark.config import Config
from tidemark.errors import ConfigError, DatasetError
from tidemark.machine import inventory
from tidemark.paths import Workspace, write_if_changed
from tidemark.runs.circumstances import Harness
from tidemark.runs.outcome import outcome_path
from tidemark.runs.plan import Goal, PlanFile, PlannedMachine, PlannedSeries, Round
from tidemark.runs.serde import pairs, picked
from tidemark.runs.spec import FORMAT, SeriesSpec
from tidemark.services.base import Service
from tidemark.services.servers import locks_of, started_here, tools_of
from tidemark.software.stacks import locks
from tidemark.studies.study import registry as studies
from tidemark.systems import MEASUREMENTS
from tidemark.systems.registry import registry, variant_of

FOOTER_BYTES = 65536
# Round after which `tidemark all` wants results, for the Snakefile; a plain `snakemake` makes them from all runs.
ROUND = "TIDEMARK_ROUND"
# Overhead of a series by itself, of one in a round, and of a run, in addition to windows; and of Snakemake between two.
SERIES_SECONDS, IN_ROUND_SECONDS, RUN_SECONDS, STEP_SECONDS = 8.0, 1.0, 5.0, 3.0
RESULTS_SECONDS = 45.0  # for tables, figures, report and paper, once all is measured
FRAME = "tidemark.measure.series"
NOT_ITS_OWN = "studies/study.py"  # what every study has, and no study measures with
DECLARATIONS = "config.py"  # in the folder of a study


@dataclass(frozen=True, slots=True)
class Plan:
    series: tuple[SeriesSpec, ...]
    config: Config
    dataset_directory: str  # from the workspace's root
    machine: str  # identity of the machine for which it is made
    goal: Goal  # that ends its rounds
    notes: tuple[str, ...] = ()  # requested settings that the machine cannot provide

    def until(self, made: Round | None) -> tuple[SeriesSpec, ...]:
        """Return the series that are measured once the round `made` is complete; all of them if it is None."""
        return tuple(spec for spec in self.series if made is None or spec.repeat <= made.number)

    @property
    def seconds(self) -> float:
        """Expected seconds of measuring and of making results once all is set up.

        A goal's minutes are the limit of a study with rounds, unless its first block of rounds and its series after the
        rounds take longer.
        """
        seconds = RESULTS_SECONDS
        for study in dict.fromkeys(each.study for each in self.series):
            own = [each for each in self.series if each.study == study]
            always = likely_seconds(each for each in own if not each.in_round or each.block == 1)
            limit = max(60 * self.goal.minutes - RESULTS_SECONDS, always) if self.goal.minutes else math.inf
            seconds += min(likely_seconds(own), limit)
        return seconds

    def jobs(self) -> tuple[tuple[SeriesSpec, ...], ...]:
        """Return what is measured in one go: the series of a block of rounds, or a series by itself, in order."""
        found: dict[str, list[SeriesSpec]] = {}
        for spec in self.series:
            found.setdefault(spec.job, []).append(spec)
        return tuple(map(tuple, found.values()))

    def to_json(self, made: Round | None = None) -> str:
        """Return plan.json, the contract with the analysis: the configuration's series and the folders of their runs.

        The plan of a round has only the series up to it, and names the round.
        """
        harnesses = sorted({spec.harness for spec in self.series})
        return PlanFile(
            config=pairs(json.loads(self.config.effective)),
            tidemark=Harness(__version__, FORMAT, " ".join(harnesses)),
            machine=PlannedMachine(self.machine),
            series=tuple(picked(PlannedSeries, spec.described()) for spec in self.until(made)),
            notes=self.notes,
            round=made,
        ).to_json()

    def write(self, workspace: Workspace, made: Round | None = None) -> None:
        """Write the plan for the rules, and that of the round `made`, if there is one.

        It becomes the plan of the results once all of it is measured: until then they belong to the previous plan.
        Files whose content is unchanged keep their mtime.
        """
        write_if_changed(workspace.plan, self.to_json())
        if made is not None:
            write_if_changed(workspace.plan_of_round(made.number), self.to_json(made))
        for spec in self.series:
            write_if_changed(workspace.root / spec.directory / "spec.json", replace(spec, position=0).to_json())


def dataset_key(config: Config) -> str:
    """Return 12 hex digits that change if the prepared trips would."""
    dataset = config.dataset
    files = [_identity(path) for path in dataset.paths]
    seeded = config.seed if dataset.source in ("auto", "synthetic") and not dataset.paths else None
    decisive = [dataset.source, files, dataset.rows, dataset.synthetic_rows, seeded]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:12]


def _identity(path: Path) -> list[Any]:
    """Return size and footer digest of a Parquet file: the footer holds statistics and offsets of all its data."""
    if not path.is_file():
        return [str(path)]
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - FOOTER_BYTES))
        return [size, hashlib.sha256(file.read()).hexdigest()]


def make_plan(config: Config, root: Path | None = None) -> Plan:
    """Plan the series of `config`, in an order drawn from its seed; the same series always has the same path.

    Raises DatasetError or ConfigError if a file that `config` names does not exist.
    `root` is the workspace's folder, whose disk is part of the machine's identity; by default the current one.
    """
    refuse_absent(config)
    trips = f"data/prepared/{dataset_key(config)}"
    machine = inventory.identity(root or Path.cwd())
    known = registry()
    made: list[SeriesSpec] = []
    notes: list[str] = []
    for study in (studies()[name] for name in config.studies):
        workload = study.workload
        harness = harness_digest(workload.__module__)
        notes += study.limits(config)
        for stack in config.stacks:
            base = SeriesSpec(
                study=study.name,
                workload=workload.name,
                cold=config.cold,
                keep_tables=config.keep_tables,
                protocol=config.protocol,
                stack=stack,
                harness=harness,
                machine=machine,
                dataset_directory=trips if workload.takes_trips else "",
                disturbance=config.disturbance,
                services=config.services,
                seed=config.seed,
            )
            locked: dict[str, str] = {}  # the same for all series of a system
            for spec in _repeated(study.plan(config, base), config.repeats):
                system = f"{spec.name} {spec.options}"
                if system not in locked:
                    decisive = locks(stack, servers(spec), workload.tools_for(variant_of(spec).system))
                    locked[system] = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
                client = client_digest(known[spec.system].__module__)
                version = MEASUREMENTS.get(spec.system)
                measurement = f"{workload.name} {workload.measurement}, {spec.system} {version or client[:12]}"
                made.append(replace(spec, lock_sha256=locked[system], measurement=measurement, client=client))
    if not made:
        raise ConfigError(f"the configuration asks for no series: {'; '.join(notes) or 'its lists are empty'}")
    # A sweep's value may equal the configuration's: such a series is measured once, as that of the configuration.
    ordered = _in_order({spec.id: spec for spec in reversed(made)}.values(), config.seed)
    goal = next((found for name in config.studies if (found := studies()[name].goal(config)) != Goal()), Goal())
    placed = tuple(replace(spec, position=place) for place, spec in enumerate(ordered))
    return Plan(placed, config, trips, machine, goal, tuple(dict.fromkeys(notes)))


def _repeated(series: Iterable[SeriesSpec], repeats: int | None) -> list[SeriesSpec]:
    """Return each of `series` `repeats` times, regardless of its protocol; None leaves them unchanged.

    Where the protocol has rounds, all but the last are rounds; those that it does not have are blocks by themselves.
    """
    planned = list(series)
    if repeats is None:
        return planned
    once = {spec.repeated_id: spec for spec in reversed(planned)}
    rounds = {spec.repeated_id for spec in planned if spec.in_round}
    blocks = {spec.repeat: spec.block for spec in planned if spec.in_round}
    return [
        replace(spec, repeat=number, in_round=in_round, block=blocks.get(number, number) if in_round else 0)
        for key, spec in once.items()
        for number in range(1, repeats + 1)
        for in_round in [key in rounds and number < repeats]
    ]


def _in_order(series: Iterable[SeriesSpec], seed: int) -> list[SeriesSpec]:
    """Return `series` in an order drawn from `seed`, with each repeat of all series before the next one of any.

    Repeats of a series are thus far apart, and a machine's behaviour over some minutes affects only one of them. The
    series of a study's part, which are compared, follow one another; studies, parts and series are in random order.
    """
    source = random.Random(seed)
    ordered: list[SeriesSpec] = []
    by_id = sorted(series, key=lambda spec: (spec.repeat, spec.id))
    for _, of_round in groupby(by_id, lambda spec: spec.repeat):
        each = list(of_round)
        source.shuffle(each)
        of_study, of_part = _places((spec.study for spec in each), source), _places(map(_part, each), source)
        of_job = {job: place for place, job in enumerate(dict.fromkeys(spec.job for spec in each))}
        ordered += sorted(each, key=lambda spec: (of_study[spec.study], of_part[_part(spec)], of_job[spec.job]))
    return ordered


def _part(spec: SeriesSpec) -> str:
    return str(dict(spec.settings).get("part", ""))


def _places(names: Iterable[str], source: random.Random) -> dict[str, int]:
    """Return the place of each of the distinct `names` in an order drawn from `source`."""
    distinct = list(dict.fromkeys(names))
    source.shuffle(distinct)
    return {name: place for place, name in enumerate(distinct)}


# Checks of the files that a configuration names, trips and an archive, before any step starts


def months(config: Config) -> tuple[Path, ...]:
    """Return the files of trips that `config` names and would use."""
    used = config.archive is None and config.dataset.source in ("auto", "path")
    return config.dataset.paths if used else ()


def refuse_absent(config: Config) -> None:
    """Raise DatasetError if a file of trips does not exist, ConfigError if the archive does not."""
    for path in months(config):
        if not path.exists():
            raise DatasetError(
                f"{config.origin.place(('dataset', 'path'))}: found '{path}', which is not there; allowed: a TLC month "
                "as Parquet, a list of them, or null"
            )
    if config.archive is not None and not config.archive.exists():
        raise ConfigError(
            f"{config.origin.place(('archive',))}: found '{config.archive}', which is not there; allowed: a file that "
            "'./tidemark archive' wrote, or null"
        )


def refuse_unusable(config: Config) -> None:
    """Raise DatasetError for files that are not months of trips, AnalysisError for an archive that was altered.

    Months are checked in a separate process that ends: this one lives while series are made cold, and would keep
    Arrow in memory.
    """
    if config.archive is not None:
        from tidemark.results.archive.unpack import opened

        with opened(config.archive):
            return
    if months(config):
        command = [sys.executable, "-m", "tidemark.dataset", *map(str, months(config))]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise DatasetError(ended.stderr.strip())


# Programs that the series use: exactly those that the rule `provision` fetches


def servers(spec: SeriesSpec) -> list[type[Service]]:
    """Return the kinds of server that are started here for the series."""
    workload = studies()[spec.study].workload
    return started_here((*workload.services, *variant_of(spec).needs), spec.services)


def tools(spec: SeriesSpec) -> tuple[str, ...]:
    """Return the locks in envs/tools that the series' workload, system and servers need."""
    asked = studies()[spec.study].workload.tools_for(variant_of(spec).system)
    return tuple(dict.fromkeys((*asked, *tools_of(servers(spec)))))


def programs(plan: Plan) -> tuple[str, ...]:
    """Return the folders of envs/jars that any series of the plan uses, sorted by name."""
    return locks_of(kind for spec in plan.series for kind in servers(spec))


def provided(plan: Plan) -> list[str]:
    """Return the file that marks the plan's programs as provisioned, named after them, from the workspace's root.

    A plan with other programs has another file, which does not exist yet. Empty if all servers are external.
    """
    names = programs(plan)
    return [f".tidemark/programs/{'+'.join(names)}.json"] if names else []


# Rounds: all series are measured once before any is measured again, and results are made after each round, so that
# first results do not wait for the last


def rounds(plan: Plan) -> int:
    """Return the maximum number of repeats among the series of a plan."""
    return max((spec.repeat for spec in plan.series), default=1)


def due(series: Iterable[SeriesSpec], workspace: Workspace) -> list[SeriesSpec]:
    """Return those of `series` that have no outcome yet, neither success nor failure."""
    return [spec for spec in series if not outcome_path(workspace, spec).exists()]


def to_make(plan: Plan, workspace: Workspace) -> tuple[Round, ...]:
    """Return the rounds after which to make results, before those of the complete plan, which are always made.

    There is one before each due repeat but the first, when everything before it is measured: earlier results would be
    older than necessary, and if nothing is due before a repeat, there is nothing new for results. Results that were
    complete except for a series to be measured again are therefore not replaced by those of a round. Making them takes
    time too: it happens after rounds 1, 2, 4, 8, ... as intervals get narrower with the square root of rounds, or after
    the end of the block that such a round is in.
    """
    repeats = sorted({spec.repeat for spec in due(plan.series, workspace)})
    last = {spec.job: spec.repeat for spec in plan.series}  # of each block, as repeats come in order
    after = {last[spec.job] for spec in plan.series if spec.repeat.bit_count() == 1}
    return tuple(Round(later - 1, rounds(plan)) for later in repeats[1:] if later - 1 in after)


def asked_for(plan: Plan) -> Round | None:
    """Return the round set in the environment, None for the complete plan; raise ConfigError if it is invalid."""
    text, last = os.environ.get(ROUND), rounds(plan)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= last:
        raise ConfigError(
            f"the environment's {ROUND}: found '{text}'; allowed: a whole number from 1 to {last}; without it, "
            "results are made of everything"
        )
    return Round(int(text), last) if int(text) < last else None


def likely_seconds(series: Iterable[SeriesSpec]) -> float:
    """Return the expected seconds of all of `series`, one after another; one that cannot run takes none."""
    windows = ((each, studies()[each.study].workload.likely_seconds(each)) for each in series)
    return sum(
        (IN_ROUND_SECONDS if each.in_round else SERIES_SECONDS + STEP_SECONDS)
        + len(each.numbers) * (seconds + RUN_SECONDS)
        for each, seconds in windows
        if seconds
    )


@cache
def harness_digest(workload: str) -> str:
    """Return the SHA-256 (hex) of the measuring code for the workload in module `workload`: frame and workload.

    Systems are excluded, so that a new one does not outdate existing runs: each system has its own digest.
    """
    return code.digest(_measuring(code.led_to(FRAME) | code.led_to(workload)))


@cache
def client_digest(system: str) -> str:
    """Return the SHA-256 (hex) of the code of the system in module `system`, and of the servers that it names."""
    return code.digest(_measuring(code.led_to(system)))


def _measuring(paths: frozenset[Path]) -> list[Path]:
    measuring = [path for path in code.files(*code.MEASURING) if path in paths and path != code.PACKAGE / NOT_ITS_OWN]
    return [path for path in measuring if path.name != DECLARATIONS]
