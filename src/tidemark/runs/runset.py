"""Run files of one configuration, read and checked: the only input of the analysis."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from tidemark.errors import AnalysisError
from tidemark.runs.circumstances import Harness, Machine
from tidemark.runs.dataset import Provenance
from tidemark.runs.manifest import DEFAULT_DURABILITY, FIRST_STUDY, FIRST_WORKLOAD
from tidemark.runs.outcome import LEFT_OUT, Attempt, Disturbed, Outcome
from tidemark.runs.plan import PlanFile, PlannedSeries, Round
from tidemark.runs.run import Run, read_run
from tidemark.runs.serde import Fields, Pairs, picked, values_of
from tidemark.runs.spec import BATCH, MAIN, SINGLE, TWIN

# Windows of one system and mode, hours apart, differed by 8 to 14 % on the machine of the reference results. With the
# degrees of freedom that the intervals have (`aggregation.ONCE`), 12 % hold the truth in 95 of 100 cases at 14 %.
ONCE_SD = 0.12  # of the logarithm of a time or rate that was measured once; nothing else shows how it varies
ASSUMED = f"assume that another measurement differs by {100 * ONCE_SD:.0f} % (standard deviation)"
# Order of the thesis, then systems that it meant to show; all others follow by name.
ORDER = (
    "ducklake",
    "ducklake-inlined",
    "ducklake-inlined-postgres",
    "iceberg-pyiceberg",
    "iceberg-duckdb",
    "delta-rs",
    "delta-duckdb",
)


@dataclass(frozen=True, slots=True)
class Kept:
    """Disturbed run with its files; it is excluded from all results."""

    number: int
    reasons: tuple[str, ...]
    directory: Path
    run: Run | None  # None if its files no longer exist


@dataclass(frozen=True, slots=True)
class Repeat:
    """One repeat of a series, on one warm-up history: run 0 from a cold start, then the hot runs.

    `runs` are those that count, even if `status` is not complete.
    """

    id: str
    number: int  # from 1
    position: int
    status: str
    reason: str | None
    runs: tuple[Run, ...]
    attempts: tuple[Attempt, ...] = ()  # oldest first; none in run files of version 1
    disturbed: tuple[Kept, ...] = ()  # runs that were measured again

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """Attempts that did not complete."""
        return tuple(attempt for attempt in self.attempts if attempt.status != "complete")

    @property
    def block(self) -> int:
        """Number of the block of rounds that its servers were started for; 0 if it is in none."""
        return next((int(dict(run.manifest.config).get("block", 0)) for run in self.runs), 0)

    @property
    def cold_run(self) -> Run | None:
        return next((run for run in self.runs if run.cold), None)

    @property
    def hot_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.cold)


@dataclass(frozen=True, slots=True)
class Series:
    """One system in one mode, with all of its repeats."""

    id: str
    system: str
    title: str
    mode: str
    batch_size: int
    threads: int
    protocol: str
    stack: str
    sweep: str
    repeats: tuple[Repeat, ...]  # one or more
    read_ahead: int = 1  # maximum number of events per read
    cpus: int | None = None  # number of processors that client and servers were bound to
    workload: str = FIRST_WORKLOAD
    study: str = FIRST_STUDY
    settings: Pairs[Any] = field(default=(), hash=False)  # of its workload, by name

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of all repeats that count, ordered by repeat."""
        return tuple(run for repeat in self.repeats for run in repeat.runs)

    @property
    def reason(self) -> str | None:
        """Reason of the first repeat that is not complete; None if all are."""
        return next((repeat.reason for repeat in self.repeats if repeat.status != "complete"), None)

    @property
    def status(self) -> str:
        """Status of the first repeat that is not complete; "complete" if all are."""
        return next((repeat.status for repeat in self.repeats if repeat.status != "complete"), "complete")

    @property
    def cold_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.cold)

    @property
    def hot_repeats(self) -> tuple[Repeat, ...]:
        """Repeats whose hot runs count: its rounds, or all of them if it has none.

        The hot run after a cold start, which follows the rounds, is only compared with that cold start: it has servers
        of its own, and other systems have theirs up to half an hour later.
        """
        return tuple(repeat for repeat in self.repeats if repeat.block) or self.repeats

    @property
    def hot_runs(self) -> tuple[Run, ...]:
        return tuple(run for repeat in self.hot_repeats for run in repeat.hot_runs)

    @property
    def counted_runs(self) -> tuple[Run, ...]:
        """Its hot runs or, if it has none, its cold ones: those that `Measures.value` uses."""
        return self.hot_runs or self.cold_runs

    def repeat_of(self, run: Run) -> int | None:
        """Return the repeat number of one of its runs, for people; None if there is only one repeat."""
        return run.repeat if len(self.repeats) > 1 else None

    @property
    def is_null_baseline(self) -> bool:
        return self.runs[0].manifest.system.is_null_baseline if self.runs else self.system == "null"

    @property
    def is_twin(self) -> bool:
        """True if its system is another one under a second name, measured for the A/A comparison."""
        return self.system.endswith(TWIN)

    @property
    def reads_in_goes(self) -> bool:
        """True if the read time of a single event is its share of a read of several: a mean, not a measured time."""
        return self.mode == SINGLE and self.read_ahead > 1

    @property
    def mode_title(self) -> str:
        return f"{BATCH} of {self.batch_size:,}" if self.mode == BATCH else self.mode

    def run(self, number: int) -> Run | None:
        """Return run `number` of the first repeat that has it; None if none has."""
        return next((run for run in self.runs if run.number == number), None)

    def nth_run(self, number: int) -> Run | None:
        """Return run 0 or the `number`-th hot run, of a later repeat if the first has fewer; None if there is none."""
        found = self.run(number)
        return found if found or not 0 < number <= len(self.hot_runs) else self.hot_runs[number - 1]

    def missing(self, number: int | None = None) -> str:
        """Return why there is no run at all, or no run `number`."""
        if self.reason:
            return self.reason.splitlines()[0]
        return "no run" if number is None else f"the protocol '{self.protocol}' has no run {number}"


@dataclass(frozen=True, slots=True)
class RunSet:
    """Series of one configuration, with the runs measured for them."""

    results: Path
    config: Fields
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()  # requested settings that the machine could not provide
    round: Round | None = None  # None if nothing remains to be measured
    ended: tuple[str, ...] = ()  # sentences on why rounds ended before all that were planned

    @property
    def repeats(self) -> tuple[Repeat, ...]:
        """Repeats of all series."""
        return tuple(repeat for series in self.series for repeat in series.repeats)

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for repeat in self.repeats for run in repeat.runs)

    @property
    def is_repeated(self) -> bool:
        return any(len(series.repeats) > 1 for series in self.series)

    @property
    def coverage(self) -> str:
        """Sentence on the variance that confidence intervals of series cover."""
        if self.is_repeated:
            return "Intervals cover the variance between repeats of a series."
        if any(len(series.hot_runs) > 1 for series in self.series):
            return "Each series is measured once, so intervals do not cover the variance between series of one system."
        return f"Each series is measured once; intervals of times and rates {ASSUMED}."

    @property
    def kept_runs(self) -> tuple[Run, ...]:
        """Disturbed runs that are kept in addition to those that count."""
        return tuple(each.run for repeat in self.repeats for each in repeat.disturbed if each.run is not None)

    @property
    def harnesses(self) -> tuple[Harness | None, ...]:
        """Measuring code, one entry per digest; None for runs that do not name it."""
        found = (run.manifest.harness for run in self.runs)
        return tuple({each.digest if each else None: each for each in found}.values())

    @property
    def datasets(self) -> tuple[Provenance, ...]:
        """Datasets that runs used, without duplicates; a consistent run set has one."""
        found = (run.manifest.dataset for run in self.runs)
        return tuple({each.sha256: each for each in found if each is not None}.values())

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(dict.fromkeys(run.manifest.machine for run in self.runs))

    @property
    def stacks(self) -> tuple[str, ...]:
        """Stacks with series, as the configuration orders them; the plan's order is random."""
        found = dict.fromkeys(series.stack for series in self.series)
        asked = self.config.texts("stacks") if "stacks" in self.config.names() else ()
        return tuple(dict.fromkeys((*(stack for stack in asked if stack in found), *found)))

    @property
    def stack(self) -> str:
        """Stack for which the thesis's tables and figures are made."""
        return "thesis" if "thesis" in self.stacks else self.stacks[0]

    def axis_of(self, sweep: str) -> str | None:
        """Return the configuration key that a sweep varied; None if the configuration does not have the sweep."""
        sweeps = self.config.part("sweep") if "sweep" in self.config.names() else None
        return sweeps.part(sweep).text("axis") if sweeps and sweep in sweeps.names() else None

    def select(
        self, *, mode: str | None = None, sweep: str = MAIN, stack: str | None = None, harness: bool = True
    ) -> tuple[Series, ...]:
        """Return the series of one sweep, in the order of tables."""
        if not self.series:
            return ()
        wanted = stack or self.stack
        found = [
            series
            for series in self.series
            if series.sweep == sweep
            and series.stack == wanted
            and mode in (None, series.mode)
            and (harness or not series.is_null_baseline)
        ]
        return tuple(sorted(found, key=_place))

    def runs_with(self, stack: str) -> tuple[Run, ...]:
        """Return the runs of all series under one stack."""
        return tuple(run for series in self.series if series.stack == stack for run in series.runs)

    def find(self, system: str, mode: str) -> Series | None:
        """Return the main series of a system in a mode; None if there is none."""
        return next((series for series in self.select(mode=mode) if series.system == system), None)

    @classmethod
    def load(cls, results: Path, plan_file: Path | None = None) -> RunSet:
        """Read results/plan.json, or another plan of the same results, and the runs of its series.

        Raises AnalysisError, naming the file, if anything is absent, unreadable or inconsistent. A series that
        failed or was not run is kept, with its reason.
        """
        path = plan_file or results / "plan.json"
        plan = PlanFile.read(path)
        items: dict[str, list[PlannedSeries]] = {}
        left_out: dict[str, None] = {}  # why rounds were not measured any more
        for item in plan.series:
            outcome = _outcome(results, item)
            if outcome.status == LEFT_OUT:
                left_out[outcome.reason or ""] = None
            else:
                items.setdefault(item.repeats, []).append(item)
        if not items:
            raise AnalysisError(f"{path}: key 'series': found none; allowed: at least one")
        config = Fields(str(path), dict(plan.config), "config.")
        series = tuple(_series(results, *item) for item in items.items())
        ended = tuple(f"{reason[:1].upper()}{reason[1:]}." for reason in left_out if reason)
        return cls(results, config, series, plan.notes, plan.round, ended)

    @property
    def studies(self) -> tuple[str, ...]:
        """Names of the studies that the series belong to, sorted."""
        return tuple(sorted({series.study for series in self.series}))

    def of(self, study: str) -> RunSet:
        """Return the series of one study, with its configuration section merged into the common settings.

        The earliest plans have no sections: all keys are at the top level.
        """
        config = self.config
        if study in config.names():
            section = config.part(study)
            config = Fields(config.source, {**config.values, **section.values}, "config.")
        return replace(self, config=config, series=tuple(each for each in self.series if each.study == study))


def _place(series: Series) -> tuple[int, int, str, int]:
    known = ORDER.index(series.system) if series.system in ORDER else len(ORDER)
    return (series.is_null_baseline, known, series.system, series.batch_size)


def _series(results: Path, identity: str, items: list[PlannedSeries]) -> Series:
    first = items[0]
    repeats = tuple(sorted((_repeat(results, item) for item in items), key=lambda repeat: repeat.number))
    settings = first.settings or next((run.manifest.config for each in repeats for run in each.runs), ())
    own = {"id": identity, "title": _titled(first.title, repeats), "repeats": repeats, "settings": settings}
    return picked(Series, {**values_of(first), **own})


def _titled(title: str, repeats: tuple[Repeat, ...]) -> str:
    """Return a system's title, with its durability levels other than the default."""
    levels = {run.manifest.system.durability_level for repeat in repeats for run in repeat.runs} - {DEFAULT_DURABILITY}
    words = [f"durability: {level}" for level in sorted(levels)]
    return f"{title} ({', '.join(words)})" if words and not any(word in title for word in words) else title


def _folder(results: Path, item: PlannedSeries) -> Path:
    # The plan's folders are relative to the workspace's root; an archive's results may be in a folder of another name.
    path = PurePosixPath(item.directory)
    if path.is_absolute() or ".." in path.parts:
        raise AnalysisError(
            f"{results / 'plan.json'}: key 'series.directory': found '{path}'; allowed: a folder below the results"
        )
    parts = path.parts
    return results.joinpath(*parts[parts.index("runs") if "runs" in parts else 0 :])


def _outcome(results: Path, item: PlannedSeries) -> Outcome:
    return Outcome.read(_folder(results, item) / "outcome.json")


def _repeat(results: Path, item: PlannedSeries) -> Repeat:
    directory, outcome = _folder(results, item), _outcome(results, item)
    return Repeat(
        id=item.id,
        number=item.repeat,
        position=item.position,
        status=outcome.status,
        reason=outcome.reason,
        runs=tuple(read_run(directory, item.id, number) for number in outcome.runs),
        attempts=outcome.attempts,
        disturbed=tuple(_kept(directory, item.id, each) for each in outcome.disturbed),
    )


def _kept(directory: Path, identity: str, said: Disturbed) -> Kept:
    folder = directory / PurePosixPath(said.directory)
    here = (folder / "run.json").is_file() and folder.resolve().is_relative_to(directory.resolve())
    run = read_run(directory, identity, said.run, folder) if here else None
    return Kept(said.run, said.reasons, folder, run)
